#include "formats/json_text.h"

#include <doctest/doctest.h>

#include "base/utf8.h"

namespace dpt {
namespace {

TEST_CASE("a JSON string is valid whatever bytes it is made of") {
  CHECK(json_text("Größe \"a\\b\"") == "\"Größe \\\"a\\\\b\\\"\"");
  CHECK(json_text("a\n\x1b[2J\x7f") == "\"a\\u000a\\u001b[2J\\u007f\"");
  CHECK(json_text("\xc2\x9b"
                  "2J") == "\"\\u009b2J\"");
  CHECK(json_text("\xff"
                  "a\xc3") == "\"\\ufffda\\ufffd\"");
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
