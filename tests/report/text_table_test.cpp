#include "report/text_table.h"

#include <doctest/doctest.h>

#include "data/folder.h"

namespace dpt {
namespace {

using Cut = TextColumn::Cut;

const std::vector<TextColumn> kColumns = {
    {.cells = {"run", "batch_size=64,lr=0.001", "b=\xC3\xA4"}, .cut = Cut::front},
    {.cells = {"state", "running", "waiting"}, .rank = 1, .name = "state"},
    {.cells = {"loss", "0.3880", "-"}, .right = true},
    {.cells = {"left", "0:04", "-"}, .right = true, .rank = 2, .name = "left"},
    {.cells = {"note", "the loss is nan", ""}, .name = "note", .cut = Cut::end}};

std::string text(std::vector<TextColumn> columns, size_t width) {
  const auto left_out = fit_columns(columns, width);
  return table_text(columns) + left_out_text(left_out, width);
}

}  // namespace

TEST_CASE("a table as wide as the terminal is complete, and aligned by characters") {
  CHECK(text(kColumns, 62) ==
        "run                     state      loss  left  note\n"
        "batch_size=64,lr=0.001  running  0.3880  0:04  the loss is nan\n"
        "b=\xC3\xA4                     waiting       -     -\n");
}

TEST_CASE("a narrow table cuts notes, then columns by rank, then beginnings of names") {
  CHECK(has(text(kColumns, 61), "  0:04  the loss is ..\n"));
  CHECK(text(kColumns, 50) ==
        "run                state      loss  left  note\n"
        "..ize=64,lr=0.001  running  0.3880  0:04  the lo..\n"
        "b=\xC3\xA4                waiting       -     -\n");
  CHECK(text(kColumns, 40) ==
        "run                       loss  note\n"
        "batch_size=64,lr=0.001  0.3880  the lo..\n"
        "b=\xC3\xA4                          -\n"
        "not shown, see --csv: left, state\n");
  CHECK(text(kColumns, 1) == text(kColumns, 40));
}

TEST_CASE("a column goes with the one that it belongs to") {
  std::vector<TextColumn> columns = kColumns;
  columns.push_back({.cells = {"best", "0.3", "-"}, .name = "best.left", .with = "left"});
  const std::string narrow = text(columns, 50);
  CHECK(!has(narrow, "best  "));
  CHECK(has(narrow, "not shown, see --csv: left, best.left\n"));
  CHECK(has(text(columns, 100), "best"));
}

TEST_CASE("what is left out is listed up to four names") {
  CHECK(left_out_text({}, 80).empty());
  CHECK(left_out_text({"a", "b", "c", "d", "e", "f"}, 80) ==
        "not shown, see --csv: a, b, c, d and 2 more\n");
}

}  // namespace dpt
