#include "regard/pictures/page.h"

#include <fmt/format.h>

#include "regard/pictures/colour.h"
#include "regard/pictures/text.h"

namespace regard::pictures {
namespace {

constexpr std::string_view kStyle = R"css(
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1b1f24; --soft: #57606a; --line: #d5dae0; --band: #f4f6f8; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14181f; --ink: #e4e8ee; --soft: #a2acb8; --line: #343c47; --band: #1b212a; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 60rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 1.25rem; letter-spacing: -0.01em; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.75rem 0 0.75rem; padding-bottom: 0.3rem; border-bottom: 1px solid var(--line); }
p, dd { overflow-wrap: anywhere; }
td, th { white-space: nowrap; }
td.words { white-space: normal; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: minmax(8rem, max-content) 1fr; gap: 0.3rem 1.5rem; margin: 0; }
dt, .label { color: var(--soft); }
dd { margin: 0; font-variant-numeric: tabular-nums; }
figure { margin: 1.5rem 0 2.25rem; }
.scroll { overflow-x: auto; }
svg { display: block; color: var(--ink); }
.curve { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: 0.875rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.3rem 0.6rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top; }
th { font-weight: 600; }
tbody th, thead th:first-child, td.words { text-align: start; }
thead th { background: var(--band); }
caption { text-align: start; color: var(--soft); padding: 0.4rem 0; }
details { margin-top: 0.5rem; }
summary { cursor: pointer; color: var(--soft); }
.sample { padding: 0.75rem 1rem; margin: 0 0 0.75rem; background: var(--band); border-radius: 6px;
  grid-template-columns: 6.5rem 1fr; }
@media (max-width: 30rem) { dl, .sample { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: 0.5rem; } }
@media print { body { max-width: none; padding: 0; } details > * { display: block; } }
.paper { fill: none; }
)css";

constexpr std::string_view kDarkSeries =
    ".s0 { stroke: #6cb0ff; } .s1 { stroke: #f0a050; } .s2 { stroke: #5cc8a0; } .s3 { stroke: #e58ac0; }\n"
    ".s4 { stroke: #c9b458; } .s5 { stroke: #b49cf5; }\n";

}  // namespace

std::string html_page(std::string_view title, std::string_view body) {
  std::string style(kStyle);
  style += "@media (prefers-color-scheme: dark) {\n";
  for (int level = 0; level <= kLevels; ++level) {
    style +=
        fmt::format(".k{} {{ fill: {}; }}{}", level, hex(dark_scale(level)), level % 4 == 3 ? "\n" : " ");
  }
  style += "\n";
  style += kDarkSeries;
  style += "}\n";
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n"
      "<style>{}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
      xml_escaped(title), style, body);
}

}  // namespace regard::pictures
