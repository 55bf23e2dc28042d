#include "report/text_chart.h"

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "report/watch_view.h"
#include "sanitizers.h"

namespace dpt {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

TEST_CASE("a text chart draws lines, marks and axes") {
  const std::vector<CurvePoint> line = {{0, 8}, {5, 4}, {10, 0}, {15, kNan}};
  const std::vector<CurvePoint> marks = {{5, 8}, {10, 8}};
  const TextCurve curves[] = {{.name = "loss", .points = &line},
                              {.name = "test", .points = &marks, .marks = true}};
  const auto ascii = text_chart(curves, {.columns = 30, .rows = 7, .ascii = true}, "epoch", 5);
  CHECK(joined(ascii) ==
        "          * loss  o test\n"
        "       8 |****      o        o\n"
        "         |    *****\n"
        "       4 |        *****\n"
        "         |            *****\n"
        "       0 |                ****\n"
        "          0            epoch 2\n");
}

TEST_CASE("text charts fit every size, and need a number and some room") {
  const std::vector<CurvePoint> points = {{0, 1e9}, {1, -2e-7}, {70000, 3}};
  const TextCurve curves[] = {{.name = "a long name of a curve", .points = &points},
                              {.name = "another long name of one", .points = &points}};
  for (const bool ascii : {true, false})
    for (const int columns : {24, 39, 40, 80, 200})
      for (const int rows : {6, 24, 60}) {
        const auto lines =
            text_chart(curves, {.columns = columns, .rows = rows, .ascii = ascii}, "step", 1);
        CHECK(lines.size() == static_cast<size_t>(rows));
        for (const std::string& line : lines)
          CHECK_MESSAGE(characters_of(line) <= static_cast<size_t>(columns), line);
      }
  CHECK(text_chart(curves, {.columns = 23, .rows = 9}, "step", 1).empty());
  CHECK(text_chart(curves, {.columns = 80, .rows = 5}, "step", 1).empty());
  const std::vector<CurvePoint> none = {{0, kNan}};
  const TextCurve empty[] = {{.name = "loss", .points = &none}};
  CHECK(text_chart(empty, {}, "step", 1).empty());
  const std::vector<CurvePoint> one = {{3, 2}};
  const TextCurve single[] = {{.name = "loss", .points = &one}};
  CHECK(text_chart(single, {}, "step", 1).size() == 12);
}

RunCurves curves_of(const std::vector<std::string>& lines) {
  RunCurves out;
  for (const std::string& line : lines) out.add(line);
  return out;
}

const std::vector<std::string> kRun = {
    R"({"epoch": 1, "loss": 0.5, "seconds": 10, "steps": 100, "lr": 0.1, "samples_per_second": 900,
        "validation_loss": 0.6, "validation_accuracy": 0.75, "time": 1000, "run": "a"})",
    R"({"epoch": 2, "loss": 0.4, "seconds": 10, "steps": 100, "lr": 0.1, "samples_per_second": 900,
        "validation_loss": 0.7, "validation_accuracy": 0.5, "time": 1012, "run": "a"})"};

TEST_CASE("curves keep last and best, and the pace gives the time left") {
  const RunCurves c = curves_of(kRun);
  CHECK(c.epoch() == 2);
  CHECK(c.step() == 200);
  CHECK(c.steps_of_epoch() == 100);
  CHECK(c.find("validation.loss")->last() == 0.7);
  CHECK(c.find("validation.loss")->best()->value == 0.6);
  CHECK(c.find("validation.accuracy")->best()->step == 100);
  CHECK(c.trained_s() == 20);
  // 100 steps in 12 seconds; 300 are left, and 4 seconds of them are over.
  CHECK(*seconds_left(c, 500, 1016) == doctest::Approx(32));
  CHECK(*seconds_left(c, 500, 2000) == 0);
  CHECK(!seconds_left(c, 0, 1016));
  CHECK(!seconds_left(curves_of({kRun[0]}), 500, 1016));
  // What another process wrote says nothing about the pace of this one.
  RunCurves resumed = c;
  resumed.add(R"({"step": 210, "epoch": 3, "loss": 1, "time": 9000, "run": "b"})");
  CHECK(!seconds_left(resumed, 500, 9000));
}

