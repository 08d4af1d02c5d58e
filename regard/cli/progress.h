#pragma once
// The one progress line of a running command, on standard error.

#include <chrono>
#include <string>
#include <string_view>

namespace regard::cli {

/// On a terminal a bar that is rewritten in place, at most ten times a second;
/// otherwise a plain line every few seconds, so that logs stay readable; with `quiet` nothing.
/// Errors of writing are ignored: progress is no result. For one thread.
class Progress {
 public:
  explicit Progress(bool quiet);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();  ///< finish()

  /// `line` without line breaks; `fraction` in [0, 1], or anything else where it is not known: then no bar.
  void show(const std::string& line, double fraction);

  /// Shows the last line if it was held back, and ends it. show() may begin a new one.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void write_last();

  bool quiet_;
  bool terminal_;
  std::string last_;
  double fraction_ = -1;
  bool held_back_ = false;  // last_ is not on the screen yet
  bool line_open_ = false;  // the cursor stands in a line that was drawn
  Clock::time_point next_;
};

/// "[#####-----]  50% line", cut to `columns`;
/// without a bar if `fraction` is not in [0, 1] or columns are few.
std::string progress_text(std::string_view line, double fraction, int columns);

}  // namespace regard::cli
