#include "regard/pictures/colour.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace regard::pictures {
namespace {

using Triple = std::array<double, 3>;

constexpr Rgb kWhite = {255, 255, 255};
constexpr Rgb kStrongBlue = {8, 60, 160};
constexpr Rgb kDarkPaper = {20, 24, 31};
constexpr Rgb kLightBlue = {140, 200, 255};

double linear(uint8_t channel) {
  const double value = channel / 255.0;
  return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
}

uint8_t encoded(double value) {
  const double clamped = std::clamp(value, 0.0, 1.0);
  const double gamma = clamped <= 0.0031308 ? 12.92 * clamped : 1.055 * std::pow(clamped, 1 / 2.4) - 0.055;
  return static_cast<uint8_t>(std::lround(255 * gamma));
}

Triple oklab(Rgb colour) {
  const double r = linear(colour.red), g = linear(colour.green), b = linear(colour.blue);
  const double l = std::cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const double m = std::cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const double s = std::cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return {0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
          1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
          0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s};
}

Rgb from_oklab(const Triple& lab) {
  const double l = std::pow(lab[0] + 0.3963377774 * lab[1] + 0.2158037573 * lab[2], 3);
  const double m = std::pow(lab[0] - 0.1055613458 * lab[1] - 0.0638541728 * lab[2], 3);
  const double s = std::pow(lab[0] - 0.0894841775 * lab[1] - 1.2914855480 * lab[2], 3);
  return {encoded(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
          encoded(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
          encoded(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s)};
}

Rgb between(Rgb from, Rgb to, int level) {
  const double share = std::clamp(level, 0, kLevels) / static_cast<double>(kLevels);
  const Triple a = oklab(from), b = oklab(to);
  return from_oklab(
      {a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1]), a[2] + share * (b[2] - a[2])});
}

double luminance(Rgb c) {
  return 0.2126 * linear(c.red) + 0.7152 * linear(c.green) + 0.0722 * linear(c.blue);
}

}  // namespace

int level_of(float weight) {
  if (std::isnan(weight)) return -1;
  return static_cast<int>(std::lround(std::clamp(weight, 0.0F, 1.0F) * kLevels));
}

Rgb light_scale(int level) { return between(kWhite, kStrongBlue, level); }

Rgb dark_scale(int level) { return between(kDarkPaper, kLightBlue, level); }

std::string hex(Rgb colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", colour.red, colour.green, colour.blue);
}

double contrast(Rgb a, Rgb b) {
  const double x = luminance(a), y = luminance(b);
  return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

}  // namespace regard::pictures
