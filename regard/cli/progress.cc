#include "regard/cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "regard/pictures/text.h"

namespace regard::cli {
namespace {

constexpr std::chrono::milliseconds kOnTerminal{100}, kInLogs{5000};

int terminal_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

bool is_known(double fraction) { return fraction >= 0 && fraction <= 1; }

void write_error(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

std::string progress_text(std::string_view line, double fraction, int columns) {
  const std::string text = pictures::terminal_text(line);
  constexpr int kBar = 24, kFewest = 60;
  if (!is_known(fraction) || columns < kFewest) return pictures::truncated(text, columns);
  const auto full = static_cast<size_t>(std::floor(fraction * kBar));
  const std::string bar = std::string(full, '#') + std::string(kBar - full, '-');
  return pictures::truncated(fmt::format("[{}] {:3.0f}% {}", bar, std::floor(100 * fraction), text), columns);
}

Progress::Progress(bool quiet)
    : quiet_(quiet), terminal_(::isatty(STDERR_FILENO) == 1), next_(Clock::now()) {}

Progress::~Progress() { finish(); }

void Progress::show(const std::string& line, double fraction) {
  if (quiet_) return;
  last_ = line;
  fraction_ = fraction;
  held_back_ = true;
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + (terminal_ ? kOnTerminal : kInLogs);
  write_last();
}

void Progress::write_last() {
  held_back_ = false;
  if (!terminal_) {
    const std::string share = is_known(fraction_) ? fmt::format("{:.0f}% ", std::floor(100 * fraction_)) : "";
    write_error(share + pictures::terminal_text(last_) + "\n");
    return;
  }
  // The last column stays free: some terminals wrap when it is written.
  write_error("\r\x1b[K" + progress_text(last_, fraction_, terminal_columns() - 1));
  line_open_ = true;
}

void Progress::finish() {
  if (quiet_) return;
  if (held_back_) write_last();
  if (line_open_) write_error("\n");
  line_open_ = false;
  next_ = Clock::now();
}

}  // namespace regard::cli
