#include "regard/pictures/curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "regard/base/error.h"
#include "regard/pictures/text.h"

namespace regard::pictures {
namespace {

constexpr double kWidth = 760, kHeight = 380, kLeft = 70, kRight = 20, kBottom = 56;
constexpr std::array<std::string_view, 6> kColours = {"#0b4fb3", "#b3500b", "#0b7a55",
                                                      "#a3296f", "#75620a", "#6a45c9"};
constexpr std::array<std::string_view, 3> kDashes = {"", "7 4", "2 3"};

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

struct Frame {
  double top = 0;
  std::vector<double> x_ticks, y_ticks;
  double x0 = 0, x1 = 1, y0 = 0, y1 = 1;  // data at the edges
  double x(double value) const { return kLeft + (value - x0) / (x1 - x0) * (kWidth - kLeft - kRight); }
  double y(double value) const {
    return kHeight - kBottom - (value - y0) / (y1 - y0) * (kHeight - kBottom - top);
  }
};

bool finite(const Series& line, size_t i) { return std::isfinite(line.x[i]) && std::isfinite(line.y[i]); }

void check_lengths(const std::vector<Series>& series) {
  for (const Series& line : series) {
    if (line.x.size() == line.y.size()) continue;
    const std::array<int64_t, 1> x = {static_cast<int64_t>(line.x.size())},
                                 y = {static_cast<int64_t>(line.y.size())};
    throw ShapeError("[curve] y " + shape_text(y) + " of '" + line.name + "', expected as many as x " +
                     shape_text(x));
  }
}

Frame frame_of(const std::vector<Series>& series, double top) {
  Range x, y;
  for (const Series& line : series) {
    for (size_t i = 0; i < line.x.size(); ++i) {
      if (!finite(line, i)) continue;
      x.include(line.x[i]);
      y.include(line.y[i]);
    }
  }
  if (x.low > x.high) x = {0, 1}, y = {0, 1};
  Frame frame;
  frame.top = top;
  frame.x_ticks = round_ticks(x.low, x.high, 7);
  frame.y_ticks = round_ticks(y.low, y.high, 5);
  frame.x0 = x.low < x.high ? x.low : frame.x_ticks.front();
  frame.x1 = x.low < x.high ? x.high : frame.x_ticks.back();
  frame.y0 = frame.y_ticks.front();
  frame.y1 = frame.y_ticks.back();
  return frame;
}

std::string number(double value, double step) {
  const double size = std::abs(value);
  if (size != 0 && (size >= 1e9 || size < 1e-4)) return fmt::format("{:.3g}", value);
  const int digits = std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 6);
  std::string whole = fmt::format("{:.{}f}", size, digits);
  const size_t point = std::min(whole.find('.'), whole.size());
  for (size_t at = point; at > 3; at -= 3) whole.insert(at - 3, "\u2009");
  return (value < 0 ? "−" : "") + whole;
}

double step_of(const std::vector<double>& ticks) { return ticks.size() > 1 ? ticks[1] - ticks[0] : 1; }

void append_axes(std::string& out, const Frame& frame, const CurveLabels& labels) {
  const double bottom = kHeight - kBottom, right = kWidth - kRight;
  out += "<g stroke=\"currentColor\" stroke-opacity=\"0.18\">\n";
  for (const double tick : frame.y_ticks) {
    out += fmt::format("<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n", kLeft, right,
                       frame.y(tick), frame.y(tick));
  }
  out += fmt::format("</g>\n<line stroke=\"currentColor\" x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/>\n", kLeft,
                     right, bottom, bottom);
  out += "<g font-size=\"12\" fill=\"currentColor\" text-anchor=\"end\">\n";
  for (const double tick : frame.y_ticks) {
    out += fmt::format("<text x=\"{}\" y=\"{:.1f}\">{}</text>\n", kLeft - 8, frame.y(tick) + 4,
                       number(tick, step_of(frame.y_ticks)));
  }
  out += "</g>\n<g font-size=\"12\" fill=\"currentColor\" text-anchor=\"middle\">\n";
  for (const double tick : frame.x_ticks) {
    if (tick < frame.x0 || tick > frame.x1) continue;
    const double x = frame.x(tick);
    out += fmt::format("<line stroke=\"currentColor\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>",
                       x, bottom, bottom + 5);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\">{}</text>\n", x, bottom + 19,
                       number(tick, step_of(frame.x_ticks)));
  }
  out += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", (kLeft + right) / 2, kHeight - 12,
                     xml_escaped(labels.x));
  out += fmt::format("<text transform=\"translate(16 {:.1f}) rotate(-90)\">{}</text>\n</g>\n",
                     (frame.top + bottom) / 2, xml_escaped(labels.y));
}

/// The points to draw: of each run of points that share a pixel column the smallest and the largest.
std::vector<size_t> thinned(const Series& line, size_t begin, size_t end, const Frame& frame) {
  std::vector<size_t> result;
  while (begin < end) {
    const double column = std::floor(frame.x(line.x[begin]));
    size_t low = begin, high = begin, next = begin;
    for (; next < end && std::floor(frame.x(line.x[next])) == column; ++next) {
      if (line.y[next] < line.y[low]) low = next;
      if (line.y[next] > line.y[high]) high = next;
    }
    result.push_back(std::min(low, high));
    if (low != high) result.push_back(std::max(low, high));
    begin = next;
  }
  return result;
}

