#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "regard/pictures/check.h"
#include "regard/pictures/matrix.h"
#include "regard/pictures/page.h"
#include "regard/pictures/text.h"

namespace regard::pictures {
namespace {

constexpr size_t kLargestTable = 2500;  // cells
constexpr size_t kStrongest = 5;

std::string heading(const std::string& word, const char* scope) {
  return fmt::format("<th scope=\"{}\"><bdi>{}</bdi></th>", scope, xml_escaped(word));
}

void append_full_table(std::string& out, const AttentionMatrix& matrix) {
  out +=
      "<caption>Weight of each source word (across) for each target word "
      "(down)</caption>\n<thead><tr><td></td>";
  for (const auto& word : matrix.source) out += heading(word, "col");
  out += "</tr></thead>\n<tbody>\n";
  for (size_t t = 0; t < matrix.target.size(); ++t) {
    out += "<tr>" + heading(matrix.target[t], "row");
    for (size_t s = 0; s < matrix.source.size(); ++s) {
      const float weight = weight_at(matrix, t, s);
      out += std::isnan(weight) ? std::string("<td></td>") : fmt::format("<td>{:.2f}</td>", weight);
    }
    out += "</tr>\n";
  }
  out += "</tbody>\n";
}

/// The source positions of the largest weights of a row, strongest first; ties by position.
std::vector<size_t> strongest(const AttentionMatrix& matrix, size_t target) {
  std::vector<size_t> order;
  for (size_t s = 0; s < matrix.source.size(); ++s) {
    if (!std::isnan(weight_at(matrix, target, s))) order.push_back(s);
  }
  const size_t count = std::min(kStrongest, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](size_t a, size_t b) {
                      const float x = weight_at(matrix, target, a), y = weight_at(matrix, target, b);
                      return x != y ? x > y : a < b;
                    });
  order.resize(count);
  return order;
}

void append_strongest_table(std::string& out, const AttentionMatrix& matrix) {
  out +=
      "<caption>The source words with the largest weights for each target word</caption>\n"
      "<thead><tr><th scope=\"col\">Target</th><th scope=\"col\">Source: weight</th></tr></thead>\n<tbody>\n";
  for (size_t t = 0; t < matrix.target.size(); ++t) {
    out += "<tr>" + heading(matrix.target[t], "row") + "<td class=\"words\">";
    const char* separator = "";
    for (const size_t s : strongest(matrix, t)) {
      out += fmt::format("{}<bdi>{}</bdi>: {:.2f}", separator, xml_escaped(matrix.source[s]),
                         weight_at(matrix, t, s));
      separator = ", ";
    }
    out += "</td></tr>\n";
  }
  out += "</tbody>\n";
}

}  // namespace

std::string matrix_table(const AttentionMatrix& matrix) {
  check_shape(matrix);
  std::string out = "<table>\n";
  if (matrix.weights.size() <= kLargestTable) {
    append_full_table(out, matrix);
  } else {
    append_strongest_table(out, matrix);
  }
  return out + "</table>\n";
}

std::string matrix_html(const AttentionMatrix& matrix) {
  const std::string title = matrix.title.empty() ? "Attention" : matrix.title;
  AttentionMatrix untitled = matrix;
  untitled.title.clear();
  const std::string body =
      "<h1>" + xml_escaped(title) + "</h1>\n<figure><div class=\"scroll\">" + svg_matrix(untitled) +
      "</div></figure>\n<details open><summary>As a table</summary>\n" +
      "<div class=\"scroll\" tabindex=\"0\">" + matrix_table(matrix) + "</div></details>\n";
  return html_page(title, body);
}

}  // namespace regard::pictures
