#pragma once
// Errors that reach a person: what happened, where, and what to do about it.
// Libraries throw; only the command prints.

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace regard {

/// What kind of mistake an error reports.
/// The command maps kinds to exit codes: internal 1, usage 2, data 3, system 4.
enum class ErrorKind { internal, usage, data, system };

/// The base of all errors that Regard throws; `message` is one line for a person.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

/// An operand has the wrong shape. Messages read "[operation] operand [2, 7], expected [2, 8] (S)".
class ShapeError : public Error {
 public:
  explicit ShapeError(const std::string& message) : Error(ErrorKind::internal, message) {}
};

/// Options that do not fit each other or the model. Exit code 2.
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& message) : Error(ErrorKind::usage, message) {}
};

/// Content that cannot be used. Exit code 3. Messages read "FILE:LINE: what; remedy".
class DataError : public Error {
 public:
  explicit DataError(const std::string& message) : Error(ErrorKind::data, message) {}
  /// `line` counts from 1; 0 leaves it out.
  DataError(std::string_view file, int64_t line, std::string_view message)
      : Error(ErrorKind::data, std::string(file) + (line > 0 ? ":" + std::to_string(line) : "") + ": " +
                                   std::string(message)) {}
};

/// A file or the system refuses: missing, no permission, disk full.
/// Exit code 4. `error_number` is errno, 0 leaves it out.
class SystemError : public Error {
 public:
  explicit SystemError(const std::string& message, int error_number = 0);
  int error_number() const { return error_number_; }

 private:
  int error_number_;
};

/// "[2, 7, 64]"
std::string shape_text(std::span<const int64_t> shape);

}  // namespace regard