TEST_CASE("curves of very many records stay small" * doctest::skip(kSanitized)) {
  RunCurves c;
  constexpr int kSteps = 100'000;
  for (int i = 1; i <= kSteps; ++i)
    c.add("{\"step\": " + std::to_string(i) + ", \"epoch\": 1, \"loss\": 1}");
  CHECK(c.find("step.loss")->points.size() < 40'000);
  CHECK(c.find("step.loss")->points.size() > 10'000);
  CHECK(c.find("step.loss")->points.back().step > kSteps - 9);
}

TEST_CASE("the view of a run fits terminals of 40, 80 and 200 columns") {
  const RunCurves c = curves_of(kRun);
  const WatchedRun run{.path = "runs/net/3",
                       .spec = "net",
                       .state = "running",
                       .note = "",
                       .epochs = 5,
                       .steps = 500,
                       .began = 990,
                       .curves = &c};
  for (const int columns : {40, 80, 200}) {
    const auto lines = watch_lines(run, {.columns = columns, .rows = 24}, 1016);
    CHECK(lines.size() == 24);
    for (const std::string& line : lines)
      CHECK_MESSAGE(characters_of(line) < static_cast<size_t>(columns), line);
    const std::string text = joined(lines);
    for (const char* part : {"runs/net/3  net  running\n", "epoch 2/5", "step 200/500", "ETA 0:32",
                             "elapsed 0:26", "900 samples/s", "lr 0.1", "loss 0.4000 (best)",
                             "validation.loss 0.7000", "o validation.loss"})
      CHECK_MESSAGE(text.find(part) != text.npos, std::string(part), "\n", text);
  }
  // Within an epoch, what the run says of its last step.
  WatchedRun within = run;
  within.progress =
      "epoch 3/5, step 250/500: loss 0.4321, lr 0.001, 9,120 samples/s, elapsed 1:00, ETA 9:00";
  for (const int columns : {40, 80, 200}) {
    const std::string text = joined(watch_lines(within, {.columns = columns, .rows = 24}, 1016));
    for (const char* part :
         {"epoch 3/5", "step 250/500", "loss 0.4321", "9,120 samples/s", "ETA 9:00"})
      CHECK_MESSAGE(text.find(part) != text.npos, std::string(part), "\n", text);
    CHECK(text.find("step 200/500") == text.npos);
  }
  const RunCurves none;
  within.curves = &none;  // in the first epoch
  CHECK(
      joined(watch_lines(within, {.columns = 80, .rows = 24}, 1016)).find("epoch 3/5  step 250") !=
      std::string::npos);
  const std::string wide = joined(watch_lines(run, {.columns = 200, .rows = 24}, 1016));
  CHECK(wide.find("validation.accuracy 50.00 % (best 75.00 %, epoch 1)") != wide.npos);
}

TEST_CASE("lines about records and the end of a run") {
  RunCurves c;
  WatchedRun run{.path = "r",
                 .spec = "",
                 .state = "failed",
                 .note = "no \x1b[31mdata",
                 .epochs = 5,
                 .steps = 500,
                 .curves = &c};
  CHECK(record_line(run, kRun[0]) ==
        "epoch 1/5: loss 0.5000, 10.00 s, lr 0.1, 900 samples/s, validation.loss 0.6000, "
        "validation.accuracy 75.00 %\n");
  CHECK(record_line(run, R"({"step": 7, "epoch": 1, "loss": 2, "lr": 0.1})") ==
        "epoch 1/5, step 7/500: loss 2.0000, lr 0.1\n");
  CHECK(record_line(run, "{") == "");
  const RunCurves whole = curves_of(kRun);
  const WatchedRun ended{.path = "runs/net/3", .state = "finished", .epochs = 2, .curves = &whole};
  CHECK(final_text(ended, 0) ==
        "runs/net/3: finished, epoch 2/2, step 200, loss 0.4000 (best), validation.loss 0.7000 "
        "(best 0.6000, epoch 1), validation.accuracy 50.00 % (best 75.00 %, epoch 1)\n");
  CHECK(final_text(ended, 79) ==
        "runs/net/3: finished, epoch 2/2, step 200, loss 0.4000 (best),\n"
        "validation.loss 0.7000 (best 0.6000, epoch 1),\n"
        "validation.accuracy 50.00 % (best 75.00 %, epoch 1)\n");
  CHECK(final_text(run, 0).starts_with("r: failed, epoch 0/5, step 0/500, no "));
  // Control codes of names and errors do not reach the terminal.
  const std::string view = joined(watch_lines(run, {}, 0));
  CHECK(view.find('\x1b') == view.npos);
  CHECK(view.find("no step or epoch has been recorded yet") != view.npos);
}

TEST_CASE("a log has the position at once, and after a minute without a line") {
  const RunCurves none;
  WatchedRun run{.path = "r", .state = "running", .curves = &none};
  LogPosition position;
  CHECK(position.line(run, false, 1000) == "");  // nothing is known yet
  run.progress = "epoch 1/5, step 2/100: loss 0.5, lr 0.1";
  CHECK(position.line(run, false, 1001) == run.progress + "\n");
  run.progress = "epoch 1/5, step 9/100: loss 0.4, lr 0.1";
  CHECK(position.line(run, false, 1060) == "");
  CHECK(position.line(run, false, 1061) == run.progress + "\n");
  CHECK(position.line(run, true, 1100) == "");  // a record is a line, too
  CHECK(position.line(run, false, 1159) == "");
  CHECK(position.line(run, false, 1160) == run.progress + "\n");
  run.state = "finished";
  CHECK(position.line(run, false, 2000) == "");
}

}  // namespace
}  // namespace dpt
