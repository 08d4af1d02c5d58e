#include "regard/pictures/report.h"

#include <fmt/format.h>

#include "regard/pictures/page.h"
#include "regard/pictures/text.h"

namespace regard::pictures {
namespace {

std::string entry(const std::string& name, const std::string& value) {
  return fmt::format("<dt>{}</dt><dd dir=\"auto\">{}</dd>\n", xml_escaped(name), xml_escaped(value));
}

std::string facts_html(const Report& report) {
  if (report.facts.empty()) return {};
  std::string out = "<dl>\n";
  for (const auto& [name, value] : report.facts) out += entry(name, value);
  return out + "</dl>\n";
}

std::string curves_html(const Report& report) {
  if (report.curves.empty()) return {};
  std::string out = "<h2>Training</h2>\n";
  for (const Curve& curve : report.curves)
    out += "<figure>" + svg_curve(curve.labels, curve.series) + "</figure>\n";
  return out;
}

std::string samples_html(const Report& report) {
  if (report.samples.empty()) return {};
  std::string out = "<h2>Samples</h2>\n";
  for (const Sample& sample : report.samples) {
    out += "<dl class=\"sample\">\n" + entry("Source", sample.source);
    if (!sample.reference.empty()) out += entry("Reference", sample.reference);
    out += entry("Translation", sample.hypothesis) + "</dl>\n";
  }
  return out;
}

std::string matrices_html(const Report& report) {
  if (report.matrices.empty()) return {};
  std::string out =
      "<h2>Attention</h2>\n<p>Rows are the words of the translation, columns those of the source: the "
      "stronger the blue, the more the row's word was drawn from the column's.</p>\n";
  for (const AttentionMatrix& matrix : report.matrices) {
    out += "<figure><div class=\"scroll\">" + svg_matrix(matrix) +
           "</div>\n<details><summary>As a table</summary>\n<div class=\"scroll\" tabindex=\"0\">" +
           matrix_table(matrix) + "</div></details></figure>\n";
  }
  return out;
}

}  // namespace

std::string report_html(const Report& report) {
  const std::string title = report.title.empty() ? "Report" : report.title;
  return html_page(title, "<h1>" + xml_escaped(title) + "</h1>\n" + facts_html(report) + curves_html(report) +
                              samples_html(report) + matrices_html(report));
}

}  // namespace regard::pictures
