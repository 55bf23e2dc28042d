#include "data/readers/csv_fields.h"

#include <doctest/doctest.h>

namespace dpt {
namespace {

TEST_CASE("fields without a value are those of pandas, and ?") {
  for (const char* text : {"", "NA", "N/A", "n/a", "NaN", "nan", "-nan", "null", "NULL", "None",
                           "<NA>", "#N/A", "#NA", "1.#QNAN", "?"})
    CHECK_MESSAGE(is_missing_csv(text), text);
  for (const char* text : {"na", "none", "0", "-", "NANA", "missing"})
    CHECK_FALSE_MESSAGE(is_missing_csv(text), text);
}

TEST_CASE("numbers with separators, and dates") {
  for (const char* text : {"1,5", "-1,234,567.25", "+12,3"})
    CHECK_MESSAGE(has_csv_separators(text, '.'), text);
  for (const char* text : {"1.5", "1", "1,", ",5", "a,b", "1,2;3", ""})
    CHECK_FALSE_MESSAGE(has_csv_separators(text, '.'), text);
  CHECK(has_csv_separators("1.234,5", ','));
  CHECK_FALSE(has_csv_separators("1234,5", ','));
  for (const char* text :
       {"2026-01-31", "31.1.2026", "1/31/26", "2026/1/3 12:30", "2026-01-31T00:00Z"})
    CHECK_MESSAGE(is_csv_date(text), text);
  for (const char* text :
       {"1.2.3", "10.0.0.1", "2026", "18-25", "555-12-34", "1/2", "2026-01-31x", ""})
    CHECK_FALSE_MESSAGE(is_csv_date(text), text);
}

TEST_CASE("numbers may be padded with spaces in quotes") {
  double value = 0;
  CHECK(parse_csv_number("    0.50", value));
  CHECK(value == 0.5);
  CHECK(parse_csv_number("1,5  ", value, ','));
  CHECK(value == 1.5);
  CHECK_FALSE(parse_csv_number("  ", value));
  CHECK_FALSE(parse_csv_number("1 2", value));
}

TEST_CASE("texts are sorted as numbers before words") {
  std::vector<std::string> texts{"b", "10", "a", "2", "-1.5", "B"};
  sort_csv_texts(texts);
  CHECK(texts == std::vector<std::string>{"-1.5", "2", "10", "B", "a", "b"});
}

TEST_CASE("numbers with marks that are not read are recognized") {
  const auto plain = [](std::string_view text, char decimal = '.') {
    const MarkedNumber m = marked_csv_number(text, decimal);
    return m.what.empty() ? "" : std::string(m.what.substr(0, 3)) + " " + m.plain;
  };
  CHECK(plain("5%") == "per 5");
  CHECK(plain("-0.7 %") == "per -0.7");
  CHECK(plain("$3,965.70") == "amo 3965.70");
  CHECK(plain("-$5") == "amo -5");
  CHECK(plain("12,50 €", ',') == "amo 12,50");
  CHECK(plain("1.234,50\u00a0EUR", ',') == "amo 1234,50");
  CHECK(plain("(4370.11)") == "neg -4370.11");
  CHECK(plain("($5)") == "neg -5");
  CHECK(plain("\u22125.5") == "num -5.5");
  CHECK(plain("3 138") == "num 3138");
  CHECK(plain("-3\u00a0138.5") == "num -3138.5");
  CHECK(plain("1'000'000") == "num 1000000");
  // The other decimal mark, unless it separates groups of three digits.
  CHECK(plain("1,51 €") == "amo 1.51");
  CHECK(plain("0,5%") == "per 0.5");
  CHECK(plain("1 101,5") == "num 1101.5");
  CHECK(plain("0,123%") == "per 0.123");
  CHECK(plain("1,234 €") == "amo 1234");
  CHECK(plain("1.51 €", ',') == "amo 1,51");
  for (const char* const text : {"5", "-5", "1,5", "%", "$", "()", "a%", "(a)", "5 a", "3 13",
                                 "030 123", "2026-01-31", "1 2", "", "5%%x", "(1) (2)", "nan%"})
    CHECK_MESSAGE(plain(text).empty(), text);
}

TEST_CASE("numbers of equal value are one text, by its shortest spelling") {
  CsvTexts texts;
  CHECK(texts.add("1.0") == 0);
  CHECK(texts.add("a") == 1);
  CHECK(texts.add("1") == 0);
  CHECK(texts.add("+1.00") == 0);
  CHECK(texts.add("-0") == texts.add("0"));
  CHECK(texts.texts() == std::vector<std::string>{"1", "a", "0"});
  CHECK(texts.find("1e0") == 0);
  CHECK(texts.find("2") == CsvTexts::kNone);
  // More digits than a double has are not compared by value.
  CHECK(texts.add("12345678901234567") != texts.add("12345678901234568"));
  CsvTexts known({"01", "b"});
  CHECK(known.add("1") == 0);
  CHECK(known.add("c") == 2);
  CHECK(known.texts() == std::vector<std::string>{"01", "b", "c"});
  CsvTexts spelled({}, false);
  CHECK(spelled.add("1.0") != spelled.add("1"));
  CHECK(spelled.find("1.00") == CsvTexts::kNone);
}

}  // namespace
}  // namespace dpt
