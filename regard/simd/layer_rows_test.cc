#include "regard/simd/layer_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "regard/base/random.h"
#include "regard/simd/scalar_layers.h"
#include "tests/support/every_target.h"

namespace regard::simd {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;
using tests::on_every_target;

std::vector<int64_t> lengths() {
  std::vector<int64_t> n;
  for (int64_t i = 1; i <= 34; ++i) n.push_back(i);
  for (int64_t i : {63, 64, 65, 100, 256, 1000}) n.push_back(i);
  return n;
}

/// One more than n, to begin at an address that is not aligned.
Floats normals(int64_t n, uint64_t seed) {
  RandomStream random(seed, 1);
  Floats x(static_cast<size_t>(n) + 1);
  for (float& v : x) v = static_cast<float>(1.5 * random.normal());
  return x;
}
Doubles wide(const float* x, int64_t n) { return Doubles(x, x + n); }

void expect_near(const float* x, const Doubles& expected, double bound) {
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(static_cast<double>(x[i]), expected[i], bound * std::max(1.0, std::abs(expected[i]))) << i;
}

TEST(LayerRows, NormIsItsFormula) {
  on_every_target([] {
    for (const int64_t n : lengths()) {
      const Floats x = normals(n, 1), gain = normals(n, 2), bias = normals(n, 3), dy = normals(n, 4);
      const float* const p = x.data() + 1;
      Floats y(x.size()), dx(x.size()), dgain = normals(n, 5), dbias = normals(n, 6);
      Doubles ey(static_cast<size_t>(n)), edx = ey, egain = wide(dgain.data() + 1, n),
                                          ebias = wide(dbias.data() + 1, n);
      const Doubles wx = wide(p, n), wgain = wide(gain.data() + 1, n), wdy = wide(dy.data() + 1, n);
      const auto moments = layer_norm(p, gain.data() + 1, bias.data() + 1, 1e-2, y.data() + 1, n);
      const auto exact =
          layer_norm(wx.data(), wgain.data(), wide(bias.data() + 1, n).data(), 1e-2, ey.data(), n);
      EXPECT_NEAR(static_cast<double>(moments.mean), exact.mean, 1e-6);
      expect_near(y.data() + 1, ey, 4e-6);
      layer_norm_backward(p, moments, gain.data() + 1, dy.data() + 1, dx.data() + 1, dgain.data() + 1,
                          dbias.data() + 1, n);
      layer_norm_backward(wx.data(), exact, wgain.data(), wdy.data(), edx.data(), egain.data(), ebias.data(),
                          n);
      expect_near(dx.data() + 1, edx, 4e-5);
      expect_near(dgain.data() + 1, egain, 1e-5);
      expect_near(dbias.data() + 1, ebias, 1e-6);
    }
  });
}

TEST(LayerRows, NormOfKnownNumbers) {
  const Doubles x{1, 3}, gain{2, 3}, bias{10, 20};
  Doubles y(2);
  layer_norm(x.data(), gain.data(), bias.data(), 0, y.data(), 2);
  EXPECT_EQ(y, (Doubles{8, 23}));
}

TEST(LayerRows, SwishIsItsFormula) {
  on_every_target([] {
    for (const int64_t n : lengths()) {
      const Floats x = normals(n, 1), dy = normals(n, 2);
      Floats y(x.size()), dx(x.size());
      Doubles ey(static_cast<size_t>(n)), edx = ey;
      const Doubles wx = wide(x.data() + 1, n), wdy = wide(dy.data() + 1, n);
      swish(x.data() + 1, y.data() + 1, n);
      swish_backward(x.data() + 1, dy.data() + 1, dx.data() + 1, n);
      scalar::swish(wx.data(), ey.data(), n);
      scalar::swish_backward(wx.data(), wdy.data(), edx.data(), n);
      expect_near(y.data() + 1, ey, 2e-6);
      expect_near(dx.data() + 1, edx, 4e-6);
    }
  });
}

TEST(LayerRows, EluPlusOneIsItsFormula) {
  on_every_target([] {
    for (const int64_t n : lengths()) {
      const Floats x = normals(n, 1), dy = normals(n, 2);
      Floats y(x.size()), dx(x.size());
      Doubles ey(static_cast<size_t>(n)), edx = ey;
      elu_plus_one(x.data() + 1, y.data() + 1, n);
      elu_plus_one_backward(y.data() + 1, dy.data() + 1, dx.data() + 1, n);
      scalar::elu_plus_one(wide(x.data() + 1, n).data(), ey.data(), n);
      scalar::elu_plus_one_backward(ey.data(), wide(dy.data() + 1, n).data(), edx.data(), n);
      expect_near(y.data() + 1, ey, 4e-7);
      expect_near(dx.data() + 1, edx, 1e-6);
    }
    const Floats odd{NAN, 0, -INFINITY, INFINITY, -200, 3};
    Floats y(odd.size());
    elu_plus_one(odd.data(), y.data(), static_cast<int64_t>(odd.size()));
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_EQ(Floats(y.begin() + 1, y.end()), (Floats{1, 0, INFINITY, 0, 4}));
  });
}

TEST(LayerRows, DropoutKeepsWhatPhiloxSays) {
  on_every_target([] {
    for (const int64_t n : lengths()) {
      const DropoutRow row{0x123456789abcdefULL + static_cast<uint64_t>(n), 0x59999999U, 1 / 0.65};
      const Floats a = normals(n, 1), x = normals(n, 2);
      Floats y(x.size()), sum(x.size()), expected(x.size());
      dropout(x.data() + 1, y.data() + 1, n, row);
      add_dropout(a.data() + 1, x.data() + 1, sum.data() + 1, n, row);
      scalar::dropout(x.data() + 1, expected.data() + 1, n, row);
      EXPECT_EQ(y, expected);
      for (size_t i = 1; i < x.size(); ++i) EXPECT_EQ(sum[i], a[i] + expected[i]);
    }
  });
}

TEST(LayerRows, DropoutDropsItsShare) {
  const int64_t n = 100000;
  const Floats x(static_cast<size_t>(n), 1);
  Floats y(x.size());
  dropout(x.data(), y.data(), n, {5, 0x20000000U, 8.0 / 7});
  EXPECT_NEAR(static_cast<double>(std::count(y.begin(), y.end(), 0.f)) / static_cast<double>(n), 0.125,
              0.004);
}

}  // namespace
}  // namespace regard::simd
