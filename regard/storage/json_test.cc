#include "regard/storage/json.h"

#include <gtest/gtest.h>

#include <cmath>

#include "regard/base/error.h"
#include "tests/support/error_message.h"

namespace regard {
namespace {

using tests::error_message;

TEST(Json, ErrorsNameFileAndByte) {
  const auto parse = [](const std::string& text) {
    return error_message([&] { parse_json(text, "c.json"); });
  };
  EXPECT_EQ(parse("{\"a\": 1}\n "), "none");
  EXPECT_EQ(parse(""), "c.json: not valid JSON at byte 0: it is empty");
  EXPECT_EQ(parse("{\"a\": 1} }"), "c.json: not valid JSON at byte 9: something follows the value");
  EXPECT_EQ(parse("{\"a\": tru}").rfind("c.json: not valid JSON at byte 6: ", 0), 0u)
      << parse("{\"a\": tru}");
  EXPECT_EQ(parse("{\"a\": 1").rfind("c.json: not valid JSON at byte 7: ", 0), 0u) << parse("{\"a\": 1");
  EXPECT_EQ(parse(std::string("\"\xff\"")).rfind("c.json: not valid JSON at byte ", 0), 0u);
  EXPECT_EQ(parse(std::string(32, '[') + std::string(32, ']')), "none");
  EXPECT_NE(parse(std::string(33, '[') + std::string(33, ']')), "none");
  EXPECT_NE(parse(std::string(1000000, '[')), "none");
}

TEST(Json, Getters) {
  const auto o = parse_json_object(
      R"({"s": "x\u0000y", "n": 3, "f": 2.5, "b": true, "l": [1], "o": {}, "u": 18446744073709551615})", "c");
  EXPECT_EQ(json_string(o, "s", "c"), std::string("x\0y", 3));
  EXPECT_EQ(json_integer(o, "n", "c"), 3);
  EXPECT_EQ(json_number(o, "n", "c"), 3.0);
  EXPECT_EQ(json_number(o, "f", "c"), 2.5);
  EXPECT_TRUE(json_boolean(o, "b", "c"));
  EXPECT_EQ(json_array(o, "l", "c").size(), 1u);
  EXPECT_TRUE(json_object(o, "o", "c").empty());
  EXPECT_EQ(error_message([&] { json_string(o, "z", "c"); }), "c: \"z\": missing");
  EXPECT_EQ(error_message([&] { json_string(o, "n", "c"); }), "c: \"n\": expected a string, found a number");
  EXPECT_EQ(error_message([&] { json_integer(o, "f", "c"); }),
            "c: \"f\": expected a whole number, found 2.5E0");
  EXPECT_EQ(error_message([&] { json_integer(o, "u", "c"); }),
            "c: \"u\": expected a whole number, found 18446744073709551615");
  EXPECT_EQ(error_message([&] { json_integer(o, "n", "c", 4, 9); }), "c: \"n\": 3 is outside 4 to 9");
  EXPECT_EQ(error_message([&] { json_boolean(o, "l", "c"); }),
            "c: \"l\": expected true or false, found a list");
  EXPECT_EQ(error_message([&] { json_array(o, "o", "c"); }), "c: \"o\": expected a list, found an object");
  EXPECT_EQ(error_message([&] { json_object(o, "b", "c"); }),
            "c: \"b\": expected an object, found true or false");
  EXPECT_EQ(error_message([&] { json_number(o, "s", "c"); }), "c: \"s\": expected a number, found a string");
  EXPECT_EQ(error_message([&] { parse_json_object("[]", "c"); }), "c: expected an object, found a list");
}

TEST(Json, Pretty) {
  const auto value = parse_json(
      R"({"model":"bahdanau","width":256,"rate":0.001,"third":0.33333333333333331,"small":1e-9,"list":[1,"é\n",null],)"
      R"("nested":[[1],{}],"o":{"a":true}})",
      "c");
  EXPECT_EQ(pretty(value), R"({
  "model": "bahdanau",
  "width": 256,
  "rate": 0.001,
  "third": 0.333333333,
  "small": 1e-09,
  "list": [1, "é\n", null],
  "nested": [
    [1],
    {}
  ],
  "o": {
    "a": true
  }
}
)");
  EXPECT_EQ(pretty(parse_json("[]", "c")), "[]\n");
  EXPECT_THROW(pretty(boost::json::value(NAN)), Error);
}

}  // namespace
}  // namespace regard
