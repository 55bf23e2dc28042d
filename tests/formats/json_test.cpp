#include "formats/json.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include <doctest/doctest.h>

#include "base/utf8.h"

namespace dpt {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();

// What is wrong with a text, and where; empty: nothing.
std::string problem(std::string_view text, const JsonRules& rules = {}) {
  JsonError error;
  if (Json::parse(text, rules, &error)) return "";
  return error.what + " at " + std::to_string(error.offset);
}

// Dumps the value that a text has.
std::string again(std::string_view text) {
  const auto json = Json::parse(text);
  return json ? json->dump() : "nothing";
}

TEST_CASE("values are written in the order in which they were added") {
  Json json = {{"b", 1}, {"a", Json::array({true, nullptr, "x", 2.5})}, {"none", Json::object()}};
  CHECK(json.dump() == R"({"b": 1, "a": [true, null, "x", 2.5], "none": {}})");
  CHECK(json.dense() == R"({"b":1,"a":[true,null,"x",2.5],"none":{}})");
  json["c"]["d"] = Json::array_of(std::vector<int64_t>{3, 4});
  json["b"] = "now a text";
  CHECK(json.dump() ==
        R"({"b": "now a text", "a": [true, null, "x", 2.5], "none": {}, "c": {"d": [3, 4]}})");
  CHECK(Json().dump() == "null");
  CHECK(Json().push(1).push("x").dump() == R"([1, "x"])");
}

TEST_CASE("a value is found with its type, and as nothing else") {
  const Json json = {{"whole", 3}, {"real", 0.5}, {"text", "x"}, {"yes", true}, {"null", nullptr}};
  CHECK(json.find("whole")->integer() == 3);
  CHECK(json.find("whole")->number() == 3.0);
  CHECK(json.find("real")->number() == 0.5);
  CHECK(!json.find("real")->integer());
  CHECK(*json.find("text")->text() == "x");
  CHECK(!json.find("text")->number());
  CHECK(json.find("yes")->boolean() == true);
  CHECK(!json.find("yes")->integer());
  CHECK(json.find("null")->is_null());
  CHECK(!json.find("other"));
  CHECK(!json.find("text")->find("x"));
  CHECK(json.find("text")->items().empty());
  CHECK(json.size() == 5);
}

TEST_CASE("lines begin where a value asks for it") {
  const Json list = Json::array({1, Json(2).on_line(3)});
  CHECK(list.dump() == "[1,\n   2]");
  const Json block = {{"a", Json(1).on_line(2)}, {"b", Json(2).on_line(2)}};
  CHECK(block.dump() == "{\n  \"a\": 1,\n  \"b\": 2\n}");
}

TEST_CASE("what fits into the width stays on one line") {
  const Json json = {
      {"short", Json::array({1, 2})}, {"empty", Json::object()}, {"longer", "abcdefgh"}};
  CHECK(json.lines() == json.dump() + "\n");
  CHECK(json.lines(20) ==
        "{\n  \"short\": [1, 2],\n  \"empty\": {},\n  \"longer\": \"abcdefgh\"\n}\n");
  CHECK(
      json.lines(15) ==
      "{\n  \"short\": [\n    1,\n    2\n  ],\n  \"empty\": {},\n  \"longer\": \"abcdefgh\"\n}\n");
}

TEST_CASE("a string is valid JSON whatever bytes it is made of") {
  CHECK(Json("Größe \"a\\b\"").dump() == "\"Größe \\\"a\\\\b\\\"\"");
  CHECK(Json("a\n\x1b[2J\x7f").dump() == "\"a\\u000a\\u001b[2J\\u007f\"");
  CHECK(Json("\xc2\x9b"
             "2J")
            .dump() == "\"\\u009b2J\"");
  CHECK(Json("\xff"
             "a\xc3")
            .dump() == "\"\\ufffda\\ufffd\"");
}

TEST_CASE("escapes and characters of a string are read") {
  const auto text = [](std::string_view json) { return *Json::parse(json)->text(); };
  CHECK(text(R"("\"\\\/\b\f\n\r\t")") == "\"\\/\b\f\n\r\t");
  CHECK(text(R"("\u0041\u00e9\u20ac\ud83d\ude00")") == "Aé€😀");
  CHECK(text("\"é😀\"") == "é😀");
  CHECK(text(R"("a\u0000b")") == std::string("a\0b", 3));
  CHECK(problem(R"("\ud83d")") == "a lone surrogate at 7");
  CHECK(problem(R"("\ude00")") == "a lone surrogate at 7");
  CHECK(problem(R"("\ud83d\u0041")") == "a broken surrogate pair at 13");
  CHECK(problem(R"("\u00g0")") == "a broken \\u escape at 3");
  CHECK(problem(R"("\x")") == "an unknown escape at 3");
  CHECK(problem("\"\xff\"") == "a name or text that is not UTF-8 at 3");
  CHECK(problem("\"a\nb\"") == "a control character in a string at 3");
  CHECK(problem("\"ab") == "'\"' was expected at 3");
}

TEST_CASE("numbers come back exactly") {
  for (const int64_t x : {std::numeric_limits<int64_t>::min(), int64_t{-1}, int64_t{0},
                          (int64_t{1} << 53) + 1, std::numeric_limits<int64_t>::max()})
    CHECK(Json::parse(Json(x).dump())->integer() == x);
  for (const double x : {0.1, 1.0 / 3, -1e300, 5e-324, std::numeric_limits<double>::max(),
                         std::numeric_limits<double>::lowest(), 1e15, 1e23, 123456789.123456789}) {
    CAPTURE(x);
    CHECK(Json::parse(Json(x).dump())->number() == x);
  }
  CHECK(std::signbit(*Json::parse(Json(-0.0).dump())->number()));
  CHECK(again("9223372036854775808") == "9.223372036854776e+18");  // a double, which it fits
  CHECK(!Json::parse("9223372036854775808")->integer());
  CHECK(again("[1, -2, 1.0, 2e3, 1E-2, 1e300]") == "[1, -2, 1, 2000, 0.01, 1e+300]");
}

TEST_CASE("numbers are written with the digits asked for") {
  CHECK(Json::rounded(1.0 / 3, 9).dump() == "0.333333333");
  CHECK(Json::rounded(1e10, 9).dump() == "1e+10");
  CHECK(Json::decimals(2.0 / 3, 3).dump() == "0.667");
  CHECK(Json::decimals(12, 0).dump() == "12");
  CHECK(Json::bare_exponent(-1e300).dump() == "-1e300");
  CHECK(Json::array({kNan, kInfinite, -kInfinite, Json::rounded(kNan, 9)}).dump() ==
        "[null, null, null, null]");
}

TEST_CASE("what is no number is refused") {
  for (const char* text : {"-", "01", "-01", "1.", ".5", "1e", "1e+", "+1", "0x1", "nan", "inf",
                           "NaN", "Infinity", "-Infinity", "1e999", "--1"})
    CHECK_MESSAGE(!Json::parse(text), text);
  const JsonRules python{.python = true};
  CHECK(std::isnan(*Json::parse("NaN", python)->number()));
  CHECK(Json::parse("[Infinity, -Infinity]", python)->items()[1].number() == -kInfinite);
}

TEST_CASE("broken texts are refused with the offset of the mistake") {
  CHECK(problem("") == "a number was expected at 0");
  CHECK(problem("  ") == "a number was expected at 2");
  CHECK(problem("tru") == "a number was expected at 0");
  CHECK(problem("{\"a\" 1}") == "':' was expected at 5");
  CHECK(problem("{a: 1}") == "'\"' was expected at 1");
  CHECK(problem("[1 2]") == "']' was expected at 3");
  CHECK(problem("[1,]") == "a number was expected at 3");
  CHECK(problem("{\"a\": 1,}") == "'\"' was expected at 8");
  CHECK(problem("{\"a\": 1} x") == "text after the end at 9");
  CHECK(problem(std::string_view("1\0", 2)) == "text after the end at 1");
  CHECK(problem("[1") == "the text ends within a value at 2");
  CHECK(problem(R"({"a": 1, "b": {"c": 2, "c": 3}})") == "the key 'c' appears twice at 30");
  std::string many = "{";
  for (int i = 0; i < 40; ++i) many += "\"" + std::to_string(i) + "\": 0, ";
  CHECK(problem(many + "\"x\": 1}").empty());
  CHECK(problem(many + "\"7\": 1}").starts_with("the key '7' appears twice"));
}

TEST_CASE("containers within each other are limited") {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  CHECK(problem(nested(64)).empty());
  CHECK(problem(nested(65)) == "values are nested too deeply at 64");
  CHECK(!problem(std::string(1000000, '[')).empty());
  CHECK(problem(R"({"a": {"b": 1}})", {.depth = 2}).empty());
  CHECK(!problem(R"({"a": {"b": [1]}})", {.depth = 2}).empty());
}

TEST_CASE("the start of a text that is cut off is kept") {
  const std::string text = R"({"a": 12, "b": {"c": 34, "d": "x"}, "e": [5, 6], "f": true})";
  const JsonRules rules{.keep_start = true};
  const auto start = [&](size_t bytes) {
    const auto json = Json::parse(std::string_view(text).substr(0, bytes), rules);
    return json ? json->dump() : "nothing";
  };
  CHECK(start(0) == "nothing");
  CHECK(start(6) == "nothing");
  CHECK(start(7) == "nothing");  // of 12 the first digit
  CHECK(start(9) == R"({"a": 12})");
  CHECK(start(17) == R"({"a": 12})");
  CHECK(start(25) == R"({"a": 12, "b": {"c": 34}})");
  CHECK(start(45) == R"({"a": 12, "b": {"c": 34, "d": "x"}, "e": [5]})");
  CHECK(start(text.size()) == text);
}

TEST_CASE("characters of UTF-8, and those that are none") {
  CHECK(utf8_length("a") == 1);
  CHECK(utf8_length("ö") == 2);
  CHECK(utf8_length("大") == 3);
  CHECK(utf8_length("😀") == 4);
  for (const char* broken :
       {"\x80", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff"})
    CHECK(utf8_length(broken) == 0);
  CHECK(invalid_utf8("aö\xff") == 3);
  CHECK(invalid_utf8("aö") == std::string_view::npos);
  CHECK(find_control("ö\tb\n", "\t") == 4);
  CHECK(find_control("ö\xc2\x85") == 2);
  CHECK(find_control("öb") == std::string_view::npos);
}

}  // namespace
}  // namespace dpt
