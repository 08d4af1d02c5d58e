#pragma once
// One-hue scales for weights in [0, 1], in steps that look even: straight lines in OKLab (Ottosson 2020,
// bottosson.github.io/posts/oklab).

#include <cstdint>
#include <string>

namespace regard::pictures {

struct Rgb {
  uint8_t red = 0, green = 0, blue = 0;
};

/// Steps of the scales: a weight is shown as level 0 (the background) to kLevels.
inline constexpr int kLevels = 32;

/// The level of a weight: rounded, clamped to [0, kLevels]; -1 for a weight that is not a number.
int level_of(float weight);

/// White to strong blue, for light backgrounds and print.
Rgb light_scale(int level);

/// The dark page's background to a light blue.
Rgb dark_scale(int level);

/// "#0b4fb3"
std::string hex(Rgb colour);

/// The WCAG 2 contrast of two colours, 1 to 21; text needs 4.5 for AA.
double contrast(Rgb a, Rgb b);

}  // namespace regard::pictures
