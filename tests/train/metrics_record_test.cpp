#include "train/metrics_record.h"

#include <cmath>

#include <doctest/doctest.h>

#include "train/metrics_file.h"
#include "train/scalars.h"

namespace dpt {
namespace {

TEST_CASE("a record is read with its numbers, texts and objects") {
  const auto r = parse_record(
      R"( {"step": 3, "loss": null, "x": -1.5e-3, "skipped": true, "n": NaN,)"
      R"( "grad_norms": {"a.weight": 0.5, "a.bias": 2}, "none": {}, "run": "a\"\u00e9\n"} )");
  REQUIRE(r);
  CHECK(r->number("step") == 3);
  CHECK(std::isnan(*r->number("loss")));
  CHECK(std::isnan(*r->number("n")));
  CHECK(r->number("x") == -0.0015);
  CHECK(r->number("skipped") == 1);
  CHECK(r->number("grad_norms.a.weight") == 0.5);
  CHECK(r->number("grad_norms.a.bias") == 2);
  CHECK(!r->number("run"));
  CHECK(r->text("run") == "a\"\xc3\xa9\n");
  CHECK(r->text("step").empty());
}

TEST_CASE("a line that is no record is refused") {
  for (const char* line :
       {"", "{", "[1]", "{\"a\" 1}", "{\"a\": 1", "{\"a\": 1} x", "{\"a\": [1]}", "{\"a\": \"x}",
        "{\"a\": 1,}", "{\"a\": \"\\u00\"}", "{\"a\": {\"b\": {\"c\": {\"d\": 1}}}}", "{\"a\": x}"})
    CHECK_MESSAGE(!parse_record(line), line);
}

TEST_CASE("of a very long line the numbers before the cut are read") {
  std::string line = R"({"step": 3, "loss": 2, "grad_norms": {)";
  while (line.size() < kMostRecordBytes) line += R"("a.weight": 0.5, )";
  CHECK(!parse_record(line.substr(0, 1000)));
  const auto cut = parse_record(line.substr(0, kMostRecordBytes));
  REQUIRE(cut);
  CHECK(cut->number("loss") == 2);
}

TEST_CASE("the kind of a record follows from its keys") {
  const auto kind = [](const char* line) { return parse_record(line)->kind(); };
  CHECK(kind(R"({"step": 1, "epoch": 1, "loss": 2})") == RecordKind::step);
  CHECK(kind(R"({"epoch": 1, "loss": 2})") == RecordKind::epoch);
  CHECK(kind(R"({"evaluation": 3, "step": 300, "epoch": 2})") == RecordKind::evaluation);
  CHECK(kind(R"({"final": true, "step": 300, "epoch": 2})") == RecordKind::final);
  CHECK(kind(R"({"loss": 2})") == RecordKind::other);
}

TEST_CASE("scalars have the step of the run and the names of charts") {
  ScalarReader reader;
  const auto text = [&](const char* line) {
    const auto scalars = reader.read(*parse_record(line));
    std::string out = std::to_string(scalars->step);
    for (const auto& [tag, value] : scalars->values)
      out += " " + tag + "=" + std::to_string(value).substr(0, 3);
    return out;
  };
  CHECK(text(R"({"epoch": 1, "loss": 2.5, "seconds": 1, "steps": 4, "lr": 0.1, "data_wait": 0.2,
                 "validation_f1": 0.5, "evaluation_seconds": 2, "time": 9})") ==
        "4 loss=2.5 seconds=1.0 lr=0.1 data_wait=0.2 validation.f1=0.5 "
        "evaluation_seconds=2.0");
  CHECK(text(R"({"step": 6, "epoch": 2, "loss": 2, "lr": 0.1, "norm": 3,
                 "grad_norms": {"l.weight": 7}})") ==
        "6 step.loss=2.0 lr=0.1 norm=3.0 grad_norms.l.weight=7.0");
  // The learning rate is that of steps once there are records of them.
  CHECK(text(R"({"epoch": 2, "loss": 2, "steps": 4, "lr": 0.1, "test_loss": 1})") ==
        "8 loss=2.0 test.loss=1.0");
  CHECK(text(R"({"evaluation": 1, "step": 9, "epoch": 3, "validation_top5": 1})") ==
        "9 validation.top5=1.0");
  CHECK(text(R"({"final": true, "step": 12, "epoch": 3, "test_accuracy": 1})") ==
        "12 test.accuracy=1.0");
}

}  // namespace
}  // namespace dpt
