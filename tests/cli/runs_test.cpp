// dptrain runs: the table over many runs as text, CSV, JSON and a picture.
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/folder_lock.h"
#include "cli/process.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

std::string spec(const std::string& lr, int epochs) {
  return fmt::format("name: mine\ndata: {{batch_size: 12}}\noptimizer: {{sgd: {}}}\nepochs: {}\n",
                     lr, epochs);
}

std::string epoch(int number, double loss, double accuracy) {
  return fmt::format(
      R"({{"run": "step", "epoch": {}, "loss": {}, "seconds": 0.5, "steps": 20, "lr": 0.1, )"
      R"("samples_per_second": 480.0, "test_loss": {}, "test_accuracy": {}}})"
      "\n",
      number, loss, loss + 1, accuracy);
}

// Runs in every state, below the folder "r".
struct Runs {
  Folder folder;
  Runs() {
    folder.write("r/a/1/spec.resolved.yaml", spec("0.1", 2));
    folder.write("r/a/1/metrics.jsonl", R"({"step": 1, "epoch": 1, "loss": 9, "lr": 0.1})"
                                        "\n" +
                                            epoch(1, 1.25, 0.5) + epoch(2, 1.5, 0.25));
    folder.write("r/a/1/checkpoints/step-000040/spec.resolved.yaml", spec("0.1", 2));
    folder.write("r/a/2/spec.resolved.yaml", spec("0.2", 2));
    folder.write("r/a/2/metrics.jsonl", epoch(1, 1, 0.75) + R"({"epoch": 2, "lo)");
    folder.write("r/a/2/model.safetensors", "");
    folder.write("r/a/10/spec.resolved.yaml", spec("0.05", 2));
    folder.write("r/a/10/metrics.jsonl", epoch(1, 3, 0.125));
    folder.write("r/b/spec.resolved.yaml", spec("0.1", 3));
    folder.write("r/b/metrics.jsonl", "");
    fs::create_directory_symlink("10", folder.file("r/a/latest"));
  }
  Finished run(const std::vector<std::string>& words, const Variables& environment = {}) const {
    std::vector<std::string> all = {"runs"};
    all.insert(all.end(), words.begin(), words.end());
    return dptrain(all, environment, folder.path());
  }
};

TEST_CASE("a run that diverged, one that failed and one that was killed are told apart") {
  const Folder folder;
  folder.write(
      "t.yaml",
      "data: {dataset: {random: {samples: 8, in_features: 2, out_features: 1}}, batch_size: 4}\n"
      "model: [{linear: 1}]\nloss: mse_loss\noptimizer: {sgd: 1e30}\nepochs: 9\n");
  const auto states = [&] { return dptrain({"runs", "--csv", "runs"}, {}, folder.path()).out; };
  const Finished run = dptrain({"t.yaml"}, {}, folder.path());
  REQUIRE_MESSAGE(run.code == 7, run.err);
  const std::string message = run.err.substr(run.err.find("the loss is "));
  CHECK(read_file(folder.file("runs/t/1/error.txt")) == "exit code 7\n" + message);
  CHECK(has(states(), ",diverged,\n"));
  folder.write("runs/t/1/error.txt", "exit code 4\na.png cannot be read\nwhile reading\n");
  CHECK(has(states(), ",failed,a.png cannot be read\n"));
  fs::remove(folder.file("runs/t/1/error.txt"));
  CHECK(has(states(), ",killed,\n"));
  // A run that begins again has not failed yet.
  folder.write("runs/t/1/error.txt", "exit code 7\n");
  const Finished again =
      dptrain({"t.yaml", "optimizer.lr=0.001", "epochs=1", "out=runs/t/1"}, {}, folder.path());
  REQUIRE_MESSAGE(again.code == 0, again.err);
  CHECK_FALSE(fs::exists(folder.file("runs/t/1/error.txt")));
}

