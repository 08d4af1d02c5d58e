#pragma once
// Interruption by a person or the system: noted, so that a verb can end in order.

#include <csignal>

namespace regard::cli {

/// While it lives, the first SIGINT or SIGTERM is noted instead of ending the program;
/// a second one ends it as usual.
class Interruption {
 public:
  Interruption() {
    noted() = 0;
    struct sigaction action {};
    action.sa_handler = [](int) { noted() = 1; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(SIGINT, &action, &interrupt_);
    ::sigaction(SIGTERM, &action, &terminate_);
  }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  ~Interruption() {
    ::sigaction(SIGINT, &interrupt_, nullptr);
    ::sigaction(SIGTERM, &terminate_, nullptr);
  }
  static bool happened() { return noted() != 0; }

 private:
  static volatile std::sig_atomic_t& noted() {
    static volatile std::sig_atomic_t value = 0;
    return value;
  }
  struct sigaction interrupt_ {
  }, terminate_{};
};

/// Thrown after an interrupted run was saved: exit code 130.
struct Interrupted {};

}  // namespace regard::cli
