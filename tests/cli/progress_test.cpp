// What the program shows of a run: on terminals, in logs and in metrics.jsonl.
#include <csignal>
#include <cstdlib>
#include <regex>
#include <sstream>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include "base/terminal.h"
#include "cli/process.h"
#include "sanitizers.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

// Most of the time goes to evaluations.
const std::string kSpec = R"(
data:
  dataset: {synthetic_images: {samples: 400, test_samples: 20000, shape: [1, 28, 28]}}
  transforms: [to_tensor]
  batch_size: 10
model: [flatten, {linear: 300}, relu, {linear: 10}]
loss: cross_entropy
optimizer: {sgd: 0.01}
epochs: 10000000
evaluate: {batch_size: 10}
save: false
)";

const std::string kQuick = R"(
name: quick
data: {dataset: {random: {samples: 40, in_features: 3, out_features: 2}}, batch_size: 10}
model: [{linear: 2}]
loss: mse_loss
optimizer: {sgd: 0.01}
epochs: 2
save: false
)";

pid_t start_on(const Terminal& terminal, const std::vector<std::string>& arguments) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::setsid();
  ::ioctl(terminal.descriptor(), TIOCSCTTY, 0);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    ::dup2(terminal.descriptor(), fd);
  ::setenv("TERM", "xterm", 1);
  std::vector<std::string> words = {program()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

bool any_has(const std::vector<std::string>& lines, const std::string& part) {
  for (const std::string& line : lines)
    if (has(line, part)) return true;
  return false;
}

TEST_CASE("on terminals of 40, 80 and 200 columns no status line is wider, and all phases show") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  for (const size_t columns : {size_t{40}, size_t{80}, size_t{200}}) {
    if (kSanitized && columns != 200) continue;
    CAPTURE(columns);
    const Terminal terminal(static_cast<int>(columns));
    if (!terminal.there()) {
      MESSAGE("skipped: there are no pseudo-terminals here");
      return;
    }
    // The run's end is counted in steps, within an epoch.
    const pid_t run = start_on(
        terminal, {folder.file("t.yaml"), "cores=1", "steps=999999", "out=" + folder.file("run")});
    CHECK(becomes_true(120, [&] {
      const auto frames = status_lines(terminal.text());
      // The first frames have neither rate nor time left.
      return (columns == 40 || any_has(frames, "ETA ")) &&
             (columns < 200 || any_has(frames, "lr 0.01")) && any_has(frames, "/999999") &&
             any_has(frames, "evaluating ") && has(terminal.text(), "Epoch [1/25000], Loss: ");
    }));
    ::kill(run, SIGTERM);
    int status = 0;
    CHECK(::waitpid(run, &status, 0) == run);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 143);
    CHECK(becomes_true(10, [&] { return has(terminal.text(), "model.safetensors"); }));
    const std::string text = terminal.text();
    const std::vector<std::string> frames = status_lines(text);
    for (const std::string& frame : frames) CHECK_MESSAGE(frame.size() < columns, frame);
    CHECK(any_has(frames, "ETA ") == (columns > 40));
    CHECK(any_has(frames, "[") == (columns > 40));
    CHECK(any_has(frames, "lr 0.01") == (columns == 200));
    CHECK_MESSAGE(
        std::regex_match(frames.back(),
                         std::regex("epoch [0-9]+/25000  .*(step [0-9]+/999999|evaluating "
                                    "[0-9]+/2000).*")),
        frames.back());
    // The result, then how long it took.
    CHECK_MESSAGE(
        std::regex_search(lasting_text(text),
                          std::regex("\nEpoch \\[1/25000\\], Loss: [^\n]*(\n  | )\\([0-9.]+ "
                                     "s, [0-9,.]+ samples/s, evaluation [0-9.]+ s, lr 0.01\\)\n")),
        lasting_text(text));
  }
}

TEST_CASE("a log has the run's head, and lines of epochs and steps in their order") {
  const Folder folder;
  folder.write("t.yaml", kQuick);
  const std::string command = fmt::format(
      "cd {} && unset SLURM_JOB_ID && PBS_JOBID=42.here {} t.yaml cores=1 log.every=3 > log 2>&1",
      folder.path(), program());
  REQUIRE(std::system(command.c_str()) == 0);
  std::string log = read_file(folder.file("log"));
  const std::string number = "[0-9.,e-]+";
  const auto step = [&](int epoch, int at) {
    return fmt::format("epoch {}/2, step {}/4: loss {}, lr 0.01\n", epoch, at, number);
  };
  const auto epoch = [&](int at) {
    return fmt::format("Epoch \\[{0}/2\\], Loss: {1} \\({1} s, {1} samples/s, lr 0.01\\)\n", at,
                       number);
  };
  const std::regex all(
      "dptrain [0-9.]+ \\(.*\\) on [^ ]+, job 42.here \\(PBS_JOBID\\), run [a-f][0-9a-f]{7}\n"
      "run directory: runs/quick/1\n"
      "(other runs of dptrain use .*\n)?"  // on a busy machine
      "(data|model|batch): .*\n(data|model|batch): .*\n(data|model|batch): .*\n" +
      step(1, 3) + epoch(1) + step(2, 2) + epoch(2) + "Training on CPU 0 finished.\n" +
      "weights: .*\nreport: .*\n");
  CHECK_MESSAGE(std::regex_match(log, all), log);
}