TEST_CASE("runs prints a table of the keys that differ, the results and the states") {
  const Runs r;
  const FolderLock lock(r.folder.file("r/b"));
  const Finished text = r.run({"r"});
  CHECK_MESSAGE(text.code == 0, text.err);
  CHECK(text.err.empty());
  CHECK(
      text.out ==
      R"(run   epochs  optimizer.sgd.lr  epochs done    loss    best  test.loss    best  test.accuracy     best  seconds  samples/s  state
a/1        2               0.1            2  1.5000  1.2500     2.5000  2.2500        25.00 %  50.00 %     1.00        480  finished
a/2        2               0.2            1  1.0000  1.0000     2.0000  2.0000        75.00 %  75.00 %     0.50        480  stopped
a/10       2              0.05            1  3.0000  3.0000     4.0000  4.0000        12.50 %  12.50 %     0.50        480  killed
b          3               0.1            0       -       -          -       -              -        -        -          -  running
)");
  const Finished csv = r.run({"r", "--csv", "--sort=optimizer.sgd"});
  CHECK(csv.out ==
        "run,optimizer.sgd.lr,epochs,ranks,workers,hosts,epochs_done,loss,best.loss,test.loss,"
        "best.test.loss,test.accuracy,best.test.accuracy,validation.loss,best.validation.loss,"
        "validation.accuracy,best.validation.accuracy,seconds,samples_per_second,state,note\n"
        "a/10,0.05,2,,,,1,3,3,4,4,0.125,0.125,,,,,0.5,480,killed,\n"
        "a/1,0.1,2,,,,2,1.5,1.25,2.5,2.25,0.25,0.5,,,,,1,480,finished,\n"
        "b,0.1,3,,,,0,,,,,,,,,,,0,,running,\n"
        "a/2,0.2,2,,,,1,1,1,2,2,0.75,0.75,,,,,0.5,480,stopped,\n");
  const Finished json = r.run({"r/b", "r/a/1", "r/a", "--json"});
  CHECK(json.out.starts_with(
      R"({"runs": [{"run": "r/b", "spec": {"epochs": 3, "optimizer.sgd.lr": 0.1}, "ranks": null, )"
      R"("workers": null, "hosts": null, "epochs_done": 0, "loss": null, )"));
  CHECK(has(json.out, R"("state": "running", "note": ""},)"));
  CHECK(json.out.find("r/a/1\"") == json.out.rfind("r/a/1\""));  // given twice, listed once
}

TEST_CASE("runs and reports show ranks, workers and hosts in which runs differ") {
  const Folder folder;
  for (const int ranks : {1, 3}) {
    const std::string run = fmt::format("runs/s/{}/", ranks);
    folder.write(run + "spec.resolved.yaml", spec("0.1", 1));
    folder.write(run + "metrics.jsonl", epoch(1, 1, 0.5));
    folder.write(run + "env.json",
                 fmt::format(R"({{"ranks": {0}, "workers": {0}, "hosts": 1}})", ranks));
  }
  const auto out = [&](std::vector<std::string> words) {
    const Finished f = dptrain(words, {}, folder.path());
    CHECK_MESSAGE(f.code == 0, f.err);
    return f.out;
  };
  for (const char* directory : {"runs/s", "s"}) {  // a name stands for its directory in runs/
    const std::string text = out({"runs", directory});
    CHECK(text.starts_with("run  ranks  workers  epochs done "));
    CHECK(has(text, "\n3        3        3 "));
  }
  CHECK(out({"runs", "s", "--csv"}).starts_with("run,ranks,workers,hosts,epochs_done,"));
  CHECK(has(out({"runs", "s", "--json"}), R"("ranks": 3, "workers": 3, "hosts": 1, )"));
  CHECK(out({"report", "runs/s/1", "runs/s/3"}).starts_with("run       ranks  workers  "));
  const std::string page = read_file(folder.file("report.html"));
  CHECK(has(page, ">ranks</th>"));
  CHECK(!has(page, ">hosts</th>"));
}

