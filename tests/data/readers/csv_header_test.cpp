#include "data/readers/csv_header.h"

#include "../folder.h"

namespace dpt {
namespace {

CsvHeaderGuess guess(const std::string& text) {
  const Folder folder;
  return guess_csv_header(folder.write("t.csv", text), ',', '.');
}
void check(const std::string& text, bool header, bool doubt = false) {
  CAPTURE(text);
  const CsvHeaderGuess g = guess(text);
  CHECK(g.header == header);
  CHECK_MESSAGE(g.doubt.empty() != doubt, g.doubt);
}

TEST_CASE("numbers in the first line are names if other fields differ in kind from their columns") {
  std::string columns, values;
  for (int i = 0; i < 64; ++i)
    columns += std::to_string(i) + ",", values += std::to_string(i * 3 % 7) + ",";
  check(columns + "target\n" + values + "1\n" + values + "0\n", true);  // pandas' default names
  check(columns + "target\n" + values + "a\n" + values + "b\n" + values + "a\n", true);
  check("150,4,setosa,versicolor,virginica\n5.1,3.5,1.4,0.2,0\n4.9,3,1.4,0.2,1\n", true);
  check("id,2019,2020,label\n7,3,4,1\n9,5,6,0\n", true);
  check("id,2019,2020,label\nx7,3,4,yes\nx9,5,6,no\nx7,1,2,yes\n", true);
  check("0,1,2,3\n5.1,3.5,1.4,0.2\n4.9,3.0,1.4,0.2\n", true);
  check("0,1,2,3,4,5,6,7\n0,0,5,13,9,1,0,0\n", true);
  check(",0,1,2\n0,42,31,25\n1,2,3,0\n", true);
  check("400.5,401.0,id,label\n0.1,0.2,7,1\n0.3,0.4,8,0\n", true, true);
  check("2019,2020,label\n1,2,yes\n3,4,no\n1,1,yes\n", true);
  check("id,2019,2020,label\nx1,3,4,yes\nx2,5,6,no\nx3,1,2,yes\n", true);
  check("0,1,2\n1,0.5,1\n3,1.5,0\n", true, true);
  check("2019,2020,2021\n1.5,2.5,3.5\n4.5,5.5,6.5\n", true, true);
}

TEST_CASE("a first line of data is none") {
  check("1,2\n3,4\n", false);
  check("5.1,3.5,setosa\n4.9,3.0,setosa\n7.0,3.2,versicolor\n", false);
  check("1,x,3\n4,5,6\n7,8,9\n", false, true);  // one wrong field
  check("1,2,3\n1,2,3\n", false);
  check("0,1,2\n1,0,2\n", false, true);
  check("0,1\n1,0\n", false);
  check("nan,inf\n1,2\n", false);
  check(",,\n1,2,3\n", false);
  check("3,4,label\n1,2,yes\n3,4,no\n1,1,yes\n", false, true);
  check("", false);
}

// Lines of whole numbers below `most`, in no order.
std::string lines(int columns, int rows, int most) {
  std::string out;
  uint32_t x = 7;
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) {
      x = x * 1664525U + 1013904223U;
      out +=
          std::to_string(x / 65536 % static_cast<uint32_t>(most)) + (c + 1 < columns ? "," : "\n");
    }
  return out;
}

TEST_CASE(
    "numbers above numbers that are unlike them are in doubt, and names if they are far off") {
  check("2019,2020,2021,2022\n" + lines(4, 40, 100000), false, true);
  check("2022,2021,2020\n" + lines(3, 40, 1900), false, true);
  check("400,410,420,430\n" + lines(4, 40, 1000), false, true);
  check("1,2,3,4,5,6,7,8,9,10\n" + lines(10, 40, 256), false, true);
  check("0.5,1.0,1.5,2.0\n" + lines(4, 40, 3), false, true);
  check("400,407,431,445,460,499\n" + lines(6, 40, 1000), false, true);
  check("7000,3000\n" + lines(2, 40, 100), false, true);
  CHECK(has(guess("400,410,420,430\n" + lines(4, 40, 1000)).doubt, "is taken for a sample"));
  check("2019,2020,2021\n" + lines(3, 40, 100), true, true);
  check("400,410,430,target\n" + lines(4, 40, 50), true);
  check("5,10,15,target\n" + lines(4, 40, 26), true, true);
  check("2024-01,2024-02,2024-03\n" + lines(3, 40, 500), true);
  check("2024-01,7\n" + lines(2, 40, 500), false, true);
  // Lines below that are alike, and numbers that are not odd.
  check("1,2,3,4\n2,3,4,5\n3,4,5,6\n4,5,6,7\n", false);
  check("1,20,300,4000,50000\n2,21,305,4100,51000\n2,22,310,4200,60000\n", false);
  check(lines(4, 40, 1000), false);
  check("1.5,2.5\n" + lines(2, 40, 9), false);
  check("2024-01-01,3.5\n2024-01-02,4.5\n2024-01-02,5.5\n", false);
  check("1,5\n1.5,2.5\n", false);
}

TEST_CASE("a first line of texts is a header unless they occur again") {
  check("a,b\n1,2\n", true);
  check("a,b\n", true);
  check("colour,size\nred,big\nblue,small\n", true);
  check("red,big\nblue,small\nred,small\nblue,big\n", false, true);
  check("red,size,kind\nred,big,x\nblue,small,y\n", true, true);
  check("größe,kind\n1,kind\n", true);  // a name above numbers
  CHECK(guess("red,big\nred,big\n").doubt.ends_with("occurs again in its column"));
}

}  // namespace
}  // namespace dpt
