#include "regard/autograd/pointer.h"

#include <cmath>
#include <limits>
#include <vector>

#include "regard/autograd/operations.h"
#include "regard/autograd/output_rows.h"
#include "regard/autograd/registry.h"
#include "regard/autograd/samples.h"

namespace regard::autograd {
namespace {

/// log sigmoid(z)
double log_sigmoid(double z) { return std::min(z, 0.0) - std::log1p(std::exp(-std::abs(z))); }

/// log(exp(a) + exp(b)), b finite
double log_add(double a, double b) { return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b))); }

void require_fit(const PointerInputs& in, const PointedWords& pointed) {
  const int64_t R = in.x.rows();
  if (in.W.dim(1) != in.x.dim(-1) || in.b.size() != in.W.dim(0) || in.z.shape() != Shape{R, 1} ||
      in.alpha.shape() != Shape{R, pointed.sources.longest()} ||
      static_cast<int64_t>(pointed.sentence_of.size()) != R ||
      static_cast<int64_t>(pointed.words.size()) != pointed.sources.total())
    throw ShapeError("[pointer] x " + shape_text(in.x.shape()) + ", W " + shape_text(in.W.shape()) + ", b " +
                     shape_text(in.b.shape()) + ", z " + shape_text(in.z.shape()) + ", alpha " +
                     shape_text(in.alpha.shape()) + " for " + std::to_string(pointed.words.size()) +
                     " source words");
  for (const int32_t word : pointed.words)
    if (word < 0 || word >= in.W.dim(0))
      throw ShapeError("[pointer] source word " + std::to_string(word) + " of " +
                       std::to_string(in.W.dim(0)));
}

/// Calls use(s, word) for the source positions of a row.
template <class Use>
void for_each_word(const PointedWords& pointed, int64_t row, Use&& use) {
  const int64_t b = pointed.sentence_of[static_cast<size_t>(row)];
  for (int64_t s = 0; s < pointed.sources.length(b); ++s)
    use(s, pointed.words[static_cast<size_t>(pointed.sources.begin(b) + s)]);
}

/// The rows of the loss, and what backward needs beside the output layer's gradients.
template <class T>
struct PointerRows {
  const PointerInputs& in;
  const PointedWords& pointed;
  double e, scale;     // smoothing and scale
  Tensor dz, d_alpha;  // undefined unless wanted

  /// With g = softmax(logits), s = sigmoid(z), a the weight on y in the source and m = s a + (1 - s) g_y,
  /// copied = s a / m and generated = 1 - copied are what y tells about the switch, and
  ///   d loss / d logits_j = ((1 - e) generated + e) g_j - (1 - e) generated [j = y] - e / V,
  /// the gradient of a cross-entropy with other smoothing and scale;
  ///   d loss / d z = (1 - e) (s - copied)      d loss / d alpha_s = - (1 - e) s / m  where x_s = y.
  double loss(int64_t r, int32_t y, T* logits, T* db) const {
    const int64_t V = in.W.dim(0);
    const T* const alpha = in.alpha.as_matrix<T>().row(r);
    double a = 0;
    for_each_word(pointed, r, [&](int64_t s, int32_t word) {
      if (word == y) a += static_cast<double>(alpha[s]);
    });
    const auto z = static_cast<double>(in.z.data<T>()[r]);
    const double log_g = static_cast<double>(logits[y]) - static_cast<double>(simd::log_sum_exp(logits, V));
    const double log_generated = log_sigmoid(-z) + log_g, log_switch = log_sigmoid(z);
    const double log_m = a > 0 ? log_add(log_switch + std::log(a), log_generated) : log_generated;
    const double generated = std::exp(log_generated - log_m), share = (1 - e) * generated + e;
    const double smoothing = share > 0 ? e / share : 0;
    const double smooth = simd::cross_entropy(logits, V, y, smoothing, static_cast<T>(scale * share), db);
    if (dz.defined()) {
      dz.data<T>()[r] = static_cast<T>(scale * (1 - e) * (std::exp(log_switch) - (1 - generated)));
      const auto d = static_cast<T>(-scale * (1 - e) * std::exp(log_switch - log_m));
      T* const row = d_alpha.as_matrix<T>().row(r);
      for_each_word(pointed, r, [&](int64_t s, int32_t word) {
        if (word == y) row[s] = d;
      });
    }
    // smooth = - (1 - e / share) log g_y - e / share mean_v log g_v
    return -(1 - e) * log_m + (share * smooth + (1 - e) * generated * log_g);
  }
};

}  // namespace