TEST_CASE("runs knows one setting in all its forms") {
  const Folder folder;
  const auto write = [&](const std::string& run, const std::string& optimizer,
                         const std::string& more) {
    folder.write("r/" + run + "/spec.resolved.yaml", "optimizer: " + optimizer + "\n" + more);
    folder.write("r/" + run + "/metrics.jsonl", epoch(1, 1, 0.5));
  };
  const auto columns = [&] {
    const Finished f = dptrain({"runs", "r", "--csv"}, {}, folder.path());
    CHECK_MESSAGE(f.code == 0, f.err);
    return f.out.substr(0, f.out.find(",ranks"));
  };
  write("1", "{adam: 0.01}",
        "reproducible: 8\nmodel: [{linear: 3}]\ndata: {transforms: to_tensor}\n");
  write("2", "{adam: {lr: 0.01}}",
        "reproducible: {shards: 8}\nmodel: [{linear: {out_features: 3}}]\n"
        "data: {transforms: [to_tensor]}\n");
  CHECK(columns() == "run");
  write("3", "adam", "reproducible: 8\nmodel: [{linear: 4}]\ndata: {transforms: to_tensor}\n");
  CHECK(columns() == "run,model[0].linear.out_features,optimizer.adam.lr");
  write("4", "{sgd: 0.5}",
        "reproducible: 8\nmodel: [{linear: 3}]\ndata: {transforms: to_tensor}\n");
  CHECK(columns() ==
        "run,model[0].linear.out_features,optimizer,optimizer.adam.lr,"
        "optimizer.sgd.lr");
}

TEST_CASE("runs sorts by the word that its table shows, the best accuracy first") {
  const Runs r;
  const auto order = [&](const std::string& word) {
    const Finished f = r.run({"r", "--csv", "--sort=" + word});
    CHECK_MESSAGE(f.code == 0, f.err);
    std::string out;
    for (size_t at = f.out.find('\n'); at + 1 < f.out.size(); at = f.out.find('\n', at + 1))
      out += f.out.substr(at + 1, f.out.find(',', at) - at - 1) + " ";
    return out;
  };
  for (const char* run : {"r/a/1", "r/a/2", "r/a/10", "r/b"}) {
    const std::string file = std::string(run) + "/spec.resolved.yaml";
    r.folder.write(file, read_file(r.folder.file(file)) + "loss: mse_loss\n");
  }
  CHECK(order("loss") == "a/2 a/1 a/10 b ");
  CHECK(order("last_loss") == "a/2 a/1 a/10 b ");
  CHECK(order("accuracy") == "a/2 a/1 a/10 b ");
  CHECK(order("best_accuracy") == "a/2 a/1 a/10 b ");
  CHECK(order("best.test.accuracy") == "a/2 a/1 a/10 b ");
  CHECK(order("test.loss") == "a/2 a/1 a/10 b ");
  CHECK(order("test loss") == "a/2 a/1 a/10 b ");
  CHECK(order("optimizer.sgd") == order("optimizer.sgd.lr"));
  r.folder.write("r/b/spec.resolved.yaml", spec("0.1", 3) + "loss: l1_loss\n");
  CHECK(r.run({"r", "--csv"}).out.starts_with("run,epochs,spec.loss,optimizer.sgd.lr,ranks,"));
}

TEST_CASE("runs lists directories that are broken, with the reason") {
  const Folder folder;
  const auto run = [&](const std::vector<std::string>& words) {
    std::vector<std::string> all = {"runs"};
    all.insert(all.end(), words.begin(), words.end());
    return dptrain(all, {}, folder.path());
  };
  folder.write("r/1/spec.resolved.yaml", spec("0.1", 1));
  folder.write("r/2/metrics.jsonl", epoch(1, 1, 0.5));
  folder.write("r/3/spec.resolved.yaml", "a: [1\n");
  folder.write("r/3/metrics.jsonl", "oops\n\n\xff" + std::string(200000, 'x') + "\n" +
                                        epoch(1, 1, 0.5) + R"({"epoch": 1e300, "loss": null})" +
                                        "\n");
  folder.write("r/4/metrics.jsonl/file", "");
  const Finished f = run({"r", "--csv"});
  CHECK_MESSAGE(f.code == 0, f.err);
  CHECK(has(f.out, "\n1,,,,0,,,,,,,,,,,0,,killed,there is no metrics.jsonl\n"));
  CHECK(
      has(f.out, "\n2,,,,1,1,1,2,2,0.5,0.5,,,,,0.5,480,unknown,there is no spec.resolved.yaml\n"));
  CHECK_MESSAGE(has(f.out, "\n3,,,,1,1,1,2,2,0.5,0.5,,,,,0.5,480,unknown,"), f.out);
  CHECK(has(f.out, "spec.resolved.yaml:"));
  CHECK(has(f.out, "metrics.jsonl: 2 lines are not a record, first at line 1"));
  CHECK(has(f.out, "metrics.jsonl is not a regular file"));

  const auto refused = [&](const std::vector<std::string>& words, const std::string& message) {
    const Finished bad = run(words);
    CHECK(bad.out.empty());
    CHECK_MESSAGE(has(bad.err, message), bad.err);
    return bad.code;
  };
  folder.write("empty/file", "");
  CHECK(refused({}, "runs is not a directory") == 4);
  CHECK(refused({"empty"}, "empty holds no run: ") == 4);
  CHECK(refused({"r", "--sort=data.batchsize"}, "'data.batchsize' is neither a key") == 2);
  CHECK(refused({"r", "--svg=a.svg"}, "--svg FILE and --x KEY must be given together") == 2);
  CHECK(refused({"r", "--csv", "--json"}, "excludes") == 2);
}

