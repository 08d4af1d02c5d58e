#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "regard/pictures/check.h"
#include "regard/pictures/colour.h"
#include "regard/pictures/matrix.h"
#include "regard/pictures/text.h"

namespace regard::pictures {
namespace {

constexpr int kLongestLabel = 24;     // columns
constexpr int kLongestTitle = 90;     // columns
constexpr int kLongestTooltip = 400;  // columns; the full text of any real word
constexpr int kLongestInCell = 60;    // columns; a word is repeated in each of its cells
constexpr size_t kManyCells = 4096;   // above: cells that would be white are left out
constexpr double kAdvance = 0.62;     // em that a column takes, generous for sans-serif fonts
constexpr double kSlant = 0.7071;     // source words stand at 45 degrees
constexpr double kMargin = 14;
constexpr double kLegendHeight = 44;

/// Where everything is, in pixels.
struct Layout {
  double cell = 24, font = 13;
  double left = 0, top = 0;      // corner of the cells
  double width = 0, height = 0;  // of the whole picture
};

double text_length(const std::string& text, double font) { return display_width(text) * kAdvance * font; }

std::string label_text(const std::string& word) { return truncated(terminal_text(word), kLongestLabel); }

std::string tooltip(const std::string& word, int columns) { return xml_escaped(truncated(word, columns)); }

Layout layout_of(const AttentionMatrix& matrix) {
  const auto sources = static_cast<double>(matrix.source.size());
  const auto targets = static_cast<double>(matrix.target.size());
  Layout at;
  at.cell = std::clamp(1200.0 / std::max({sources, targets, 1.0}), 6.0, 24.0);
  at.font = std::clamp(at.cell * 0.75, 5.0, 13.0);
  double label = 0;
  for (const auto& word : matrix.target) label = std::max(label, text_length(label_text(word), at.font));
  at.left = kMargin + label + 8;
  double rise = 0, right = at.left + sources * at.cell;
  for (size_t s = 0; s < matrix.source.size(); ++s) {
    const double reach = kSlant * (text_length(label_text(matrix.source[s]), at.font) + at.font);
    rise = std::max(rise, reach);
    right = std::max(right, at.left + (static_cast<double>(s) + 0.5) * at.cell + reach);
  }
  at.top = kMargin + (matrix.title.empty() ? 0 : 30) + rise + 6;
  constexpr double kLegendWidth = 260;
  const double title = text_length(truncated(terminal_text(matrix.title), kLongestTitle), 15);
  at.width = std::ceil(std::max({right, kMargin + title, kLegendWidth}) + kMargin);
  at.height = std::ceil(at.top + targets * at.cell + kLegendHeight);
  return at;
}

using Sink = std::back_insert_iterator<std::string>;

void append_labels(std::string& out, const AttentionMatrix& matrix, const Layout& at) {
  out += fmt::format("<g font-size=\"{:.1f}\" fill=\"currentColor\">\n", at.font);
  for (size_t s = 0; s < matrix.source.size(); ++s) {
    const double x = at.left + (static_cast<double>(s) + 0.5) * at.cell + 0.3 * at.font;
    fmt::format_to(
        Sink(out), "<text transform=\"translate({:.1f} {:.1f}) rotate(-45)\">{}<title>{}</title></text>\n", x,
        at.top - 6, xml_escaped(label_text(matrix.source[s])), tooltip(matrix.source[s], kLongestTooltip));
  }
  out += "</g>\n";
  out += fmt::format("<g font-size=\"{:.1f}\" fill=\"currentColor\" text-anchor=\"end\">\n", at.font);
  for (size_t t = 0; t < matrix.target.size(); ++t) {
    const double y = at.top + (static_cast<double>(t) + 0.5) * at.cell + 0.35 * at.font;
    fmt::format_to(Sink(out), "<text x=\"{:.1f}\" y=\"{:.1f}\">{}<title>{}</title></text>\n", at.left - 8, y,
                   xml_escaped(label_text(matrix.target[t])), tooltip(matrix.target[t], kLongestTooltip));
  }
  out += "</g>\n";
}

void append_cells(std::string& out, const AttentionMatrix& matrix, const Layout& at) {
  const double right = at.left + static_cast<double>(matrix.source.size()) * at.cell;
  const double bottom = at.top + static_cast<double>(matrix.target.size()) * at.cell;
  const bool many = matrix.weights.size() > kManyCells;
  const double gap = at.cell >= 12 ? 1 : 0;
  for (size_t t = 0; t < matrix.target.size(); ++t) {
    for (size_t s = 0; s < matrix.source.size(); ++s) {
      const float weight = weight_at(matrix, t, s);
      const int level = level_of(weight);
      if (level < 0 || (many && level == 0)) continue;
      fmt::format_to(
          Sink(out),
          "<rect class=\"k{}\" fill=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\">",
          level, hex(light_scale(level)), at.left + static_cast<double>(s) * at.cell,
          at.top + static_cast<double>(t) * at.cell, at.cell - gap, at.cell - gap);
      if (many) {
        fmt::format_to(Sink(out), "<title>{}, {}: {:.3f}</title></rect>\n", t + 1, s + 1, weight);
      } else {
        fmt::format_to(Sink(out), "<title>{} → {}: {:.3f}</title></rect>\n",
                       tooltip(matrix.target[t], kLongestInCell), tooltip(matrix.source[s], kLongestInCell),
                       weight);
      }
    }
  }
  fmt::format_to(
      Sink(out),
      "<rect fill=\"none\" stroke=\"currentColor\" stroke-opacity=\"0.35\" x=\"{:.1f}\" y=\"{:.1f}\" "
      "width=\"{:.1f}\" height=\"{:.1f}\"/>\n",
      at.left - 0.5, at.top - 0.5, right - at.left + 1 - gap, bottom - at.top + 1 - gap);
}

void append_legend(std::string& out, const Layout& at) {
  const double y = at.height - kLegendHeight + 18;
  double x = kMargin + 66;
  out +=
      fmt::format("<g font-size=\"12\" fill=\"currentColor\"><text x=\"{:.1f}\" y=\"{:.1f}\">weight</text>",
                  kMargin, y + 10);
  out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">0</text>", x - 6, y + 10);
  constexpr double kStep = 4;
  for (int level = 0; level <= kLevels; ++level, x += kStep) {
    out +=
        fmt::format("<rect class=\"k{}\" fill=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"12\"/>",
                    level, hex(light_scale(level)), x, y, kStep + 0.5);
  }
  out += fmt::format(
      "<rect fill=\"none\" stroke=\"currentColor\" stroke-opacity=\"0.35\" x=\"{:.1f}\" y=\"{:.1f}\" "
      "width=\"{}\" "
      "height=\"13\"/>",
      kMargin + 65.5, y - 0.5, (kLevels + 1) * kStep + 1.5);
  out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">1</text></g>\n", x + 6, y + 10);
}

}  // namespace

std::string svg_matrix(const AttentionMatrix& matrix) {
  check_shape(matrix);
  const Layout at = layout_of(matrix);
  const std::string title = matrix.title.empty() ? "Attention" : matrix.title;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" color=\"#1b1f24\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"system-ui, 'DejaVu Sans', 'Noto Sans CJK SC', "
      "sans-serif\">\n"
      "<title>{2}</title>\n<rect class=\"paper\" fill=\"#ffffff\" width=\"100%\" height=\"100%\"/>\n",
      at.width, at.height, tooltip(title, kLongestTooltip));
  if (!matrix.title.empty()) {
    out += fmt::format(
        "<text x=\"{}\" y=\"{}\" font-size=\"15\" font-weight=\"600\" fill=\"currentColor\">{}</text>\n",
        kMargin, kMargin + 14, xml_escaped(truncated(terminal_text(matrix.title), kLongestTitle)));
  }
  append_labels(out, matrix, at);
  append_cells(out, matrix, at);
  append_legend(out, at);
  return out + "</svg>\n";
}

}  // namespace regard::pictures
