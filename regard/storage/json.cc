#include "regard/storage/json.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "regard/base/error.h"

namespace regard {
namespace {

constexpr size_t kDepth = 32;

const char* kind_text(const boost::json::value& value) {
  switch (value.kind()) {
    case boost::json::kind::null:
      return "null";
    case boost::json::kind::bool_:
      return "true or false";
    case boost::json::kind::string:
      return "a string";
    case boost::json::kind::array:
      return "a list";
    case boost::json::kind::object:
      return "an object";
    default:
      return "a number";
  }
}

[[noreturn]] void fail(std::string_view name, std::string_view key, const std::string& what) {
  throw DataError(name, 0, "\"" + std::string(key) + "\": " + what);
}

const boost::json::value& member(const boost::json::object& object, std::string_view key,
                                 std::string_view name) {
  const boost::json::value* value = object.if_contains({key.data(), key.size()});
  if (!value) fail(name, key, "missing");
  return *value;
}

[[noreturn]] void fail_kind(std::string_view name, std::string_view key, const char* expected,
                            const boost::json::value& found) {
  fail(name, key, std::string("expected ") + expected + ", found " + kind_text(found));
}

void print(const boost::json::value& value, size_t level, std::string& out);

void print_members(const boost::json::object& object, size_t level, std::string& out) {
  if (object.empty()) {
    out += "{}";
    return;
  }
  const std::string indent(2 * level + 2, ' ');
  out += "{\n";
  bool first = true;
  for (const auto& pair : object) {
    if (!first) out += ",\n";
    first = false;
    out += indent + boost::json::serialize(boost::json::string(pair.key())) + ": ";
    print(pair.value(), level + 1, out);
  }
  out += "\n" + std::string(2 * level, ' ') + "}";
}

void print_elements(const boost::json::array& array, size_t level, std::string& out) {
  const bool plain = std::none_of(array.begin(), array.end(), [](const boost::json::value& element) {
    return element.is_object() || element.is_array();
  });
  const std::string indent = plain ? "" : "\n" + std::string(2 * level + 2, ' ');
  out += "[";
  for (size_t i = 0; i < array.size(); ++i) {
    if (i) out += plain ? ", " : ",";
    out += indent;
    print(array[i], level + 1, out);
  }
  if (!plain) out += "\n" + std::string(2 * level, ' ');
  out += "]";
}

void print(const boost::json::value& value, size_t level, std::string& out) {
  if (value.is_object()) {
    print_members(value.get_object(), level, out);
  } else if (value.is_array()) {
    print_elements(value.get_array(), level, out);
  } else if (value.is_double()) {
    if (!std::isfinite(value.get_double()))
      throw Error(ErrorKind::internal, "JSON has no number that is not finite");
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.9g", value.get_double());
    out += digits;
  } else {
    out += boost::json::serialize(value);
  }
}

}  // namespace

boost::json::value parse_json(std::string_view bytes, std::string_view name) {
  boost::json::parse_options options;
  options.max_depth = kDepth;
  boost::json::parser parser({}, options);
  boost::json::error_code error;
  const size_t read = parser.write_some(bytes.data(), bytes.size(), error);
  std::string reason;
  if (bytes.find_first_not_of(" \t\r\n") == std::string_view::npos)
    reason = "it is empty";
  else if (error)
    reason = error.message();
  else if (read < bytes.size())
    reason = "something follows the value";
  if (!reason.empty())
    throw DataError(name, 0, "not valid JSON at byte " + std::to_string(read) + ": " + reason);
  return parser.release();
}

boost::json::object parse_json_object(std::string_view bytes, std::string_view name) {
  boost::json::value value = parse_json(bytes, name);
  if (!value.is_object())
    throw DataError(name, 0, std::string("expected an object, found ") + kind_text(value));
  return std::move(value.get_object());
}

std::string json_string(const boost::json::object& object, std::string_view key, std::string_view name) {
  const auto& value = member(object, key, name);
  if (!value.is_string()) fail_kind(name, key, "a string", value);
  return std::string(value.get_string().data(), value.get_string().size());
}

bool json_boolean(const boost::json::object& object, std::string_view key, std::string_view name) {
  const auto& value = member(object, key, name);
  if (!value.is_bool()) fail_kind(name, key, "true or false", value);
  return value.get_bool();
}

double json_number(const boost::json::object& object, std::string_view key, std::string_view name) {
  const auto& value = member(object, key, name);
  if (!value.is_number()) fail_kind(name, key, "a number", value);
  return value.to_number<double>();
}

int64_t json_integer(const boost::json::object& object, std::string_view key, std::string_view name,
                     int64_t least, int64_t most) {
  const auto& value = member(object, key, name);
  if (!value.is_number()) fail_kind(name, key, "a whole number", value);
  boost::json::error_code error;
  const auto number = value.to_number<int64_t>(error);
  if (error) fail(name, key, "expected a whole number, found " + boost::json::serialize(value));
  if (number < least || number > most)
    fail(name, key,
         std::to_string(number) + " is outside " + std::to_string(least) + " to " + std::to_string(most));
  return number;
}

const boost::json::object& json_object(const boost::json::object& object, std::string_view key,
                                       std::string_view name) {
  const auto& value = member(object, key, name);
  if (!value.is_object()) fail_kind(name, key, "an object", value);
  return value.get_object();
}

const boost::json::array& json_array(const boost::json::object& object, std::string_view key,
                                     std::string_view name) {
  const auto& value = member(object, key, name);
  if (!value.is_array()) fail_kind(name, key, "a list", value);
  return value.get_array();
}

std::string pretty(const boost::json::value& value) {
  std::string out;
  print(value, 0, out);
  return out + "\n";
}

}  // namespace regard