TEST_CASE("results on standard output are the tutorials' lines alone") {
  const Folder folder;
  folder.write("t.yaml", kQuick);
  const Finished run =
      dptrain({folder.file("t.yaml"), "cores=1", "log.every=1"}, {}, folder.path());
  CHECK(run.code == 0);
  CHECK_MESSAGE(
      std::regex_match(run.out, std::regex("Epoch \\[1/2\\], Loss: [0-9.]+\nEpoch \\[2/2\\], Loss: "
                                           "[0-9.]+\nTraining on CPU 0 finished.\n")),
      run.out);
  for (const std::string at : {"1", "2"})
    CHECK_MESSAGE(std::regex_search(run.err, std::regex("\nepoch " + at + "/2: [0-9.,e-]+ s, ")),
                  run.err);
}

TEST_CASE("--quiet leaves results, warnings and errors") {
  const Folder folder;
  folder.write("t.yaml", kQuick);
  // Where other runs on this machine, which may take all cores, are not seen.
  const std::vector<std::pair<std::string, std::string>> alone{{"XDG_RUNTIME_DIR", folder.path()}};
  const Finished run =
      dptrain({"t.yaml", "cores=1", "log.every=1", "--quiet"}, alone, folder.path());
  CHECK(run.code == 0);
  CHECK(run.out.starts_with("Epoch [1/2], Loss: "));
  CHECK_MESSAGE(run.err.empty(), run.err);
  const Finished number =
      dptrain({"t.yaml", "cores=1", "--quiet", "--print", "epochs"}, alone, folder.path());
  CHECK(number.out == "2\n");
  CHECK_MESSAGE(number.err.empty(), number.err);
  const Finished warned =
      dptrain({"t.yaml", "cores=1", "optimizer.lr=0", "--quiet"}, alone, folder.path());
  CHECK(warned.err.starts_with("optimizer.lr=0:1:14: warning: "));
}

TEST_CASE("records have a time and the run's id, a new one where it is resumed") {
  const Folder folder;
  folder.write("t.yaml", kQuick);
  const std::vector<std::string> words = {folder.file("t.yaml"), "cores=1", "log.every=1",
                                          "save=true", "out=" + folder.file("run")};
  const auto metrics = [&] { return read_file(folder.file("run/metrics.jsonl")); };
  const Finished first = dptrain(words, {}, folder.path());
  const std::string before = metrics();
  std::vector<std::string> longer = words;
  longer.insert(longer.end(), {"--resume", "auto", "epochs=4"});
  const Finished both = dptrain(longer, {}, folder.path());
  REQUIRE_MESSAGE(both.code == 0, both.err);
  REQUIRE(metrics().starts_with(before));
  const std::regex tail(
      ", \"time\": (1|2)[0-9]{9}\\.[0-9]{3}, \"run\": \"([a-f][0-9a-f]{7})\"\\}$");
  std::vector<std::string> ids;
  std::istringstream lines(metrics());
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    REQUIRE_MESSAGE(std::regex_search(line, found, tail), line);
    if (ids.empty() || ids.back() != found[2]) ids.push_back(found[2]);
    // The head of the run has the same id.
    CHECK(has(ids.size() == 1 ? first.err : both.err, ", run " + ids.back() + "\n"));
  }
  CHECK(ids.size() == 2);
}

TEST_CASE("compare finds no difference in times and ids of runs") {
  const Folder folder;
  folder.write("t.yaml", kQuick);
  for (const char* out : {"out=a", "out=b"})
    CHECK(dptrain({"t.yaml", "cores=1", "log.every=1", out}, {}, folder.path()).code == 0);
  CHECK(read_file(folder.file("a/metrics.jsonl")) != read_file(folder.file("b/metrics.jsonl")));
  const Finished same = dptrain({"compare", "a", "b", "--rtol=0", "--atol=0"}, {}, folder.path());
  CHECK_MESSAGE(same.code == 0, same.out << same.err);
}

}  // namespace
}  // namespace dpt
