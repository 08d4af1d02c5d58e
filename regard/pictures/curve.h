#pragma once
// Curves over training steps and the like.

#include <string>
#include <string_view>
#include <vector>

namespace regard::pictures {

/// One line; x and y have the same length. A point that is not finite breaks the line.
struct Series {
  std::string name;
  std::vector<double> x, y;
};

struct CurveLabels {
  std::string title, x, y;
};

/// One <svg> element (class "curve"): axes with round ticks, a legend where there are several series. Long
/// series are thinned to the smallest and largest value of each pixel column. Throws ShapeError if x and y of
/// a series differ in length. No points: the axes alone.
std::string svg_curve(const CurveLabels& labels, const std::vector<Series>& series);

/// `values` as one line of at most `columns` block characters, ▁ smallest to █ largest; a value that is not
/// finite is a space. More values than columns: means of equal runs.
std::string sparkline(const std::vector<double>& values, int columns);

/// Round numbers that cover [low, high] in about `count` steps of 1, 2 or 5 times a power of ten.
/// low and high finite; equal ones are spread.
std::vector<double> round_ticks(double low, double high, int count);

}  // namespace regard::pictures
