#pragma once
// JSON as the project's own files use it: parsed with limits, read with typed getters, printed for people.

#include <boost/json.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace regard {

/// Parses one JSON text. `name` stands in errors for the file that the bytes came from. At most 32 levels
/// deep. Throws DataError ("NAME: not valid JSON at byte N: reason").
boost::json::value parse_json(std::string_view bytes, std::string_view name);

/// The same, and the text must be an object.
boost::json::object parse_json_object(std::string_view bytes, std::string_view name);

/// The member `key` of `object`, of the type asked for. `name` is the file, for errors. All throw DataError:
/// `NAME: "key": missing`, or `NAME: "key": expected a string, found a number`.
std::string json_string(const boost::json::object& object, std::string_view key, std::string_view name);
bool json_boolean(const boost::json::object& object, std::string_view key, std::string_view name);
/// Any number, whole or not, as double.
double json_number(const boost::json::object& object, std::string_view key, std::string_view name);
/// A whole number within [least, most].
int64_t json_integer(const boost::json::object& object, std::string_view key, std::string_view name,
                     int64_t least = std::numeric_limits<int64_t>::min(),
                     int64_t most = std::numeric_limits<int64_t>::max());
const boost::json::object& json_object(const boost::json::object& object, std::string_view key,
                                       std::string_view name);
const boost::json::array& json_array(const boost::json::object& object, std::string_view key,
                                     std::string_view name);

/// Printed for people: objects one member a line, two spaces a level;
/// arrays of plain values on one line; numbers that are not whole as %.9g; a final newline.
/// Members keep their order. Throws Error for a number that is not finite.
std::string pretty(const boost::json::value& value);

}  // namespace regard
