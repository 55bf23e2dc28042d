#include "data/readers/csv.h"

#include <cmath>

#include "../folder.h"
#include "../peak_growth.h"
#include "base/units.h"

namespace dpt {
namespace {

CsvTable read(const std::string& text, const CsvFormat& format = {}) {
  const Folder folder;
  return read_csv(folder.write("t.csv", text), format);
}
std::string why_not(const std::string& text, const CsvFormat& format = {}) {
  return data_error([&] { read(text, format); });
}

TEST_CASE("numbers with and without a header") {
  const CsvTable named = read("a,b\n1,2\n3.5,-4e-1\n");
  CHECK(named.names == std::vector<std::string>{"a", "b"});
  CHECK(named.rows == 2);
  CHECK(named.values == std::vector<float>{1, 2, 3.5F, -0.4F});
  const CsvTable bare = read("1,2\n3,4");
  CHECK(bare.names == std::vector<std::string>{"0", "1"});
  CHECK(bare.values == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("a header may be forced or denied") {
  CHECK(read("1,2\n3,4\n", {.header = CsvFormat::HeaderLine::yes}).names ==
        std::vector<std::string>{"1", "2"});
  CHECK(has(why_not("a,b\n1,2\n", {.header = CsvFormat::HeaderLine::no}),
            "t.csv:1:1: 'a' in column '0' is not a number"));
}

TEST_CASE("line ends, empty lines, spaces, quotes, signs, a byte order mark") {
  CHECK(read("\xef\xbb\xbf"
             "1,2\r\n\r\n \n3,4\r\n")
            .values == std::vector<float>{1, 2, 3, 4});
  CHECK(read(" 1 , +2\n\"3\" ,\"4\"\n").values == std::vector<float>{1, 2, 3, 4});
  CHECK(read("\"a, with b\",c\n1,2\n").names == std::vector<std::string>{"a, with b", "c"});
  CHECK(read("1;2\n", {.delimiter = ';'}).values == std::vector<float>{1, 2});
  CHECK(read("1\t2\n", {.delimiter = '\t'}).values == std::vector<float>{1, 2});
  CHECK(read("1e-60\n").values == std::vector<float>{0});
}

TEST_CASE("wrong fields are named by line and column") {
  CHECK(has(why_not("a,b\n1,2\n3, x4\n"),
            "t.csv:3:4: 'x4' in column 'b' is not a number; delete the column, or replace its text "
            "with numbers"));
  CHECK(has(why_not("1,2\n3,\n"),
            "t.csv:2:3: column '1' is empty on this line; enter a value, or delete the line"));
  CHECK(has(why_not("1,2\n3, ,5\n"), "t.csv:2:1: 3 fields, where the first line has 2"));
  CHECK(has(why_not("1,2\n\n3\n"), "t.csv:3:1: 1 field, where"));
  CHECK(has(why_not("1,2\n1,nan\n"),
            "t.csv:2:3: 'nan' in column '1' is not a finite number; correct it"));
  CHECK(has(why_not("1\n1e39\n"), "t.csv:2:1: '1e39'"));
  CHECK(has(why_not("1\n0x10\n"), "t.csv:2:1: '0x10'"));
  CHECK(has(why_not("1,2\n\"3,4\n"), "t.csv:2:1: an unclosed quote"));
  CHECK(has(why_not("1,2\n\"3\"x,4\n"), "t.csv:2:4: text after a quoted field"));
  CHECK(has(why_not(""), "holds no numbers"));
  CHECK(has(why_not("a,b\n"), "t.csv:1:1: 'a' is not a finite number, so this line, the only one"));
  CHECK(has(why_not("1,x\n"), "t.csv:1:3: 'x' is not a finite number; if this line holds"));
  CHECK(has(why_not("1\n" + std::string(1000, 'x')),
            "t.csv:2:1: '" + std::string(40, 'x') + "' in column '0' is not a number"));
}

TEST_CASE("two quotes within quotes are one") {
  CHECK(read("\"a \"\"b\"\"\",c\n1,2\n").names == std::vector<std::string>{"a \"b\"", "c"});
  CHECK(read("\"\"\"\",\"\"\n1,2\n").names == std::vector<std::string>{"\"", ""});
  CHECK(has(why_not("1\n\"3\"\"\n"), "t.csv:2:1: an unclosed quote"));
}

TEST_CASE("texts of a column count by their first lines") {
  const CsvTable t = read("x,kind\n1,b\n2,a\n3,b\n", {.text_columns = {"kind"}});
  CHECK(t.values == std::vector<float>{1, 0, 2, 1, 3, 0});
  CHECK(t.texts == std::vector<std::vector<std::string>>{{}, {"b", "a"}});
  std::string many = "x\n";
  for (int i = 0; i <= 1000; ++i) many += "n" + std::to_string(i) + "\n";
  CHECK(
      has(why_not(many, {.text_columns = {"x"}}),
          "t.csv:1002:1: column 'x' has more than 1000 different texts, so they are no categories; "
          "leave the column out with `exclude`"));
  CHECK(has(why_not(many, {.text_columns = {"x"}, .targets = {"x"}}),
            "so they are no classes; choose another target column"));
}

TEST_CASE("fields without a value are refused, kept, or their lines dropped") {
  using Missing = CsvFormat::Missing;
  const std::string text = "x,kind,y\n1,,5\nNA,b,6\n3,b,7\n";
  const auto format = [](Missing missing) {
    return CsvFormat{
        .text_columns = {"kind"}, .missing = missing, .targets = {"y"}, .advise_keys = true};
  };
  CHECK(has(why_not(text, format(Missing::refuse)),
            "t.csv:2:3: column 'kind' is empty on this line; enter a value, fill such fields with "
            "`missing: mean`, leave such lines out with `missing: drop`, or leave the column out"));
  CHECK(has(why_not("x,y\n1,2\nNA,3\n", {.advise_keys = true}),
            "t.csv:3:1: 'NA' in column 'x' stands for a missing value; enter a value, fill"));
  const CsvTable kept = read(text, format(Missing::keep));
  CHECK(kept.rows == 3);
  CHECK(std::isnan(kept.values[1]));
  CHECK(std::isnan(kept.values[3]));
  CHECK(kept.missing == std::vector<size_t>{1, 1, 0});
  const CsvTable dropped = read(text, format(Missing::drop));
  CHECK(dropped.rows == 1);
  CHECK(dropped.dropped == 2);
  CHECK(dropped.values == std::vector<float>{3, 0, 7});
  CHECK(dropped.missing == std::vector<size_t>{1, 1, 0});
  CHECK(
      has(why_not("x,kind,y\n1,a,?\n", format(Missing::keep)),
          "t.csv:2:5: '?' in column 'y' stands for a missing value; enter the value, or leave such "
          "lines out with `missing: drop`"));
  CHECK(has(why_not("x,kind,y\n1,a,?\n", format(Missing::drop)),
            "every line has a field without a value"));
  CHECK(read("x,kind\n1,NA\n", {.word_column = "kind", .words = {"NA"}, .missing = Missing::drop})
            .rows == 1);
}

TEST_CASE("texts are sorted as numbers before words") {
  std::vector<std::string> texts{"b", "10", "a", "2", "-1.5", "B"};
  sort_csv_texts(texts);
  CHECK(texts == std::vector<std::string>{"-1.5", "2", "10", "B", "a", "b"});
}

TEST_CASE("a file with another delimiter gets the right advice") {
  CHECK_MESSAGE(has(why_not("a;b;c\n1;2;3\n"),
                    "t.csv:2:1: '1;2;3' is not a finite number; if ';' stands between the numbers "
                    "of this file, write `delimiter: ';'`"),
                why_not("a;b;c\n1;2;3\n"));
  CHECK(has(why_not("1;2;3\n4;5;6\n"), "write `delimiter: ';'`"));
  CHECK(has(why_not("1,5;2;3\n4,5;5;6\n"), "'5;2;3' is not a finite number; if ';' stands"));
  CHECK(has(why_not("1|2\n"), "write `delimiter: '|'`"));
  CHECK(has(why_not("1\t2\n"),
            "if a tab stands between the numbers of this file, write "
            "`delimiter: tab`"));
  CHECK_FALSE(has(why_not("1;x\n", {.delimiter = ';'}), "write `delimiter"));
}

TEST_CASE("a first line with anything like a number is no header") {
  // Each would be a row of data with a field that is wrong, lost if it were the header.
  for (const char* const field :
       {"", "nan", "-inf", "3e39", "1e999", "0x10", "2026-01-31", "12%", "NA", "?"}) {
    CAPTURE(field);
    const std::string line = "1," + std::string(field) + ",3\n";
    const std::string wrong =
        "t.csv:1:3: '" + std::string(field) +
        "' is not a finite number; if this line holds the names of the columns, write `header: "
        "yes`";
    CHECK(has(why_not(line + "4,5,6\n"), wrong));
    CHECK_FALSE(has(why_not("4,5,6\n" + line), "header: yes"));
    CHECK(read(line + "4,5,6\n", {.header = CsvFormat::HeaderLine::yes}).rows == 1);
  }
  CHECK(has(why_not("nan,inf\n1,2\n"), "t.csv:1:1: 'nan' is not"));
  CHECK(has(why_not("0x1F,+0X\n1,2\n"), "t.csv:1:1: '0x1F' is not"));
  CHECK(has(why_not("1;5,2;5\n1,2\n"), "t.csv:1:1: '1;5' is not"));
  CHECK(has(why_not(",,\n1,2,3\n"), "t.csv:1:1: '' is not"));
  // Names: pandas writes an empty one above its index.
  for (const char* const line :
       {",a,b", "label,1x1,1x2", "1stFlrSF,x2,n0", "größe,e,x", "0x,-,+"}) {
    CAPTURE(line);
    const CsvTable t = read(std::string(line) + "\n1,2,3\n");
    CHECK(t.header);
    CHECK(t.rows == 1);
  }
  CHECK_FALSE(read("1,2\n").header);
}

TEST_CASE("lines are read piece by piece, and none is lost between two") {
  std::string text;
  std::vector<float> expected;
  for (int i = 0; i < 300000; ++i) {
    text += std::to_string(i) + "," + std::to_string(i % 7) + (i % 3 == 0 ? "\r\n" : "\n");
    expected.insert(expected.end(), {static_cast<float>(i), static_cast<float>(i % 7)});
  }
  REQUIRE(text.size() > 2 * kMiB);
  for (int end = 0; end < 2; ++end, text.pop_back()) {  // with the last line's end, and without
    const bool same = read(text).values == expected;
    CHECK(same);
  }
  CHECK(has(why_not(text + "9\nx,1\n"), "t.csv:300001:1: 'x' in column '0' is not"));
  CHECK(read("1,2\n" + std::string(5 * kMiB, ' ') + "3,4\n").values ==
        std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("a line without an end costs little, whatever the file's size") {
  const Folder folder;
  const std::string path = folder.write("t.csv", "");
  for (const uintmax_t bytes : {300 * kMiB, 6 * kGiB}) {
    std::filesystem::resize_file(path, bytes);  // of NUL bytes, which take no disk
    std::string why;
    CHECK(peak_growth([&] { why = data_error([&] { read_csv(path, {}); }); }) < kHostileBytes);
    CHECK(why == path + ":1:1: the line has more than 8 MiB; a table has a line for each sample");
  }
  std::string wide = "1";
  for (int i = 0; i < 300000; ++i) wide += ",1";
  CHECK(has(why_not(wide), "t.csv:1:524289: more than 262144 columns"));
}

TEST_CASE("columns by name or number") {
  const CsvTable t = read("a,b,1\n1,2,3\n", {.header = CsvFormat::HeaderLine::yes});
  CHECK(t.column("b", "t") == 1);
  CHECK(t.column("1", "t") == 2);  // a name goes first
  CHECK(t.column("0", "t") == 0);
  CHECK(t.column("-1", "t") == 2);
  CHECK(data_error([&] { t.column("3", "t"); }) ==
        "t has no column '3'; it has 3 columns: a, b, 1");
  CHECK(data_error([&] { t.column("-4", "t"); }) != "");
}

}  // namespace
}  // namespace dpt
