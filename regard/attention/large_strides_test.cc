// Operands and results in rows that are more than 2^31 numbers apart: every form gives the bits that it gives
// on dense rows.

#include <gtest/gtest.h>

#include <vector>

#include "regard/attention/additive.h"
#include "regard/attention/attention.h"
#include "regard/attention/decode.h"
#include "regard/attention/linear.h"
#include "regard/attention/scores.h"
#include "regard/gemm/gemm.h"
#include "tests/support/every_target.h"
#include "tests/support/padded_matrix.h"
#include "tests/support/sparse_memory.h"

namespace regard::attention {
namespace {

using tests::on_every_target;

constexpr int64_t kFar = (int64_t{1} << 31) + 5, kRows = 4, kWidth = 8;

/// The same numbers twice: in dense rows, and in rows that are kFar apart.
class LargeStrides : public testing::Test {
 protected:
  void SetUp() override {
    if (!memory_.data) GTEST_SKIP() << "no 32 GB of address space";
  }
  struct Rows {
    std::vector<float> near;
    float* far;

    MatrixView<float> matrix(bool is_far) {
      return is_far ? MatrixView<float>{far, kRows, kWidth, kFar, 1}
                    : regard::matrix(near.data(), kRows, kWidth);
    }
    MatrixView<const float> in(bool is_far) { return matrix(is_far); }
    View4<float> view(bool is_far) {
      const MatrixView<float> x = matrix(is_far);
      return {x.data, {1, 1, kRows, kWidth}, {0, 0, x.row_stride, 1}};
    }
    void expect_equal() {
      for (int64_t i = 0; i < kRows; ++i)
        for (int64_t c = 0; c < kWidth; ++c) EXPECT_EQ(matrix(true)(i, c), matrix(false)(i, c));
    }
  };
  Rows normals() {
    Rows x{tests::normals<float>(kRows * kWidth, ++seed_), memory_.data + used_};
    used_ += kWidth;
    for (int64_t i = 0; i < kRows; ++i)
      for (int64_t c = 0; c < kWidth; ++c) x.matrix(true)(i, c) = x.matrix(false)(i, c);
    return x;
  }
  /// Calls `run(far)` on dense rows and on far ones, on every instruction set.
  template <class Run>
  static void both(const Run& run) {
    on_every_target([&] { run(false), run(true); });
  }

 private:
  tests::SparseMemory memory_{static_cast<size_t>(kFar) * kRows};
  int64_t used_ = 0;
  uint64_t seed_ = 0;
};

TEST_F(LargeStrides, Exact) {
  Rows q = normals(), k = normals(), v = normals(), out = normals(), d_out = normals();
  Rows d_q = normals(), d_k = normals(), d_v = normals();
  both([&](bool far) {
    std::vector<float> lse(kRows);
    const View3<float> l = dense(lse.data(), std::array<int64_t, 3>{1, 1, kRows});
    const AttentionOptions<float> causal{.causal = true};
    attention_forward(q.view(far), k.view(far), v.view(far), {.out = out.view(far), .log_sum_exp = l},
                      causal);
    attention_backward(
        q.view(far), k.view(far), v.view(far), out.view(far), l,
        {.d_out = d_out.view(far), .d_q = d_q.view(far), .d_k = d_k.view(far), .d_v = d_v.view(far)}, causal);
  });
  out.expect_equal(), d_q.expect_equal(), d_k.expect_equal(), d_v.expect_equal();
}

TEST_F(LargeStrides, Linear) {
  Rows q = normals(), k = normals(), v = normals(), out = normals(), d_out = normals();
  Rows d_q = normals(), d_k = normals(), d_v = normals();
  both([&](bool far) {
    linear_attention_forward(q.view(far), k.view(far), v.view(far), {}, out.view(far), {});
    LinearGradients<float> g;
    g.d_out = d_out.view(far), g.d_q = d_q.view(far), g.d_k = d_k.view(far), g.d_v = d_v.view(far);
    linear_attention_backward(q.view(far), k.view(far), v.view(far), {}, g);
  });
  out.expect_equal(), d_q.expect_equal(), d_k.expect_equal(), d_v.expect_equal();
}

TEST_F(LargeStrides, Decode) {
  Rows q = normals(), k = normals(), v = normals(), out = normals();
  both([&](bool far) {
    const DecodeCache<float> cache{k.view(far), v.view(far), {}};
    std::vector<float> scratch(static_cast<size_t>(decode_scratch_size(q.view(far), cache)));
    decode(q.view(far), cache, out.view(far), {}, scratch, {.causal = true});
  });
  out.expect_equal();
}

TEST_F(LargeStrides, AdditiveAndDot) {
  Rows q = normals(), k = normals(), v = normals(), context = normals(), weights = normals();
  Rows dot_context = normals(), dot_weights = normals();
  const std::vector<float> energy = tests::normals<float>(kWidth, 77);
  const std::vector<int64_t> offsets = {0, 1, 1, 3, 4};
  both([&](bool far) {
    additive_forward({q.in(far), k.in(far), v.in(far), energy.data(), offsets}, weights.matrix(far),
                     context.matrix(far));
    dot_forward({q.in(far), k.in(far), v.in(far), offsets}, dot_weights.matrix(far), dot_context.matrix(far));
  });
  context.expect_equal(), weights.expect_equal(), dot_context.expect_equal(), dot_weights.expect_equal();
}

TEST_F(LargeStrides, Products) {
  Rows a = normals(), b = normals(), c = normals();
  both([&](bool far) {  // A' B: K rows of each
    gemm::multiply(a.in(far).transposed().row_range(0, kRows), b.in(far), c.matrix(far));
  });
  c.expect_equal();
}

}  // namespace
}  // namespace regard::attention
