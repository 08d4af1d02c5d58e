#include "regard/pictures/curve.h"

#include <gtest/gtest.h>

#include <cmath>

#include "regard/base/error.h"
#include "regard/pictures/report.h"
#include "regard/pictures/well_formed_xml.h"

namespace regard::pictures {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(Curve, RoundTicks) {
  EXPECT_EQ(round_ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(round_ticks(0.5, 9.1, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(round_ticks(-3, 3, 6), (std::vector<double>{-3, -2, -1, 0, 1, 2, 3}));
  EXPECT_EQ(round_ticks(5, 5, 2), (std::vector<double>{4.5, 5, 5.5}));
  EXPECT_LE(round_ticks(1e-300, 1e300, 5).size(), 100U);
}

TEST(Curve, IsWellFormedAndEscaped) {
  const std::string svg = svg_curve({"<loss>", "step & more", "\"nats\""},
                                    {{"train<", {0, 1, 2}, {3, 2, 1}}, {"valid", {0, 2}, {3, 2}}});
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_NE(svg.find("&lt;loss&gt;"), std::string::npos);
  EXPECT_NE(svg.find("train&lt;"), std::string::npos);
  EXPECT_NE(svg.find("points=\"70.0,68.0 405.0,196.0 740.0,324.0\""), std::string::npos) << svg;
}

TEST(Curve, GapsAndEmptySeries) {
  EXPECT_EQ(xml_fault(svg_curve({"t", "x", "y"}, {})), "");
  const std::string svg = svg_curve({"t", "x", "y"}, {{"a", {0, 1, 2, 3, 4}, {1, 2, kNaN, 4, 5}}});
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_NE(svg.find("<polyline", svg.find("<polyline") + 1), std::string::npos);
  EXPECT_EQ(svg_curve({"t", "x", "y"}, {{"a", {1}, {INFINITY}}}).find("inf"), std::string::npos);
}

TEST(Curve, LongSeriesAreThinnedAndKeepTheirExtremes) {
  Series line{"a", {}, {}};
  for (int i = 0; i < 200000; ++i) {
    line.x.push_back(i);
    line.y.push_back(i == 100000 ? 100 : i % 2);
  }
  const std::string svg = svg_curve({"", "x", "y"}, {line});
  EXPECT_LT(svg.size(), 40000U);
  EXPECT_NE(svg.find(",14.0 "), std::string::npos);
}

TEST(Curve, LengthsMustAgree) { EXPECT_THROW(svg_curve({}, {{"a", {1, 2}, {1}}}), ShapeError); }

TEST(Curve, Sparkline) {
  EXPECT_EQ(sparkline({0, 1, 2, 3, 4, 5, 6, 7}, 80), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(sparkline({0, 0, 7, 7}, 2), "▁█");
  EXPECT_EQ(sparkline({1, kNaN, 1}, 9), "▁ ▁");
  EXPECT_EQ(sparkline({}, 9), "");
  EXPECT_EQ(sparkline({1}, 0), "");
}

TEST(Report, HasEveryPartAndLeavesOutEmptyOnes) {
  Report report;
  report.title = "English <-> Esperanto";
  report.facts = {{"BLEU", "31.4 & more"}};
  report.curves = {{{"Loss", "step", "nats"}, {{"train", {0, 1}, {2, 1}}}}};
  report.samples = {{"a <b>", "", "c"}, {"d", "e", "f"}};
  report.matrices = {{{"a"}, {"b"}, {1}, "first"}};
  const std::string page = report_html(report);
  EXPECT_NE(page.find("<h1>English &lt;-&gt; Esperanto</h1>"), std::string::npos);
  EXPECT_NE(page.find("<dt>BLEU</dt><dd dir=\"auto\">31.4 &amp; more</dd>"), std::string::npos);
  EXPECT_NE(page.find("<dd dir=\"auto\">a &lt;b&gt;</dd>"), std::string::npos);
  EXPECT_EQ(page.find("Reference"), page.rfind("Reference"));
  EXPECT_NE(page.find("first"), std::string::npos);
  const std::string empty = report_html({});
  EXPECT_EQ(empty.find("<h2>"), std::string::npos);
  EXPECT_NE(empty.find("<h1>Report</h1>"), std::string::npos);
}

}  // namespace
}  // namespace regard::pictures
