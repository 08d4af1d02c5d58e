#pragma once
// The report on a trained model: one HTML page to keep and to pass on.

#include <string>
#include <utility>
#include <vector>

#include "regard/pictures/curve.h"
#include "regard/pictures/matrix.h"

namespace regard::pictures {

struct Curve {
  CurveLabels labels;
  std::vector<Series> series;
};

/// A sentence with its translation. `reference` may be empty: then it is not shown.
struct Sample {
  std::string source, reference, hypothesis;
};

struct Report {
  std::string title;
  std::vector<std::pair<std::string, std::string>> facts;  ///< name, value
  std::vector<Curve> curves;
  std::vector<Sample> samples;
  std::vector<AttentionMatrix> matrices;
};

/// One self-contained HTML page: facts, curves, samples, matrices (each also as a table); parts that are
/// empty are left out. Light and dark. Throws ShapeError as svg_curve and svg_matrix do.
std::string report_html(const Report& report);

}  // namespace regard::pictures