const Operation kPointerLoss("pointer_loss", [] {
  static const Ragged sources{{0, 3, 4}};
  static const std::vector<int32_t> words{2, 0, 2, 1}, sentence_of{0, 0, 1, 1}, y{2, 4, 1, 3};
  const auto compute = [](double smoothing) {
    return [smoothing](std::span<const Tensor> in) {
      return pointer_loss({in[0], in[1], in[2], in[3], sigmoid(in[4])}, {words, sources, sentence_of}, y,
                          smoothing, 0.5);
    };
  };
  const std::initializer_list<Shape> shapes{{4, 3}, {5, 3}, {5}, {4, 1}, {4, 3}};
  return std::vector{sample("no smoothing", shapes, compute(0)),
                     sample("smoothing 0.1", shapes, compute(0.1))};
});

Tensor pointer_loss(const PointerInputs& in, const PointedWords& pointed, std::span<const int32_t> y,
                    double smoothing, double scale) {
  require_fit(in, pointed);
  if (static_cast<int64_t>(y.size()) != in.x.rows())
    throw ShapeError("[pointer_loss] x " + shape_text(in.x.shape()) + ", " + std::to_string(y.size()) +
                     " targets");
  for (const int32_t word : y)
    if (word < 0 || word >= in.W.dim(0))
      throw ShapeError("[pointer_loss] target " + std::to_string(word) + " of " +
                       std::to_string(in.W.dim(0)));
  return dispatch(in.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto nx = input(in.x), nW = input(in.W), nb = input(in.b), nz = input(in.z), na = input(in.alpha);
    const bool wanted = nx || nW || nb || nz || na;
    PointerRows<T> row{in, pointed, smoothing, scale, {}, {}};
    if (wanted) {
      row.dz = Tensor::zeros(in.z.shape(), in.z.dtype());
      row.d_alpha = Tensor::zeros(in.alpha.shape(), in.alpha.dtype());
    }
    const OutputRows rows = output_rows<T>(in.x, in.W, in.b, wanted, [&](int64_t r, T* logits, T* db) {
      return row.loss(r, y[static_cast<size_t>(r)], logits, db);
    });
    Tensor result = Tensor::full({1}, rows.loss * scale, in.x.dtype());
    if (!wanted) return result;
    return record(kPointerLoss, result, [=, dz = row.dz, d_alpha = row.d_alpha](const Tensor& d) {
      const double factor = static_cast<double>(d.data<T>()[0]);
      contribute_scaled(nx, rows.dx, factor);
      contribute_scaled(nW, rows.dW, factor);
      contribute_scaled(nb, rows.db, factor);
      contribute_scaled(nz, dz, factor);
      contribute_scaled(na, d_alpha, factor);
    });
  });
}

Tensor pointer_log_probabilities(const PointerInputs& in, const PointedWords& pointed) {
  require_fit(in, pointed);
  return dispatch(in.x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const int64_t V = in.W.dim(0);
    const Tensor log_p = linear(in.x, in.W, in.b);
    std::vector<double> copied(static_cast<size_t>(V));  // sum_{s: x_s = v} alpha_s of the row at hand
    for (int64_t r = 0; r < in.x.rows(); ++r) {
      T* const row = log_p.as_matrix<T>().row(r);
      const auto z = static_cast<double>(in.z.data<T>()[r]);
      const T shift = static_cast<T>(log_sigmoid(-z) - static_cast<double>(simd::log_sum_exp(row, V)));
      for (int64_t v = 0; v < V; ++v) row[v] += shift;  // log p(u = 0) + log softmax
      const T* const alpha = in.alpha.as_matrix<T>().row(r);
      for_each_word(pointed, r, [&](int64_t s, int32_t word) {
        copied[static_cast<size_t>(word)] += static_cast<double>(alpha[s]);
      });
      for_each_word(pointed, r, [&](int64_t, int32_t word) {
        double& a = copied[static_cast<size_t>(word)];
        if (a > 0)
          row[word] = static_cast<T>(log_add(log_sigmoid(z) + std::log(a), static_cast<double>(row[word])));
        a = 0;  // once a word
      });
    }
    return log_p;
  });
}

}  // namespace regard::autograd
