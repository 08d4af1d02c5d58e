#pragma once
// Pictures of one attention matrix: on the terminal, as SVG, as a self-contained HTML page, and as PNG by
// gnuplot. Every function throws ShapeError unless weights.size() == source.size() * target.size(). Words may
// be any bytes. A weight that is not a number is an empty cell; others are clamped to [0, 1].

#include <filesystem>
#include <string>
#include <vector>

namespace regard::pictures {

/// Which source words (across) each target word (down) attended to.
struct AttentionMatrix {
  std::vector<std::string> source, target;
  std::vector<float> weights;  ///< [target][source]; rows sum to about 1
  std::string title;
};

struct TerminalOptions {
  bool colour = false;       ///< shades as coloured backgrounds (256 colours) instead of block characters
  bool true_colour = false;  ///< with `colour`: 24-bit colours
  int width = 80;            ///< columns of the terminal
};

/// Rows are target words, columns are source words, written downwards above. What is wider than the terminal
/// is cut into blocks of columns; words are shortened where they must be. Ends with a legend and a newline.
std::string terminal_matrix(const AttentionMatrix& matrix, const TerminalOptions& options = {});

/// One <svg> element that stands alone and may be put into HTML as it is.
/// Cells carry the classes k0 to k32, and as <title> their words (at most 60 columns of each)
/// and weight; the labels' <title> has 400 columns.
/// With more than 4096 cells those that would be white are left out,
/// and titles give positions, "target, source".
std::string svg_matrix(const AttentionMatrix& matrix);

/// The matrix as an HTML table (without a page around it) for those who read and do not see. With more than
/// 2500 cells: the five strongest source words of each target word.
std::string matrix_table(const AttentionMatrix& matrix);

/// One HTML page, light and dark, nothing loaded from elsewhere: the SVG and the table.
std::string matrix_html(const AttentionMatrix& matrix);

/// Tab-separated: a header with the source words, then a line for each target word and its weights. Tabs,
/// line breaks and control characters in words are written as \t, \n and so on.
std::string matrix_tsv(const AttentionMatrix& matrix);

struct PngOptions {
  std::string program = "gnuplot";  ///< looked for on PATH unless it has a slash; run without a shell
};

/// Draws `path` with gnuplot's pngcairo, and writes the data to `path`.tsv first
/// (kept also when drawing fails). Throws SystemError if gnuplot is missing
/// (naming the package gnuplot-nox), fails, or a file cannot be written.
void write_png(const std::filesystem::path& path, const AttentionMatrix& matrix,
               const PngOptions& options = {});

}  // namespace regard::pictures
