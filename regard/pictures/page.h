#pragma once
// The frame of every HTML page that Regard writes.

#include <string>
#include <string_view>

namespace regard::pictures {

/// A whole self-contained HTML page around `body` (HTML). `title` is plain text.
/// Text contrast is AA in the light and the dark scheme, which follows the reader's setting;
/// nothing is loaded from elsewhere and there is no script.
std::string html_page(std::string_view title, std::string_view body);

}  // namespace regard::pictures