TEST_CASE("runs fits its table to the terminal") {
  const Runs r;
  for (const int width : {40, 80, 100}) {
    const Finished f = r.run({"r"}, {{"COLUMNS", std::to_string(width)}});
    CHECK_MESSAGE(has(f.out, "not shown, see --csv: "), f.out);
    size_t longest = 0;
    const std::string table = f.out.substr(0, f.out.find("not shown"));
    for (size_t begin = 0; begin < table.size();) {
      const size_t end = table.find('\n', begin);
      longest = std::max(longest, end - begin);
      begin = end + 1;
    }
    CHECK(longest <= static_cast<size_t>(width));
    for (const char* kept : {"run ", " epochs ", " loss", " state"}) CHECK(has(table, kept));
    CHECK(has(table, "optimizer.sgd.lr") == (width >= 80));
    CHECK(has(table, "samples/s") == (width >= 80));
  }
}

TEST_CASE("runs draws loss, accuracy and speed by a key") {
  const Runs r;
  const Finished f = r.run({"r", "--svg=p.svg", "--x=optimizer.sgd"});
  CHECK_MESSAGE(f.code == 0, f.err);
  const std::string svg = read_file(r.folder.file("p.svg"));
  const auto count = [&](const std::string& part) {
    int n = 0;
    for (size_t at = svg.find(part); at != svg.npos; at = svg.find(part, at + 1)) ++n;
    return n;
  };
  CHECK(count("<polyline") == 4);    // two losses, accuracy, speed
  CHECK(count("<circle") == 4 * 3);  // b has no epoch
  for (const char* label : {">0.05<", ">0.1<", ">0.2<"}) CHECK(count(label) == 3);
  CHECK(svg.ends_with("</svg>\n"));
}

TEST_CASE("runs draws powers on a logarithmic axis, and other values one after another") {
  const auto places = [](const std::vector<std::string>& values) {
    const Folder folder;
    for (const std::string& value : values) {
      folder.write("r/" + value + "/spec.resolved.yaml", "data: {batch_size: " + value + "}\n");
      folder.write("r/" + value + "/metrics.jsonl", epoch(1, 1, 0.5));
    }
    const Finished f =
        dptrain({"runs", "r", "--svg=p.svg", "--x=data.batch_size"}, {}, folder.path());
    CHECK_MESSAGE(f.code == 0, f.err);
    const std::string svg = read_file(folder.file("p.svg"));
    const size_t line = svg.find("points=\"") + 8;
    std::vector<double> out;
    std::istringstream points(svg.substr(line, svg.find('"', line) - line));
    for (std::string point; points >> point;) out.push_back(std::stod(point));
    return out;
  };
  for (const std::vector<std::string>& powers :
       std::vector<std::vector<std::string>>{{"32", "64", "512"}, {"0.001", "0.01", "10"}}) {
    const std::vector<double> x = places(powers);
    REQUIRE(x.size() == 3);
    CHECK(x[2] - x[1] == doctest::Approx(3 * (x[1] - x[0])).epsilon(0.01));
  }
  const std::vector<double> others = places({"32", "48", "512"});
  REQUIRE(others.size() == 3);
  CHECK(others[2] - others[1] == doctest::Approx(others[1] - others[0]).epsilon(0.01));
}

}  // namespace
}  // namespace dpt
