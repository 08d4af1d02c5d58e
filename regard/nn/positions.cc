#include "regard/nn/positions.h"

#include <algorithm>
#include <cmath>

#include "regard/autograd/operations.h"

namespace regard::nn {

std::vector<int32_t> positions_of(const autograd::Ragged& sentences) {
  std::vector<int32_t> positions;
  positions.reserve(static_cast<size_t>(sentences.total()));
  for (int64_t b = 0; b < sentences.count(); ++b)
    for (int64_t t = 0; t < sentences.length(b); ++t) positions.push_back(static_cast<int32_t>(t));
  return positions;
}

Tensor sinusoids(std::span<const int32_t> positions, int64_t D, DType dtype) {
  const int64_t sines = (D + 1) / 2;
  const int32_t longest = positions.empty() ? -1 : *std::max_element(positions.begin(), positions.end());
  Tensor table = Tensor::empty({longest + 1, D}, DType::f64);
  const auto rows = table.as_matrix<double>();
  for (int64_t p = 0; p <= longest; ++p)
    for (int64_t i = 0; i < sines; ++i) {
      const double power = std::pow(10000.0, 2 * static_cast<double>(i) / static_cast<double>(D));
      rows(p, i) = std::sin(static_cast<double>(p) / power);
      if (sines + i < D) rows(p, sines + i) = std::cos(static_cast<double>(p) / power);
    }
  return autograd::rows(table.to(dtype), positions);
}

void AddedPositions::visit(const ParameterVisitor& visitor, const std::string& name, int64_t D,
                           PositionKind kind) {
  kind_ = kind;
  if (kind == PositionKind::learned) visitor(name, table_, {kLongest, D}, Initial::normal(0.02));
}

Tensor AddedPositions::operator()(const Tensor& x, std::span<const int32_t> positions) const {
  if (kind_ == PositionKind::sinusoid)
    return autograd::add(x, sinusoids(positions, x.dim(-1), x.dtype()));  // [R, D]
  if (kind_ != PositionKind::learned) return x;
  std::vector<int32_t> rows(positions.begin(), positions.end());
  for (int32_t& row : rows) row = std::min(row, static_cast<int32_t>(kLongest - 1));
  return autograd::add(x, autograd::rows(table_, rows));  // [R, D]
}

}  // namespace regard::nn
