#include "data/column_encoding.h"

#include <doctest/doctest.h>

#include "data/datasets/loading.h"

namespace dpt {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Columns a, kind.
CsvTable table(const std::vector<double>& values) {
  CsvTable out;
  out.names = {"a", "kind"};
  out.rows = values.size() / 2;
  out.values = values;
  out.texts = {{}, {"red", "blue", "green"}};
  return out;
}

}  // namespace

TEST_CASE("encodings are fitted to the rows that are trained on") {
  CsvTable t = table({1, 0, kNone, 1, 5, kNone, 99, 2});
  const std::vector<size_t> columns{1, 0};
  const std::vector<uint32_t> rows{0, 1, 2};
  const auto all =
      fit_encodings(t, columns, rows, {.fill_missing = true, .standardize = true}, "t");
  CHECK(all[0] == ColumnEncoding{.categories = {"blue", "red"}, .fills = true});
  CHECK(all[1].fill == 3);
  CHECK(all[1].mean == 3);
  CHECK(all[1].std == doctest::Approx(std::sqrt(8.0 / 3)).epsilon(1e-12));  // of 1, 3 and 5
  const EncodedInputs e = encode(t, columns, all);
  CHECK(e.table.desc == TensorDesc{DType::f32, {4, 3}});
  CHECK(e.filled == 2);
  CHECK(e.unknown == 1);
  REQUIRE(e.first_unknown.size() == 1);
  CHECK(e.first_unknown[0].text == "green");
  CHECK(e.first_unknown[0].column == "kind");
  CHECK(e.first_unknown[0].row == 3);
  const std::vector<float> x = all_of<float>(e.table);
  CHECK(std::vector<float>(x.begin(), x.begin() + 2) == std::vector<float>{0, 1});
  CHECK(x[5] == 0);  // the mean of what was filled
}

TEST_CASE("without statistics numbers stay as they are") {
  CsvTable t = table({1, 0, 1, 0});
  const auto same = fit_encodings(t, std::vector<size_t>{0}, {}, {.standardize = true}, "t");
  CHECK(same[0].std == 1);  // equal numbers
  const auto plain = fit_encodings(t, std::vector<size_t>{0}, {}, {}, "t");
  CHECK_FALSE(changes_any(plain));
  CHECK(all_of<float>(encode(t, std::vector<size_t>{0}, plain).table) == std::vector<float>{1, 1});
  CHECK(t.values.empty());
}

TEST_CASE("values are read no oftener than needed") {
  CsvTable t = table({});
  t.rows = 1000;  // reading their values is an error
  CHECK_FALSE(changes_any(fit_encodings(t, std::vector<size_t>{0}, {}, {}, "t")));
  t.values = {1, 0, 2, 0};
  CHECK_FALSE(number_losing_digits(t, 0));
}

TEST_CASE("large numbers of a small spread are standardized before they are rounded") {
  CsvTable t = table({1700000000001, 0, 1700000000003, 0});
  const std::vector<size_t> column{0};
  const auto all = fit_encodings(t, column, {}, {.standardize = true}, "t");
  CHECK(all_of<float>(encode(t, column, all).table) == std::vector<float>{-1, 1});
}

TEST_CASE("numbers of a sample are named by columns and categories") {
  CHECK(input_names({}).empty());
  CHECK(input_names({.names = {"a", "kind"},
                     .inputs = {1, 0},
                     .encodings = {{.categories = {"x", "y"}}, {}}}) ==
        std::vector<std::string>{"kind=x", "kind=y", "a"});
}

}  // namespace dpt
