#include "regard/base/error.h"

#include <system_error>

namespace regard {

SystemError::SystemError(const std::string& message, int error_number)
    : Error(ErrorKind::system,
            error_number ? message + ": " + std::generic_category().message(error_number) : message),
      error_number_(error_number) {}

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

}  // namespace regard
