#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "regard/pictures/check.h"
#include "regard/pictures/colour.h"
#include "regard/pictures/matrix.h"
#include "regard/pictures/text.h"

namespace regard::pictures {
namespace {

constexpr int kCell = 2;           // columns of a cell: about square, and a CJK character fits above
constexpr int kLongestLabel = 24;  // columns of a target word
constexpr size_t kTallest = 16;    // characters of a source word, written downwards

struct Shade {
  float from;
  std::string_view block;
};
constexpr std::array<Shade, 4> kShades = {{{0.05F, "░░"}, {0.25F, "▒▒"}, {0.5F, "▓▓"}, {0.75F, "██"}}};

// White to dark blue among xterm's 256 colours.
constexpr std::array<int, 9> kPalette = {231, 189, 153, 111, 69, 27, 26, 25, 18};

std::string padded(const std::string& text, int columns) {
  return text + std::string(static_cast<size_t>(std::max(0, columns - display_width(text))), ' ');
}

std::string_view block_of(float weight) {
  std::string_view block = "  ";
  for (const Shade& shade : kShades) {
    if (weight >= shade.from) block = shade.block;
  }
  return block;
}

/// `text` on the background of a level.
std::string on_colour(int level, std::string_view text, bool true_colour) {
  if (true_colour) {
    const Rgb colour = light_scale(level);
    return fmt::format("\x1b[48;2;{};{};{}m{}\x1b[0m", colour.red, colour.green, colour.blue, text);
  }
  const auto step = static_cast<size_t>(std::lround(level * (kPalette.size() - 1.0) / kLevels));
  return fmt::format("\x1b[48;5;{}m{}\x1b[0m", kPalette[step], text);
}

std::string cell_text(float weight, const TerminalOptions& options) {
  if (std::isnan(weight)) return std::string(kCell, ' ');
  if (!options.colour) return std::string(block_of(weight));
  return on_colour(level_of(weight), "  ", options.true_colour);
}

/// The characters of a source word from top to bottom, each exactly kCell columns wide.
std::vector<std::string> downwards(const std::string& word) {
  auto parts = graphemes(terminal_text(word));
  if (parts.size() > kTallest) {
    parts.resize(kTallest - 1);
    parts.push_back({"…", 1});
  }
  std::vector<std::string> result;
  for (const Grapheme& part : parts) {
    const int space = kCell - part.width;
    if (space >= 0) result.push_back(part.bytes + std::string(static_cast<size_t>(space), ' '));
  }
  return result;
}

void append_line(std::string& out, std::string line) {
  while (!line.empty() && line.back() == ' ') line.pop_back();
  out += line;
  out += '\n';
}

void append_source_words(std::string& out, const AttentionMatrix& matrix, size_t begin, size_t end,
                         int label) {
  std::vector<std::vector<std::string>> words;
  size_t height = 0;
  for (size_t s = begin; s < end; ++s) {
    words.push_back(downwards(matrix.source[s]));
    height = std::max(height, words.back().size());
  }
  for (size_t row = 0; row < height; ++row) {
    std::string line(static_cast<size_t>(label) + 1, ' ');
    for (const auto& word : words) {
      const size_t above = height - word.size();
      line += row < above ? std::string(kCell, ' ') : word[row - above];
    }
    append_line(out, std::move(line));
  }
}

std::string legend(const TerminalOptions& options) {
  std::string line = "weight ";
  if (!options.colour) {
    for (const Shade& shade : kShades) line += fmt::format(" {} ≥ {}", shade.block, shade.from);
    return line + "\n";
  }
  line += "0 ";
  constexpr int kSteps = 8;
  for (int step = 0; step <= kSteps; ++step)
    line += on_colour(step * kLevels / kSteps, "  ", options.true_colour);
  return line + " 1\n";
}

}  // namespace

std::string terminal_matrix(const AttentionMatrix& matrix, const TerminalOptions& options) {
  check_shape(matrix);
  const int width = std::max(options.width, 8);
  const int most = std::min(kLongestLabel, width / 3);
  std::vector<std::string> labels;
  int label = 0;
  for (const auto& word : matrix.target) {
    labels.push_back(truncated(terminal_text(word), most));
    label = std::max(label, display_width(labels.back()));
  }
  const auto columns = static_cast<size_t>(std::max(1, (width - label - 1) / kCell));
  const size_t sources = matrix.source.size();

  std::string out;
  if (!matrix.title.empty()) append_line(out, truncated(terminal_text(matrix.title), width));
  if (matrix.target.empty() || matrix.source.empty()) return out + "(no words)\n";
  for (size_t begin = 0; begin < sources; begin += columns) {
    const size_t end = std::min(sources, begin + columns);
    if (begin > 0) out += '\n';
    if (columns < sources) out += fmt::format("source words {} to {} of {}\n", begin + 1, end, sources);
    append_source_words(out, matrix, begin, end, label);
    for (size_t t = 0; t < labels.size(); ++t) {
      std::string line = padded(labels[t], label) + ' ';
      for (size_t s = begin; s < end; ++s) line += cell_text(weight_at(matrix, t, s), options);
      append_line(out, std::move(line));
    }
  }
  return out + legend(options);
}

}  // namespace regard::pictures
