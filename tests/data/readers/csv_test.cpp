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
std::string why_not(const std::string& text, const CsvFormat& format = {.advise_keys = true}) {
  return data_error([&] { read(text, format); });
}

TEST_CASE("numbers with and without a header") {
  const CsvTable named = read("a,b\n1,2\n3.5,-4e-1\n");
  CHECK(named.names == std::vector<std::string>{"a", "b"});
  CHECK(named.rows == 2);
  CHECK(named.values == std::vector<double>{1, 2, 3.5, -0.4});
  const CsvTable bare = read("1,2\n3,4");
  CHECK(bare.names == std::vector<std::string>{"0", "1"});
  CHECK(bare.values == std::vector<double>{1, 2, 3, 4});
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
            .values == std::vector<double>{1, 2, 3, 4});
  CHECK(read(" 1 , +2\n\"3\" ,\"4\"\n").values == std::vector<double>{1, 2, 3, 4});
  CHECK(read("\"a, with b\",c\n1,2\n").names == std::vector<std::string>{"a, with b", "c"});
  CHECK(read("1;2\n", {.delimiter = ';'}).values == std::vector<double>{1, 2});
  CHECK(read("1\t2\n", {.delimiter = '\t'}).values == std::vector<double>{1, 2});
  CHECK(read("1e-60\n1e-999\n").values == std::vector<double>{1e-60, 0});
}

TEST_CASE("wrong fields are named by line and column") {
  CHECK(has(why_not("a,b\n1,2\n3, x4\n"),
            "t.csv:3:4: 'x4' in column 'b' is not a number; correct it, list a column of texts in "
            "`categories`, or leave the column out with `exclude`"));
  CHECK(has(why_not("a,b\n1,2\n3, x4\n", CsvFormat{}),
            "t.csv:3:4: 'x4' in column 'b' is not a number; the model takes a number: correct it, "
            "or delete the line"));
  CHECK(has(why_not("1,2\n3,\n"),
            "t.csv:2:3: column '1' is empty on this line; enter a value, fill such fields with"));
  CHECK(has(why_not("1,2\n3, ,5\n"), "t.csv:2:1: 3 fields, where the first line has 2"));
  CHECK(has(why_not("1,2\n\n3\n"), "t.csv:3:1: 1 field, where"));
  CHECK(has(why_not("1,2\n1,nan\n"),
            "t.csv:2:3: 'nan' in column '1' stands for a missing value; enter a value"));
  CHECK(has(why_not("1\n1e39\n"), "t.csv:2:1: '1e39'"));
  CHECK(has(why_not("1\n0x10\n"), "t.csv:2:1: '0x10'"));
  CHECK(has(why_not("1,2\n\"3,4\n"), "t.csv:2:1: the quote that opens this field is not closed"));
  CHECK(has(why_not("1,2\n\"3\"x,4\n"), "t.csv:2:4: text after a quoted field"));
  CHECK(has(why_not(""), "t.csv is empty"));
  CHECK(has(why_not("a,b\n"), "t.csv:1:1: this line, the only one, is taken for the names"));
  CHECK(has(why_not("1,+-2\n"), "t.csv:1:3: '+-2' is not a finite number"));
  CHECK(has(why_not("1,x\n"), "t.csv:1:3: 'x' is not a finite number; if this line holds"));
  CHECK(has(why_not("1\n" + std::string(1000, 'x')),
            "t.csv:2:1: '" + std::string(40, 'x') + "' in column '0' is not a number"));
}

TEST_CASE("two quotes within quotes are one") {
  CHECK(read("\"a \"\"b\"\"\",c\n1,2\n").names == std::vector<std::string>{"a \"b\"", "c"});
  CHECK(read("\"\"\"\",\"\"\n1,2\n").names == std::vector<std::string>{"\"", ""});
  CHECK(has(why_not("1\n\"3\"\"\n"), "t.csv:2:1: the quote that opens"));
}

TEST_CASE("texts of a column count by their first lines") {
  const CsvTable t = read("x,kind\n1,b\n2,a\n3,b\n", {.text_columns = {{.column = 1}}});
  CHECK(t.values == std::vector<double>{1, 0, 2, 1, 3, 0});
  CHECK(t.texts == std::vector<std::vector<std::string>>{{}, {"b", "a"}});
  std::string many = "x\n";
  for (int i = 0; i <= 1000; ++i) many += "n" + std::to_string(i) + "\n";
  CHECK(
      has(why_not(many, {.text_columns = {{.column = 0}}, .advise_keys = true}),
          "t.csv:1002:1: column 'x' has more than 1000 different texts, so they are no categories; "
          "leave the column out with `exclude`"));
  CHECK(has(why_not(many, {.text_columns = {{.column = 0}}}),
            "so they are no categories; compare it with that of the training file"));
  CHECK(has(why_not(many, {.text_columns = {{.column = 0}}, .targets = {0}}),
            "so they are no classes; choose another target column"));
}

