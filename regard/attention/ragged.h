#pragma once
// Rows of a decoder that look at sources of different lengths, which stand one behind the other: what
// additive, dot, general, concat, location and local attention share.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "regard/base/error.h"
#include "regard/base/span.h"
#include "regard/base/thread_pool.h"

namespace regard::attention {

/// Sentence b's keys and values are rows offsets[b]..offsets[b+1]. Row i looks at sentence sentences[i]
/// (empty: sentence i).
struct RaggedSources {
  std::span<const int64_t> offsets;      // [B + 1]
  std::span<const int32_t> sentences{};  // [R] or empty

  int64_t sentence(int64_t row) const {
    return sentences.empty() ? row : sentences[static_cast<size_t>(row)];
  }
  int64_t begin(int64_t row) const { return offsets[static_cast<size_t>(sentence(row))]; }
  int64_t length(int64_t row) const { return offsets[static_cast<size_t>(sentence(row)) + 1] - begin(row); }

  /// Throws ShapeError unless `rows` rows look at sentences that lie in `source_rows`. The longest S they
  /// look at.
  int64_t check(const std::string& operation, int64_t rows, int64_t source_rows) const;
  /// Whether two rows look at the same sentence, so that they add to the same gradients.
  bool repeat() const;
};

/// Throws ShapeError unless the view is [rows, columns] with column stride 1.
template <class T>
void check_matrix(const std::string& operation, const char* name, const MatrixView<T>& view, int64_t rows,
                  int64_t columns, const char* letters) {
  const std::array<int64_t, 2> shape = {view.rows, view.columns}, expected = {rows, columns};
  if (shape != expected)
    throw ShapeError("[" + operation + "] " + name + " " + shape_text(shape) + ", expected " +
                     shape_text(expected) + " (" + letters + ")");
  if (view.columns > 1 && view.column_stride != 1)
    throw ShapeError("[" + operation + "] " + name + " has column stride " +
                     std::to_string(view.column_stride) + ", expected 1");
}

constexpr int64_t kRowsPerPart = 4;
inline int64_t parts_of(int64_t rows) { return (rows + kRowsPerPart - 1) / kRowsPerPart; }

/// Calls body(part, first row, last row) for parts of kRowsPerPart rows.
template <class Body>
void for_parts(int64_t rows, ThreadPool* pool, const Body& body) {
  const auto part = [&](int64_t p) { body(p, p * kRowsPerPart, std::min(rows, (p + 1) * kRowsPerPart)); };
  if (pool)
    pool->parallel_for(parts_of(rows), part);
  else
    for (int64_t p = 0; p < parts_of(rows); ++p) part(p);
}

}  // namespace regard::attention