void append_line(std::string& out, const Series& line, size_t which, const Frame& frame) {
  const auto colour = kColours[which % kColours.size()];
  const auto dash = kDashes[which / kColours.size() % kDashes.size()];
  out += fmt::format(
      "<g class=\"s{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\" stroke-linejoin=\"round\" "
      "stroke-linecap=\"round\"{}>\n<title>{}</title>\n",
      which % kColours.size(), colour, dash.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", dash),
      xml_escaped(line.name));
  for (size_t begin = 0; begin < line.x.size();) {
    size_t end = begin;
    while (end < line.x.size() && finite(line, end)) ++end;
    const auto shown = thinned(line, begin, end, frame);
    if (shown.size() == 1) {
      out += fmt::format("<circle r=\"2\" cx=\"{:.1f}\" cy=\"{:.1f}\"/>\n", frame.x(line.x[begin]),
                         frame.y(line.y[begin]));
    } else if (!shown.empty()) {
      out += "<polyline points=\"";
      for (const size_t i : shown)
        out += fmt::format("{:.1f},{:.1f} ", frame.x(line.x[i]), frame.y(line.y[i]));
      out.back() = '"';
      out += "/>\n";
    }
    begin = end + 1;
  }
  out += "</g>\n";
}

/// Rows of legend entries, wrapped to the width; returns where the plot may begin.
double append_legend(std::string& out, const std::vector<Series>& series, double y) {
  if (series.size() < 2) return y;
  double x = kLeft;
  for (size_t i = 0; i < series.size(); ++i) {
    const std::string name = truncated(terminal_text(series[i].name), 40);
    const double length = 34 + display_width(name) * 7.6 + 18;
    if (x > kLeft && x + length > kWidth - kRight) x = kLeft, y += 20;
    const auto dash = kDashes[i / kColours.size() % kDashes.size()];
    out += fmt::format(
        "<line class=\"s{}\" stroke=\"{}\" stroke-width=\"3\" stroke-dasharray=\"{}\" x1=\"{:.1f}\" "
        "x2=\"{:.1f}\" "
        "y1=\"{}\" y2=\"{}\"/><text font-size=\"12\" fill=\"currentColor\" x=\"{:.1f}\" y=\"{}\">{}</text>\n",
        i % kColours.size(), kColours[i % kColours.size()], dash.empty() ? "none" : dash, x, x + 26, y + 8,
        y + 8, x + 34, y + 12, xml_escaped(name));
    x += length;
  }
  return y + 28;
}

}  // namespace

std::vector<double> round_ticks(double low, double high, int count) {
  if (low == high) {
    const double spread = low == 0 ? 1 : std::abs(low) * 0.1;
    low -= spread;
    high += spread;
  }
  const double rough = (high - low) / std::max(1, count);
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough * (1 - 1e-9)) step = factor * power;
  }
  const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
  std::vector<double> result;
  for (double k = first; k <= last && result.size() < 100; ++k) result.push_back(k * step);
  return result;
}

std::string svg_curve(const CurveLabels& labels, const std::vector<Series>& series) {
  check_lengths(series);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"curve\" role=\"img\" color=\"#1b1f24\" "
      "width=\"{0}\" "
      "height=\"{1}\" viewBox=\"0 0 {0} {1}\" font-family=\"system-ui, 'DejaVu Sans', sans-serif\">\n"
      "<title>{2}</title>\n<rect class=\"paper\" fill=\"#ffffff\" width=\"100%\" height=\"100%\"/>\n",
      kWidth, kHeight, xml_escaped(labels.title.empty() ? labels.y : labels.title));
  double top = 14;
  if (!labels.title.empty()) {
    out += fmt::format(
        "<text x=\"{}\" y=\"24\" font-size=\"15\" font-weight=\"600\" fill=\"currentColor\">{}</text>\n",
        kLeft, xml_escaped(truncated(terminal_text(labels.title), 80)));
    top = 40;
  }
  top = append_legend(out, series, top);
  const Frame frame = frame_of(series, std::min(top, kHeight - kBottom - 60));
  append_axes(out, frame, labels);
  for (size_t i = 0; i < series.size(); ++i) append_line(out, series[i], i, frame);
  return out + "</svg>\n";
}

std::string sparkline(const std::vector<double>& values, int columns) {
  constexpr std::array<std::string_view, 8> kBars = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const size_t count = std::min(values.size(), static_cast<size_t>(std::max(columns, 0)));
  std::vector<double> means;
  Range range;
  for (size_t i = 0; i < count; ++i) {
    const size_t begin = i * values.size() / count, end = (i + 1) * values.size() / count;
    double sum = 0;
    for (size_t k = begin; k < end; ++k) sum += values[k];
    means.push_back(sum / static_cast<double>(end - begin));
    if (std::isfinite(means.back())) range.include(means.back());
  }
  std::string out;
  for (const double mean : means) {
    const double share = range.high > range.low ? (mean - range.low) / (range.high - range.low) : 0;
    out += std::isfinite(mean) ? kBars[static_cast<size_t>(std::lround(share * 7))] : std::string_view(" ");
  }
  return out;
}

}  // namespace regard::pictures