TEST_CASE("fields without a value are refused, kept, or their lines dropped") {
  using Missing = CsvFormat::Missing;
  const std::string text = "x,kind,y\n1,,5\nNA,b,6\n3,b,7\n";
  const auto format = [](Missing missing) {
    return CsvFormat{
        .text_columns = {{.column = 1}}, .missing = missing, .targets = {2}, .advise_keys = true};
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
  CHECK(dropped.values == std::vector<double>{3, 0, 7});
  CHECK(dropped.missing == std::vector<size_t>{1, 1, 0});
  CHECK(
      has(why_not("x,kind,y\n1,a,?\n", format(Missing::keep)),
          "t.csv:2:5: '?' in column 'y' stands for a missing value; enter the value, or leave such "
          "lines out with `missing_targets: drop`"));
  CHECK(has(why_not("x,kind,y\n1,a,?\n", format(Missing::drop)),
            "every line has a field without a value"));
  CHECK(read("x,kind\n1,NA\n",
             {.text_columns = {{.column = 1, .known = {"NA"}}}, .missing = Missing::drop})
            .rows == 1);
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
    CHECK_MESSAGE(has(why_not(line + "4,5,6\n"), wrong), why_not(line + "4,5,6\n"));
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
  std::vector<double> expected;
  for (int i = 0; i < 300000; ++i) {
    text += std::to_string(i) + "," + std::to_string(i % 7) + (i % 3 == 0 ? "\r\n" : "\n");
    expected.insert(expected.end(), {static_cast<double>(i), static_cast<double>(i % 7)});
  }
  REQUIRE(text.size() > 2 * kMiB);
  for (int end = 0; end < 2; ++end, text.pop_back()) {  // with the last line's end, and without
    const bool same = read(text).values == expected;
    CHECK(same);
  }
  CHECK(has(why_not(text + "9\nx,1\n"), "t.csv:300001:1: 'x' in column '0' is not"));
  CHECK(read("1,2\n" + std::string(5 * kMiB, ' ') + "3,4\n").values ==
        std::vector<double>{1, 2, 3, 4});
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

TEST_CASE("columns of one name are numbered as in pandas, and none is taken by that name") {
  const CsvTable t = read("a,b,a,a.1,a\n1,2,3,4,5\n");
  CHECK(t.names == std::vector<std::string>{"a", "b", "a.2", "a.1", "a.3"});
  CHECK(t.column("a.2", "t") == 2);
  CHECK(t.column("-1", "t") == 4);
  CHECK(data_error([&] { t.column("a", "t"); }) ==
        "t has 3 columns 'a': 0, 2, 4, counted from 0; give the number of the column instead of "
        "its name");
  CHECK(t.reference(0) == "0");
  CHECK(t.reference(1) == "b");
  CHECK(t.column(t.reference(2), "t") == 2);
  CHECK(read("0,x,x\n1,2,3\n", {.header = CsvFormat::HeaderLine::yes}).reference(1) == "1");
  CHECK(read("x,x,0\n1,2,3\n", {.header = CsvFormat::HeaderLine::yes}).reference(0) == "-3");
}

TEST_CASE("numbers keep the digits of a double") {
  CHECK(read("1700000000123\n1700000000124\n").values ==
        std::vector<double>{1700000000123, 1700000000124});
}

TEST_CASE("a decimal comma") {
  const CsvTable t = read("a;b\n1,5;-2\n+3e2;4,25e-1\n", {.delimiter = ';', .decimal = ','});
  CHECK(t.values == std::vector<double>{1.5, -2, 300, 0.425});
  CHECK(has(why_not("a;b\n1.5;2\n", {.delimiter = ';', .decimal = ','}),
            "t.csv:2:1: '1.5' in column 'a' is not a finite number"));
  CHECK(has(why_not("a;b\n1;2,5\n", {.delimiter = ';', .advise_keys = true}),
            "t.csv:2:3: '2,5' in column 'b' is not a finite number; remove thousands separators, "
            "and if the file has decimal commas, write `decimal: ','`"));
  CHECK(has(why_not("a,b\n1,\"1,234\"\n"), "remove thousands separators"));
}

TEST_CASE("dates are named as such") {
  CHECK(has(why_not("day,x\n2026-01-31,1\n", {.advise_keys = true}),
            "t.csv:2:1: '2026-01-31' in column 'day' is a date, not a number; write dates as "
            "numbers, or leave the column out with `exclude`"));
}

TEST_CASE("line breaks within quotes belong to the field") {
  const CsvTable t = read("x,\"a\nnote\",y\r\n1,\"two\r\nlines, \"\"q\"\"\",5\n2,\"\n\n\",6\n",
                          {.columns = {0, 1, 2}, .text_columns = {{.column = 1}}});
  CHECK(t.names[1] == "a\nnote");
  CHECK(t.texts[1] == std::vector<std::string>{"two\r\nlines, \"q\"", "\n\n"});
  CHECK(t.values == std::vector<double>{1, 0, 5, 2, 1, 6});
  CHECK(has(why_not("1,2\n\"3\n4\",x\n"), "t.csv:2:1: '3\\n4' in column '0'"));
  CHECK(has(why_not("1,2\n1,\"a\nb\"c\n"),
            "t.csv:3:3: text after a quoted field that begins on line 2, where a quote may be"));
  CHECK(has(why_not("1\n\"a\\\"b\"\n"), "is written as two quotes, not as \\\""));
  // A block ends within the field.
  const std::string lines(3 * kMiB, '\n');
  CHECK(read("a,b\n1,\"" + lines + "\"\n2,x\n", {.columns = {0}}).values ==
        std::vector<double>{1, 0, 2, 0});
  CHECK(has(why_not("1\n\"" + std::string(9 * kMiB, '\n')), "t.csv:2:1: the quote that opens"));
}

TEST_CASE("lines may end with a carriage return alone") {
  CHECK(read("a,b\r1,2\r\r3,4").values == std::vector<double>{1, 2, 3, 4});
  CHECK(has(why_not("a,b\r1,2\r3,x\r"), "t.csv:3:3: 'x' in column 'b'"));
  std::string text;
  for (int i = 0; i < 400000; ++i) text += std::to_string(i % 10) + "\r\n";
  CHECK(read("x" + text).rows == 399999);  // \r\n is one end, also between two blocks
}

// In UTF-16, with a byte order mark.
std::string utf16(std::u16string_view text, bool little) {
  std::string out;
  for (const char16_t c : u"\ufeff" + std::u16string(text))
    for (const int shift : little ? std::vector{0, 8} : std::vector{8, 0})
      out += static_cast<char>(static_cast<unsigned char>(c >> shift));
  return out;
}

TEST_CASE("UTF-16 with a byte order mark is read, other encodings are named") {
  for (const bool little : {true, false}) {
    const CsvTable t =
        read(utf16(u"größe,b\r\n1,ä\U0001F600\n", little), {.text_columns = {{.column = 1}}});
    CHECK(t.names[0] == "größe");
    CHECK(t.texts[1] == std::vector<std::string>{"ä\U0001F600"});
    CHECK(has(why_not(utf16(u"a\xd800"
                            u"b",
                            little)),
              "is no valid UTF-16 text"));
    CHECK(has(why_not(utf16(u"a", little) + "x"), "is no valid UTF-16 text"));
    const std::string bare = utf16(u"a,b\n1,2\n", little).substr(2);
    CHECK(
        has(why_not(bare), std::string("seems to be encoded in UTF-16") + (little ? "LE" : "BE")));
    CHECK(has(why_not(bare), "iconv -f UTF-16"));
  }
  CHECK(has(why_not("a,b\n1,gr\xf6\xdf"
                    "e\n"),
            "t.csv:2:5: the byte 0xf6 is not UTF-8; convert the file, if it is in Latin-1 or "
            "Windows-1252 by iconv -f WINDOWS-1252 -t UTF-8"));
  CHECK(has(why_not(std::string("1\n2\0\n", 5)), "t.csv:2:2: a NUL byte"));
  CHECK(has(why_not(std::string("\xff\xfe\0\0a\0\0\0", 8)), "is encoded in UTF-32"));
  CHECK(has(why_not("PK\x03\x04zip"), "is a ZIP archive"));
}

}  // namespace
}  // namespace dpt
