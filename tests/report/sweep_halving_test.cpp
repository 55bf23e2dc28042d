// Successive halving, and the tables of a sweep.
#include "report/sweep_halving.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "data/folder.h"
#include "report/sweep_manifest.h"
#include "report/sweep_picture.h"
#include "report/sweep_table.h"

namespace dpt {
namespace {

std::string record(int64_t epoch, double loss, double accuracy) {
  return fmt::format(R"({{"epoch": {}, "loss": {}, "seconds": 2, "steps": 10, "lr": 0.1, )"
                     R"("samples_per_second": 500.0, "test_loss": 1, "test_accuracy": {}}})",
                     epoch, loss, accuracy);
}

// Nine settings of one run; the accuracy after epoch e is 0.1 * setting + 0.001 * e.
Sweep nine() {
  Sweep out{.name = "t",
            .folder = "f",
            .keys = {"optimizer.lr"},
            .runs = {},
            .metric = "test.accuracy",
            .target = {}};
  for (size_t i = 0; i < 9; ++i) {
    SweepPoint p{.name = fmt::format("lr={}", i),
                 .setting = i,
                 .values = {{"optimizer.lr", fmt::format("{}", i)}}};
    out.runs.push_back({.point = std::move(p), .facts = {.epochs = 9}});
  }
  return out;
}

void train(SweepRun& r, int64_t epochs) {
  while (r.numbers.epochs() < epochs) {
    const int64_t e = r.numbers.epochs() + 1;
    r.numbers.add(
        record(e, 1.0 / static_cast<double>(e),
               0.1 * static_cast<double>(r.point.setting) + 0.001 * static_cast<double>(e)));
  }
}

TEST_CASE("rungs keep one of eta settings and end with all epochs") {
  const auto text = [](size_t settings, int64_t epochs, int eta, int64_t every) {
    return rungs_text(halving_rungs(settings, epochs, eta, every));
  };
  CHECK(text(9, 9, 3, 1) ==
        "9 settings for 1 epoch, then 3 for 3, then 1 for 9: 21 epochs instead of 81");
  CHECK(text(8, 100, 2, 1) ==
        "8 settings for 12 epochs, then 4 for 25, then 2 for 50, then 1 for 100: 248 epochs "
        "instead of 800");
  CHECK(text(27, 4, 3, 1) == "27 settings for 1 epoch, then 9 for 4: 54 epochs instead of 108");
  CHECK(text(9, 20, 3, 5) == "9 settings for 5 epochs, then 3 for 20: 90 epochs instead of 180");
  CHECK(
      has(error_of(Fault::spec, [] { halving_rungs(2, 100, 3, 1); }), "2 settings and 100 epochs"));
  CHECK(has(error_of(Fault::spec, [] { halving_rungs(100, 2, 3, 1); }), "a smaller --eta"));
}

TEST_CASE("halving continues the settings that were best at the end of a rung") {
  Sweep s = nine();
  std::vector<std::pair<size_t, int64_t>> calls;
  run_halving(s, halving_rungs(9, 9, 3, 1), [&](const std::vector<size_t>& runs, int64_t epochs) {
    calls.emplace_back(runs.size(), epochs);
    for (const size_t i : runs) {
      train(s.runs[i], epochs == 0 ? 9 : epochs);
      // Runs stop some steps later than they should; what they do then does not count.
      if (epochs == 1 && i == 0) s.runs[i].numbers.add(record(2, 1, 0.99));
      s.runs[i].state = epochs == 0 ? SweepState::finished : SweepState::paused;
      if (i == 8 && epochs == 1) s.runs[i].state = SweepState::failed;
    }
    return true;
  });
  CHECK(calls == std::vector<std::pair<size_t, int64_t>>{{9, 1}, {3, 3}, {1, 0}});
  CHECK(s.runs[7].state == SweepState::finished);
  CHECK(s.runs[6].state == SweepState::dropped);
  CHECK(s.runs[6].note == "after 3 epochs");
  CHECK(s.runs[0].note == "after 1 epoch");
  CHECK(s.runs[8].state == SweepState::failed);
}

TEST_CASE("a table of settings has means over seeds and the best first") {
  Sweep s = nine();
  s.runs.resize(4);
  for (size_t i = 0; i < 4; ++i) s.runs[i].point.setting = i / 2;
  s.seeds = 2;
  s.runs[0].numbers.add(record(1, 1, 0.5));
  s.runs[1].numbers.add(record(1, 3, 0.7));
  s.runs[2].numbers.add(record(1, 1, 0.625));
  s.runs[2].numbers.add(record(2, 0.5, 0.875));
  for (SweepRun& r : s.runs) r.state = SweepState::finished;
  s.runs[3].state = SweepState::failed;
  s.runs[3].note = "a, b";
  s.runs[2].point.values[0].second = s.runs[3].point.values[0].second = "2";
  CHECK(sweep_text(s, 0) ==
        "lr  seeds     test.accuracy              loss  epochs  seconds  samples/s  state\n"
        " 2      1           87.50 %            0.5000       2     4.00        500  1 failed, 1 "
        "finished\n"
        " 0      2  60.00 +- 14.14 %  2.0000 +- 1.4142       1     2.00        500  finished\n");
  s.target = SweepTarget{.metric = "test.accuracy", .value = 0.7};
  const std::vector<SettingRow> rows = setting_rows(s);
  CHECK(rows[0].reached_s.mean == 2);  // equal counts: the faster setting first
  CHECK(rows[1].reached_epoch.mean == 2);
  const std::string csv = sweep_csv(s);
  CHECK(csv.starts_with("run,optimizer.lr,seed,loss,best.loss,test.accuracy,best.test.accuracy,"));
  CHECK(has(csv, "\nlr=2,2,,0.5,0.5,0.875,0.875,1,1,2,20,4,500,2,4,finished,\n"));
  CHECK(csv.ends_with(",failed,\"a, b\"\n"));
  s.metric = "test.loss";  // lower is better
  CHECK(setting_rows(s).size() == 2);
}

TEST_CASE("a page shows tables, pictures by key, heat maps and the speed-up") {
  Sweep s = nine();
  s.keys = {"parallel", "data.batch_size"};
  for (size_t i = 0; i < 9; ++i) {
    SweepRun& r = s.runs[i];
    const char* const modes[] = {"single", "dp", "d<p"};
    r.point.values = {{"parallel", modes[i / 3]},
                      {"data.batch_size", fmt::format("{}", 1 << (i % 3))}};
    r.facts.mode = i < 3 ? "single" : "dp";
    r.facts.devices = r.facts.cores = i < 3 ? 1 : 2;
    r.facts.batch_size = 1 << (i % 3);
    train(r, 2);
  }
  const std::string page = sweep_html(s, "dptrain sweep t.yaml", "a machine", 2);
  CHECK(page.starts_with("<!doctype html>"));
  for (const char* part : {"speed-up by number of devices", "ideal 2x", "Results by parallel",
                           "test.accuracy by parallel and data.batch_size", "d&lt;p",
                           "Results by data.batch_size", "80.20 %"})
    CHECK_MESSAGE(has(page, part), part);
  CHECK(!has(page, "d<p"));
  // Curves and their names in the order of the values, places of powers of two on the axis.
  CHECK(has(page, "batch_size=1</span>"));
  CHECK(page.find("batch_size=1</span>") < page.find("batch_size=2</span>"));
  CHECK(has(page, "text-anchor=\"middle\">d&lt;p</text>"));
  for (const char* screen : {"width=device-width", "prefers-color-scheme:dark", "class=\"wide\""})
    CHECK_MESSAGE(has(page, screen), screen);
  for (const char* link : {"src=", "href=", "@import"}) CHECK(!has(page, link));
  CHECK(sweep_pictures(nine(), "", 2).empty());  // no results
}

TEST_CASE("a manifest says what changed, and knows the runs that are done") {
  const Folder folder;
  Sweep s = nine();
  s.folder = folder.path();
  const SweepIdentity identity{.spec = "epochs: 9\n", .settings = {{"until", "loss=1"}}};
  folder.write("lr=1/metrics.jsonl", record(1, 2, 0.5) + "\n");
  folder.write("lr=2/metrics.jsonl", record(1, 2, 0.5) + "\n");
  s.runs[1].state = SweepState::finished;
  s.runs[2].state = SweepState::running;
  s.runs[3].state = SweepState::failed;
  s.runs[3].note = "no \"data\": é";
  s.runs[5].state = SweepState::stopped;   // before its first epoch ended
  s.runs[4].state = SweepState::finished;  // somebody removed its directory
  write_manifest(s, identity);
  CHECK(holds_sweep(folder.path()));
  CHECK(sweep_changes(folder.path(), s, identity).empty());
  Sweep again = nine();
  again.folder = folder.path();
  restore_runs(again, false);
  CHECK(again.runs[1].state == SweepState::finished);
  CHECK(again.runs[1].numbers.find("test.accuracy") == 0.5);
  CHECK(again.runs[2].state == SweepState::stopped);
  CHECK(again.runs[5].state == SweepState::stopped);
  CHECK(again.runs[3].note == s.runs[3].note);
  CHECK(again.runs[4].state == SweepState::waiting);
  restore_runs(again = s, true);
  Sweep retried = nine();
  retried.folder = folder.path();
  restore_runs(retried, true);
  CHECK(retried.runs[3].state == SweepState::waiting);

  const auto changes = [&](const Sweep& now, const SweepIdentity& of) {
    return sweep_changes(folder.path(), now, of);
  };
  CHECK(changes(s, {.spec = "epochs: 8\n", .settings = identity.settings}) ==
        std::vector<std::string>{"epochs: 9 -> 8"});
  CHECK(changes(s, {.spec = identity.spec, .settings = {}}) ==
        std::vector<std::string>{"--until: loss=1 -> (not given)"});
  Sweep more = s, fewer = s;
  more.runs.push_back({.point = {.name = "lr=9", .setting = 9, .values = {}}});
  fewer.runs.pop_back();
  CHECK(changes(more, identity).empty());  // the sweep grows
  CHECK(changes(fewer, identity) ==
        std::vector<std::string>{"1 of its 9 runs are not among the values now: lr=8"});
  folder.write("sweep.json", "{\"version\": 1, [");
  CHECK(has(data_error([&] { changes(s, identity); }), "sweep.json is damaged"));
}

}  // namespace
}  // namespace dpt
