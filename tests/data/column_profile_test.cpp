#include "data/column_profile.h"

#include <doctest/doctest.h>

#include "folder.h"

namespace dpt {
namespace {

using Kind = ColumnProfile::Kind;

ColumnProfile profile(const std::vector<std::string>& fields) {
  ColumnProfile out("age");
  size_t line = 2;
  for (const std::string& f : fields) out.add({.text = f, .line = line++, .column = 1});
  return out;
}
// The fields, then `count` different numbers.
std::vector<std::string> and_numbers(std::vector<std::string> fields, int count) {
  for (int i = 0; i < count; ++i) fields.push_back(std::to_string(i * 7));
  return fields;
}

TEST_CASE("percentages and amounts are numbers to be written plainly, and no categories") {
  const ColumnProfile percent = profile({"5%", "7%", "5%", "7%", "5%"});
  CHECK(percent.kind() == Kind::broken);
  CHECK_FALSE(percent.can_be_corrected());  // init leaves it out
  CHECK(percent.why_broken() == "holds percentages: '5%' on line 2, '7%' on line 3, ...");
  CHECK(percent.correction() ==
        "write plain numbers ('5%' is read as a number if it is written 5)");
  const ColumnProfile half = profile({"1", "(2)", "1", "(2)", "3", "(2)", "1"});
  CHECK(half.kind() == Kind::broken);
  CHECK(half.can_be_corrected());
}

TEST_CASE("a column of numbers with a stray text is broken, and the text is named") {
  CHECK(profile({"1", "2.5", "NA", ""}).kind() == Kind::numbers);
  const ColumnProfile stray = profile(and_numbers({"x4", "inf"}, 98));
  CHECK(stray.kind() == Kind::broken);
  CHECK(stray.why_broken() ==
        "holds numbers in 98 of 100 lines, but 'x4' on line 2, 'inf' on line 3");
  const ColumnProfile comma = profile({"1,5", "2,5", "3", "4,5"});
  CHECK(comma.kind() == Kind::broken);
  CHECK(comma.why_broken() ==
        "holds numbers with a decimal comma or with thousands separators: '1,5' on "
        "line 2, '2,5' on line 3, '4,5' on line 5");
  ColumnProfile point("v", ',');
  for (const char* text : {"1.5", "2.5"}) point.add({.text = text, .line = 2, .column = 1});
  CHECK(has(point.why_broken(), "with a decimal point or with thousands separators: '1.5'"));
  CHECK(profile({"1", "2", "1", "2", "x"}).kind() == Kind::broken);
  CHECK(profile({"1e300", "2e300", "1e300", "-inf"}).why_broken() ==
        "holds numbers in 0 of 4 lines, but '1e300' on line 2, '2e300' on line 3, '-inf' on line 5 "
        "and 1 other field");
  CHECK(stray.can_be_corrected());
  CHECK(comma.can_be_corrected());
  CHECK_FALSE(profile(and_numbers({"A/5 2", "PC 1", "x"}, 12)).can_be_corrected());
}

TEST_CASE("few values of which some are words are texts") {
  CHECK(profile({"2", "3", "5more", "2", "3", "5more", "2"}).kind() == Kind::texts);
  // A word in a tenth of the fields may be a mistake, even if it comes again and again.
  std::vector<std::string> rooms(18, "2");
  rooms.insert(rooms.end(), 2, "Unknown");
  CHECK(profile(rooms).kind() == Kind::broken);
  rooms.emplace_back("Unknown");
  CHECK(profile(rooms).kind() == Kind::texts);
  CHECK(profile({"a", "b", "1"}).kind() == Kind::texts);
  CHECK(profile({"", "NA"}).kind() == Kind::empty);
  CHECK(profile({"2026-01-31", "", "2026-02-01"}).kind() == Kind::dates);
}

TEST_CASE("rising whole numbers are told from others") {
  CHECK(profile({"5", "7", "8"}).rises());
  CHECK_FALSE(profile({"5", "7", "7"}).rises());
  CHECK_FALSE(profile({"5", "7.5", "8"}).rises());
  CHECK_FALSE(profile({"5", "", "8"}).rises());
  CHECK(profile({"5", "5", "8", "x"}).different() == 3);
}

}  // namespace
}  // namespace dpt
