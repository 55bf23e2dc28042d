#include "data/readers/csv.h"

#include "../folder.h"

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
            "t.csv:1:1: 'a' is not a finite number"));
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
  CHECK(has(why_not("a,b\n1,2\n3, x4\n"), "t.csv:3:4: 'x4' is not a finite number"));
  CHECK(has(why_not("1,2\n3,\n"), "t.csv:2:3: '' is not"));
  CHECK(has(why_not("1,2\n3, ,5\n"), "t.csv:2:1: 3 fields, where the first line has 2"));
  CHECK(has(why_not("1,2\n\n3\n"), "t.csv:3:1: 1 fields"));
  CHECK(has(why_not("1,2\n1,nan\n"), "t.csv:2:3: 'nan'"));
  CHECK(has(why_not("1\n1e39\n"), "t.csv:2:1: '1e39'"));
  CHECK(has(why_not("1\n0x10\n"), "t.csv:2:1: '0x10'"));
  CHECK(has(why_not("1,2\n\"3,4\n"), "t.csv:2:1: a quote that is not closed"));
  CHECK(has(why_not("1,2\n\"3\"x,4\n"), "t.csv:2:4: text after a quoted field"));
  CHECK(has(why_not(""), "holds no numbers"));
  CHECK(has(why_not("a,b\n"), "t.csv:1:1: 'a' is not a finite number, so this line, the only one"));
  CHECK(has(why_not("1,x\n"), "t.csv:1:3: 'x' is not a finite number, so this line, the only one"));
}

TEST_CASE("columns by name or number") {
  const CsvTable t = read("a,b,1\n1,2,3\n");
  CHECK(t.column("b", "t") == 1);
  CHECK(t.column("1", "t") == 2);  // a name goes first
  CHECK(t.column("0", "t") == 0);
  CHECK(t.column("-1", "t") == 2);
  CHECK(data_error([&] { t.column("3", "t"); }) ==
        "t has no column '3'; its 3 columns are a, b, 1");
  CHECK(data_error([&] { t.column("-4", "t"); }) != "");
}

}  // namespace
}  // namespace dpt
