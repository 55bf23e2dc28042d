// How runs end that do not end well: no process is left over, and one message says what happened.
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/machine.h"
#include "checkpoint/store.h"
#include "cli/process.h"
#include "comm/core_lease.h"
#include "formats/safetensors.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

// A second is what is promised; the other one is for a machine that is busy with other tests.
constexpr double kSoon = 2;

// 25 steps an epoch; more epochs than anybody waits for, unless told otherwise.
const std::string kSpec = R"(
data:
  dataset: {synthetic_images: {samples: 800, shape: [1, 6, 6]}}
  transforms: [to_tensor]
  batch_size: 32
model:
  - flatten
  - linear: 24
    name: first
  - relu
  - linear: 10
    name: last
loss: cross_entropy
optimizer: {sgd: 0.1}
epochs: 10000000
)";

// A run of kSpec that has come as far as its second epoch.
struct Running {
  Folder folder;
  Process run;

  explicit Running(const std::vector<std::string>& more)
      : run((folder.write("t.yaml", kSpec), words(folder, more))) {
    REQUIRE_MESSAGE(
        becomes_true(60, [&] { return run.out().find("Epoch [1/") != std::string::npos; }),
        run.err());
  }
  static std::vector<std::string> words(const Folder& folder,
                                        const std::vector<std::string>& more) {
    std::vector<std::string> out = {folder.file("t.yaml"), "cores=1", "out=" + folder.file("run")};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
};

double seconds_of(const std::chrono::steady_clock::time_point& begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t i = text.find(what); i != text.npos; i = text.find(what, i + 1)) ++n;
  return n;
}

// Inodes of the TCP sockets of this network namespace, from a table of /proc/net.
std::set<std::string> tcp_inodes() {
  std::set<std::string> out;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream in(table);
    std::string line, word;
    std::getline(in, line);
    while (std::getline(in, line)) {
      std::istringstream words(line);
      for (int i = 0; i < 10; ++i) words >> word;
      out.insert("socket:[" + word + "]");
    }
  }
  return out;
}

// The sockets that a process holds, as "socket:[INODE]".
std::vector<std::string> sockets_of(pid_t pid) {
  std::vector<std::string> out;
  for (const auto& fd : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
    std::error_code closed;
    const std::string target = fs::read_symlink(fd.path(), closed).string();
    if (target.starts_with("socket:")) out.push_back(target);
  }
  return out;
}

// dptrain trains t.yaml of the folder by a shell: `before` and `after` stand around the command.
Finished in_shell(const std::string& before, const Folder& folder, const std::string& words,
                  const std::string& after) {
  const std::string out = folder.file("shell.out"), err = folder.file("shell.err");
  folder.write("shell", "( " + before + program() + " " + folder.file("t.yaml") +
                            " out=" + folder.file("run") + " " + words + " " + after + " ) >" +
                            out + " 2>" + err);
  const int status = std::system(  // NOLINT(concurrency-mt-unsafe)
      ("bash " + folder.file("shell")).c_str());
  return {WEXITSTATUS(status), read_file(out), read_file(err)};
}

Variables rank_of_two(int rank) {
  return {
      {"RANK", std::to_string(rank)}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", std::to_string(rank)}};
}

}  // namespace

// Standard error without the lines about cores that other tests' runs use at the same time.
std::string without_core_notes(const std::string& text) {
  return std::regex_replace(text, std::regex("other runs of dptrain use [^\\n]*\\n"), "");
}

TEST_CASE("weights of an earlier run are not taken for those of one that failed") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const auto run = [&](const std::string& lr) {
    return dptrain({folder.file("t.yaml"), "cores=1", "epochs=1", "out=" + folder.file("run"),
                    "optimizer.lr=" + lr})
        .code;
  };
  const std::string model = folder.file("run/model.safetensors");
  const std::string previous = folder.file("run/model.previous.safetensors");
  REQUIRE(run("0.1") == 0);
  const std::string first = read_file(model);
  REQUIRE_FALSE(first.empty());
  CHECK(run("1e30") == 7);
  CHECK_FALSE(fs::exists(model));
  CHECK(read_file(previous) == first);
  CHECK(run("1e30") == 7);  // a second failure destroys nothing either
  CHECK(read_file(previous) == first);
  CHECK(run("0.2") == 0);
  CHECK(read_file(model) != first);
  CHECK_FALSE(fs::exists(previous));
}

TEST_CASE("bce_loss of outputs that are no probabilities says what is to be done") {
  const Ran ran = run_spec(
      "data:\n  dataset: {synthetic_images: {samples: 64, shape: [1, 2, 2]}}\n"
      "  target_transforms: [one_hot]\n  batch_size: 64\n"
      "model: [flatten, {linear: 10}]\nloss: bce_loss\noptimizer: sgd\ncores: 1\n");
  CHECK(ran.code == 7);
  CHECK_MESSAGE(count(ran.err, "outside the range that bce_loss accepts") == 1, ran.err);
  CHECK(count(ran.err, "must be between 0 and 1; end it with a sigmoid") == 1);
}

TEST_CASE("metrics that can't be written are told once, and the run goes on") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  // The limit also counts for standard error, a file here, which gets a line for each record.
  const Finished run =
      in_shell("ulimit -f 20; ", folder, "cores=1 epochs=20 log.every=2 save.every_epochs=10", "");
  CHECK(run.code == 0);
  CHECK_MESSAGE(
      count(run.err, "metrics.jsonl cannot be written: File too large; the run continues") == 1,
      run.err);
  CHECK_MESSAGE(
      std::regex_search(run.err, std::regex("metrics.jsonl cannot be written: File too "
                                            "large; [0-9]+ records are missing from it\n")),
      run.err);
  const std::string metrics = read_file(folder.file("run/metrics.jsonl"));
  CHECK(metrics.size() > 20 * 1024 - 300);
  CHECK(metrics.size() <= 20 * 1024);
  CHECK(metrics.ends_with("}\n"));
  CHECK(fs::exists(folder.file("run/model.safetensors")));
  CHECK(fs::exists(folder.file("run/checkpoints/step-000500/manifest.txt")));
}

// The limit on files stands for a disk that is full for a moment. Standard output and error are
// shorter files, and reach it later.
TEST_CASE("metrics that can't be written for a moment are written later, none is missing") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const std::string samples = kSanitized ? "1000" : "20000";
  Process run({folder.file("t.yaml"), "cores=1", "data.dataset.synthetic_images.samples=" + samples,
               "save=false", "out=" + folder.file("run")});
  const std::string path = folder.file("run/metrics.jsonl");
  std::error_code error;
  REQUIRE(becomes_true(
      60, [&] { return fs::exists(path, error) && fs::file_size(path, error) > 20000; }));
  rlimit before{};
  REQUIRE(::prlimit(run.pid(), RLIMIT_FSIZE, nullptr, &before) == 0);
  const rlimit full{fs::file_size(path), before.rlim_max};
  REQUIRE(::prlimit(run.pid(), RLIMIT_FSIZE, &full, nullptr) == 0);
  const std::string problem = path + " cannot be written: File too large; the run continues";
  CHECK(becomes_true(60, [&] { return has(run.err(), problem); }));
  REQUIRE(::prlimit(run.pid(), RLIMIT_FSIZE, &before, nullptr) == 0);
  const std::string solved = path + " can be written again; no record is missing from it\n";
  CHECK(becomes_true(60, [&] { return has(run.err(), solved); }));
  run.send(SIGTERM);
  CHECK(run.wait() == 143);
  CHECK_MESSAGE(count(run.err(), "cannot be written") == 1, run.err());
  std::istringstream lines(read_file(path));
  int epoch = 0;
  for (std::string line; std::getline(lines, line);)
    CHECK(line.starts_with(fmt::format("{{\"epoch\": {},", ++epoch)));
  CHECK(epoch > 5);
}

TEST_CASE("a limit on files that is too small for the weights is told before the first step") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const Finished run = in_shell("ulimit -f 2; ", folder, "cores=1 epochs=1", "");
  CHECK(run.code == 1);
  CHECK_MESSAGE(has(run.err,
                    "model.safetensors cannot be written: File too large; raise the limit "
                    "on the size of files (ulimit -f)"),
                run.err);
  CHECK(run.out.empty());
  // Checkpoints hold the optimizer's states, too, and they alone do not fit.
  const Finished states = in_shell("ulimit -f 6; ", folder, "cores=1 epochs=1 optimizer=adam", "");
  CHECK(states.code == 0);
  CHECK_MESSAGE(count(states.err, "the checkpoint of step 25 could not be written: ") == 1,
                states.err);
  CHECK_MESSAGE(has(states.err, "optimizer.safetensors cannot be written: File too large"),
                states.err);
  CHECK(fs::exists(folder.file("run/model.safetensors")));
}

TEST_CASE("a limit on files that is too small for what ranks share is named" *
          doctest::skip(!kCanFork)) {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const Finished run = in_shell("ulimit -f 6; ", folder, "cores=1 parallel=ddp devices=2", "");
  CHECK(run.code == 5);
  CHECK_MESSAGE(has(run.err, "raise the limit (ulimit -f)\n"), run.err);
  CHECK_FALSE(has(run.err, "smaller model"));
}

TEST_CASE("a standard error that takes nothing does not keep a run from training") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  // Checkpoints cannot be written either, which is a warning.
  const Finished run =
      in_shell("ulimit -f 6; ", folder, "cores=1 epochs=20 save.every_epochs=5 optimizer=adam",
               "2>/dev/full");
  CHECK(run.code == 0);
  CHECK(has(run.out, "Epoch [20/20]"));
  CHECK(fs::exists(folder.file("run/model.safetensors")));
}

// Sanitizers start with more than these stacks have.
TEST_CASE("a small stack is raised where that is allowed, and refused where it is not" *
          doctest::skip(kSanitized || !kCanFork)) {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  CHECK(in_shell("ulimit -Ss 64; ", folder, "cores=2 epochs=1", "").code == 0);
  const Finished run = in_shell("ulimit -s 64; ", folder, "cores=2 epochs=1", "");
  CHECK(run.code == 5);
  CHECK(run.err ==
        "dptrain: the stack is limited to 64 KiB, and dptrain needs 1024 KiB; raise the limit with "
        "ulimit -s\n");
}

TEST_CASE("a reader that closes our output ends the run after a whole step, with its weights") {
  for (const char* mode : {"single", "ddp"}) {
    CAPTURE(mode);
    const Folder folder;
    folder.write("t.yaml", kSpec);
    const std::string words =
        std::string("cores=1 parallel=") + mode + " devices=" + (mode[0] == 'd' ? "2" : "1");
    // Both outputs of one pipe: the reader gets the first message and goes.
    const Finished both = in_shell("", folder, words, "2>&1 | head -1; exit ${PIPESTATUS[0]}");
    CHECK(both.code == 128 + SIGPIPE);
    CHECK_MESSAGE(count(both.out, "\n") == 1, both.out);
    CHECK_FALSE(checkpoints_in(folder.file("run/checkpoints")).empty());
    fs::remove(folder.file("run/model.safetensors"));
    const Finished run =
        in_shell("", folder, words, "2>" + folder.file("e") + " | head -1; exit ${PIPESTATUS[0]}");
    CHECK(run.code == 128 + SIGPIPE);
    const std::string err = read_file(folder.file("e"));
    CHECK_MESSAGE(
        has(err,
            "standard output was closed by its reader; training stopped after a complete step\n"),
        err);
    CHECK_FALSE(has(err, "killed"));
    CHECK(fs::exists(folder.file("run/model.safetensors")));
  }
}

TEST_CASE("SIGTERM ends a run in order whose output is a full pipe that nobody reads") {
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    CAPTURE(fd);
    const Folder folder;
    folder.write("t.yaml", kSpec);
    int pipe[2];
    REQUIRE(::pipe2(pipe, O_CLOEXEC) == 0);
    REQUIRE(::fcntl(pipe[1], F_SETFL, O_NONBLOCK) == 0);
    const std::string block(4096, 'x');
    while (::write(pipe[1], block.data(), block.size()) > 0) continue;
    // Room for the lines before the first step; those of the epochs fill it. A pipe counts as full
    // when it has no empty page, so each line, warnings included, may need a page of its own.
    constexpr size_t kPages = 8;
    std::string pages(kPages * block.size(), ' ');
    if (fd == STDERR_FILENO)
      REQUIRE(::read(pipe[0], pages.data(), pages.size()) == static_cast<ssize_t>(pages.size()));
    REQUIRE(::fcntl(pipe[1], F_SETFL, 0) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      const int null = ::open("/dev/null", O_WRONLY);
      ::dup2(null, STDOUT_FILENO + STDERR_FILENO - fd);
      ::dup2(pipe[1], fd);
      const std::string words[] = {program(), folder.file("t.yaml"), "cores=1",
                                   "out=" + folder.file("run")};
      ::execl(words[0].c_str(), words[0].c_str(), words[1].c_str(), words[2].c_str(),
              words[3].c_str(), nullptr);
      ::_exit(127);
    }
    // Its epochs are in the way of nothing: it waits for a reader in its first one, or before it.
    CHECK(becomes_true(60, [&] { return fs::exists(folder.file("run/metrics.jsonl")); }));
    sleep_ms(50);
    ::kill(child, SIGTERM);
    int status = 0;
    CHECK(becomes_true(60, [&] { return ::waitpid(child, &status, WNOHANG) == child; }));
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 128 + SIGTERM);
    CHECK(fs::exists(folder.file("run/model.safetensors")));
    CHECK_FALSE(checkpoints_in(folder.file("run/checkpoints")).empty());
    ::kill(child, SIGKILL);
    ::close(pipe[0]);
    ::close(pipe[1]);
  }
}

TEST_CASE("an output that takes nothing more is an error in every mode, and the weights are kept") {
  for (const char* mode : {"single", "dp", "ddp"}) {
    CAPTURE(mode);
    const Folder folder;
    folder.write("t.yaml", kSpec);
    const Finished run = in_shell("", folder,
                                  std::string("cores=1 epochs=20 parallel=") + mode +
                                      (mode == std::string("single") ? "" : " devices=2"),
                                  ">/dev/full");
    CHECK(run.code == 1);
    CHECK_MESSAGE(count(run.err, "standard output cannot be written: No space left") == 1, run.err);
    CHECK(fs::exists(folder.file("run/checkpoints/step-000500/manifest.txt")));
    CHECK(fs::exists(folder.file("run/model.safetensors")));
  }
}

TEST_CASE("more threads than cores under a launcher are warned of, once") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const int cores = static_cast<int>(usable_cores().size());
  const auto warned = [&](int threads) {
    const std::vector<std::string> words = {folder.file("t.yaml"), "parallel=ddp", "steps=2",
                                            fmt::format("cores={}", threads),
                                            "out=" + folder.file("run")};
    Process zero(words, rank_of_two(0)), one(words, rank_of_two(1));
    CHECK_MESSAGE(zero.wait() == 0, zero.err());
    CHECK_MESSAGE(one.wait() == 0, one.err());
    CHECK_FALSE(has(one.err(), "warning: "));
    return has(zero.err(), fmt::format("warning: 2 devices with {} threads each share ", threads));
  };
  CHECK(warned(cores + 1));
  if (cores >= 4) CHECK_FALSE(warned(2));
}

// Too few cores for each rank are too few for all.
TEST_CASE("ranks of one job say once that other runs use the cores") {
  const std::vector<int> all = allowed_cores();
  if (usable_cores().size() < 2) {
    MESSAGE("skipped: this machine has one core");
    return;
  }
  const Folder folder, locks;
  folder.write("t.yaml", kSpec);
  const Variables runtime = {{"XDG_RUNTIME_DIR", locks.path()}};
  const CoreLease other(all, all.size(), locks.path() + "/dptrain");
  REQUIRE(other.cores().size() == all.size());
  const std::vector<std::string> words = {folder.file("t.yaml"), "parallel=ddp", "steps=2",
                                          "cores=1", "out=" + folder.file("run")};
  const auto environment = [&](int rank) {
    Variables out = rank_of_two(rank);
    out.insert(out.end(), runtime.begin(), runtime.end());
    return out;
  };
  Process zero(words, environment(0)), one(words, environment(1));
  CHECK_MESSAGE(zero.wait() == 0, zero.err());
  CHECK_MESSAGE(one.wait() == 0, one.err());
  const std::string said = zero.err() + one.err();
  CHECK_MESSAGE(count(said, "other runs of dptrain use ") == 1, said);
  CHECK(has(said, "too few for the 2 workers of this run"));
}

TEST_CASE("a rank that is never started is waited for as long as the spec says") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const auto begin = std::chrono::steady_clock::now();
  const Finished alone = dptrain({folder.file("t.yaml"), "parallel=ddp", "parallel.timeout=0.3",
                                  "cores=1", "out=" + folder.file("run")},
                                 rank_of_two(0));
  CHECK(alone.code == 6);
  CHECK_MESSAGE(count(alone.err, "rank 1 of 2 did not connect within 0.3 s") == 1, alone.err);
  CHECK(seconds_of(begin) < 10);  // a busy machine's; 60 without the key
}

TEST_CASE("what rank 0 alone can't do, the other ranks learn at once") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const std::vector<std::string> words = {folder.file("t.yaml"), "parallel={ddp: {timeout: 20}}",
                                          "cores=1", "out=" + folder.file("t.yaml")};
  Process zero(words, rank_of_two(0)), one(words, rank_of_two(1));
  CHECK(zero.wait(15) == 1);
  CHECK(one.wait(15) == 6);
  CHECK_MESSAGE(count(zero.err(), "dptrain: rank 0: the run directory") == 1, zero.err());
  CHECK_MESSAGE(without_core_notes(one.err()).empty(), one.err());
}

TEST_CASE("a rank that fails before all have started tells the others why") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  for (const int bad : {0, 1}) {
    CAPTURE(bad);
    const auto words = [&](int rank) {
      std::vector<std::string> out = {folder.file("t.yaml"), "parallel={ddp: {timeout: 20}}",
                                      "cores=1", "out=" + folder.file("run")};
      if (rank == bad) out.emplace_back("data.dataset={csv: {path: /missing, inputs: [0]}}");
      return out;
    };
    Process zero(words(0), rank_of_two(0)), one(words(1), rank_of_two(1));
    Process &failed = bad == 0 ? zero : one, &other = bad == 0 ? one : zero;
    const int code = failed.wait(15);
    CHECK(other.wait(15) == 6);
    const std::string why = failed.err().substr(0, failed.err().find('\n'));
    CHECK_MESSAGE((code == 2 || code == 4), code);
    const std::string head = fmt::format(
        "dptrain: rank {} (pid {}) failed before all ranks had "
        "started: ",
        bad, failed.pid());
    // Rank 0's log has begun before.
    const size_t at = other.err().find(head);
    REQUIRE_MESSAGE(at != std::string::npos, other.err());
    CHECK_MESSAGE(why.find(other.err().substr(at + head.size(), 20)) != std::string::npos,
                  failed.err() << other.err());
  }
}

TEST_CASE("a signal before the first step ends the run with the code that it has later") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  for (const auto& [signal, code] : {std::pair{SIGUSR1, 75}, {SIGUSR2, 75}, {SIGTERM, 143}}) {
    // It waits for rank 0, which is never started.
    Process waiting({folder.file("t.yaml"), "parallel=ddp", "cores=1"}, rank_of_two(1));
    const std::string status = "/proc/" + std::to_string(waiting.pid()) + "/status";
    // SIGUSR2 is the last one that the program begins to handle, and no one that doctest does.
    const auto handles_signals = [&] {
      const std::string text = read_file(status);
      const size_t at = text.find("SigCgt:");
      return at != text.npos &&
             (std::strtoull(text.c_str() + at + 7, nullptr, 16) & (1ULL << (SIGUSR2 - 1))) != 0;
    };
    CHECK(becomes_true(10, handles_signals));
    waiting.send(signal);
    CHECK(waiting.wait(10) == code);
    CHECK_MESSAGE(without_core_notes(waiting.err()).empty(), waiting.err());
  }
}

TEST_CASE("a loss that is not finite ends every mode with epoch, step and layer") {
  for (const std::vector<std::string>& how :
       std::vector<std::vector<std::string>>{{"cores=1"},
                                             {"cores=2"},
                                             {"parallel=dp", "devices=2", "cores=1"},
                                             {"parallel=ddp", "devices=2", "cores=1"}}) {
    CAPTURE(how[0]);
    std::vector<std::string> words = how;
    words.insert(words.end(), {"optimizer.lr=1e30", "epochs=2"});
    const Ran ran = run_spec(kSpec, words);
    CHECK(ran.code == 7);
    // Step 1 makes weights near 1e29; their squares, in the second layer, are no float32.
    CHECK_MESSAGE(count(ran.err, "at epoch 1, step 2: the output of layer 'last' (linear)") == 1,
                  ran.err);
    CHECK(ran.out.find("finished") == std::string::npos);
    CHECK(ran.weights.empty());  // as the message says
  }
}

TEST_CASE("an update that makes weights infinite ends a run, though the loss was finite") {
  const Folder folder;
  folder.write("x.npy", npy("<f4", "(8, 3)", std::vector<float>(24, 1)));
  folder.write("y.npy", npy("<f4", "(8, 2)", std::vector<float>(16, 1e10F)));
  const std::string spec = R"(
data: {dataset: {npy: {inputs: IN, targets: OUT}}, batch_size: 8}
model: [{linear: 2, name: last}]
loss: mse_loss
optimizer: {sgd: 1.0e+30}
epochs: 1
)";
  std::string text = spec;
  text.replace(text.find("IN"), 2, folder.file("x.npy"));
  text.replace(text.find("OUT"), 3, folder.file("y.npy"));
  for (const std::vector<std::string>& how : std::vector<std::vector<std::string>>{
           {"cores=1"}, {"cores=1", "save=false"}, {"cores=1", "parallel=ddp", "devices=2"}}) {
    CAPTURE(how.size());
    const Ran ran = run_spec(text, how);
    CHECK(ran.code == 7);
    CHECK_MESSAGE(count(ran.err,
                        "6 of the 6 values of 'last.weight' are not finite after epoch 1, "
                        "step 1. These weights are not saved; ") == 1,
                  ran.err);
    CHECK(ran.out.find("finished") == std::string::npos);
    CHECK(ran.weights.empty());
  }
}

TEST_CASE("a sample that is not finite is named, not the first layer that it comes through") {
  const std::vector<float> inputs(24 * 3, 1), targets(24 * 2, 2);
  const auto with = [](std::vector<float> values, size_t at, float x) {
    values[at] = x;
    return values;
  };
  const Folder folder;
  folder.write("x.npy", npy("<f4", "(24, 3)", inputs));
  folder.write("y.npy", npy("<f4", "(24, 2)", targets));
  folder.write("nan.npy", npy("<f4", "(24, 3)", with(inputs, 3 * 17 + 2, NAN)));
  folder.write("inf.npy", npy("<f4", "(24, 2)", with(targets, 2 * 9, INFINITY)));
  const std::string spec = R"(
data: {dataset: {npy: {inputs: IN, targets: OUT}}, batch_size: 8, shuffle: false}
model: [{linear: 4}, relu, {linear: 2}]
loss: mse_loss
optimizer: {sgd: 0.01}
epochs: 2
)";
  for (const std::vector<std::string>& how :
       std::vector<std::vector<std::string>>{{"cores=1"},
                                             {"cores=2", "accumulate=2"},
                                             {"parallel=ddp", "devices=2", "cores=1"},
                                             {"parallel={pipeline: {stages: 2}}", "cores=1"}}) {
    CAPTURE(how[0]);
    const auto ends = [&](const std::string& in, const std::string& out) {
      std::string text = spec;
      text.replace(text.find("IN"), 2, folder.file(in));
      text.replace(text.find("OUT"), 3, folder.file(out));
      const Ran ran = run_spec(text, how);
      CHECK(ran.code == 7);
      return ran.err;
    };
    std::string err = ends("nan.npy", "y.npy");
    CHECK_MESSAGE(count(err,
                        "the loss is nan at epoch 1, step 3: sample 17 of the training set "
                        "(counted from 0) has an input that is not finite. No weights are "
                        "saved; fix or remove that sample") == 1,
                  err);
    err = ends("x.npy", "inf.npy");
    CHECK_MESSAGE(count(err,
                        "at epoch 1, step 2: sample 9 of the training set (counted from 0) has "
                        "a target that is not finite") == 1,
                  err);
  }
}

TEST_CASE("a rank that is killed ends the run within a second, with one message") {
  for (const auto& c : {std::pair{size_t{0}, "ddp"}, std::pair{size_t{1}, "ddp"},
                        std::pair{size_t{1}, "{local_sgd: 8}"}}) {
    const size_t victim = c.first;
    const std::string mode = c.second;
    CAPTURE(victim);
    CAPTURE(mode);
    Running r({fmt::format("parallel={}", mode), "devices=2"});
    const std::vector<pid_t> ranks = r.run.children();
    REQUIRE(ranks.size() == 2);
    const auto begin = std::chrono::steady_clock::now();
    kill(ranks[victim], SIGKILL);
    CHECK(r.run.wait(10) == 6);
    CHECK(seconds_of(begin) < kSoon);
    CHECK(r.run.group().empty());
    const std::string err = r.run.err();
    CAPTURE(err);
    CHECK(count(err, "SIGKILL") == 1);
    CHECK(count(err, "dptrain: ") == 1);
    const std::string error = read_file(r.folder.file("run/error.txt"));
    CHECK_MESSAGE(std::regex_search(error, std::regex("exit code 6\nrank [01] .* was killed by "
                                                      "signal 9 \\(SIGKILL\\)")),
                  error);
    const std::string pid = std::to_string(ranks[victim]);
    CHECK(std::regex_search(
        err, std::regex("dptrain: rank [01] \\(.*" + pid +
                        ".*\\) was killed by signal 9 \\(SIGKILL\\) .*step [0-9]+")));
  }
}

TEST_CASE("the error of a lost rank ends with the way to resume, where there is a checkpoint") {
  Running r({"parallel=ddp", "devices=2", "save.every_epochs=1"});
  const std::string checkpoints = r.folder.file("run/checkpoints");
  REQUIRE(becomes_true(
      60, [&] { return fs::exists(checkpoints) && !checkpoints_in(checkpoints).empty(); }));
  const std::vector<pid_t> ranks = r.run.children();
  REQUIRE(ranks.size() == 2);
  kill(ranks[1], SIGKILL);
  CHECK(r.run.wait(10) == 6);
  CHECK_MESSAGE(r.run.err().ends_with("to resume, run the same command with --resume " +
                                      checkpoints_in(checkpoints)[0].path + "\n"),
                r.run.err());
}

TEST_CASE("Ctrl-C ends a run after a whole step, with its weights") {
  for (const std::vector<std::string>& how :
       std::vector<std::vector<std::string>>{{"parallel=single"},
                                             {"parallel=ddp", "devices=2"},
                                             {"parallel={local_sgd: 8}", "devices=2"}}) {
    CAPTURE(how[0]);
    Running r(how);
    r.run.send_group(SIGINT);
    CHECK(r.run.wait(10) == 130);
    CHECK(becomes_true(kSoon, [&] { return r.run.group().empty(); }));
    CHECK(count(r.run.err(), "Interrupted (Ctrl-C); checkpoint saved\n") == 1);
    const SafeTensors model = SafeTensors::read(r.folder.file("run/model.safetensors"));
    CHECK(model.entries().size() == 4);
    CHECK(model.find("first.weight") != nullptr);
    const Finished eval = dptrain({"eval", r.folder.file("t.yaml"), "--weights",
                                   r.folder.file("run/model.safetensors"), "cores=1"});
    CHECK_MESSAGE(eval.code == 0, eval.err);
  }
}

TEST_CASE("SIGTERM to the launcher alone stops all ranks") {
  Running r({"parallel=ddp", "devices=2"});
  r.run.send(SIGTERM);
  CHECK(r.run.wait(10) == 143);
  CHECK(becomes_true(kSoon, [&] { return r.run.group().empty(); }));
  CHECK(!read_file(r.folder.file("run/model.safetensors")).empty());
}

TEST_CASE("a closed terminal and the limit on CPU time stop a run in order, unless ignored") {
  for (const int signal : {SIGHUP, SIGXCPU}) {
    const std::string name = signal == SIGHUP ? "SIGHUP" : "SIGXCPU";
    CAPTURE(name);
    for (const std::vector<std::string>& how : std::vector<std::vector<std::string>>{
             {"parallel=single"}, {"parallel=ddp", "devices=2"}}) {
      const auto before = std::signal(signal, SIG_DFL);  // these tests may run under nohup
      Running r(how);
      std::signal(signal, before);
      r.run.send_group(signal);
      CHECK(r.run.wait(10) == 128 + signal);
      CHECK_MESSAGE(count(r.run.err(), "Stopped (" + name) == 1, r.run.err());
      CHECK_FALSE(checkpoints_in(r.folder.file("run/checkpoints")).empty());
    }
    const auto before = std::signal(signal, SIG_IGN);
    Running ignoring(std::vector<std::string>{});
    std::signal(signal, before);
    ignoring.run.send(signal);
    ignoring.run.send(SIGTERM);
    CHECK(ignoring.run.wait(10) == 143);
  }
}

TEST_CASE("no rank outlives its launcher") {
  Running r({"parallel=ddp", "devices=2"});
  CHECK(r.run.children().size() == 2);
  r.run.send(SIGKILL);
  CHECK(r.run.wait(10) == 137);
  CHECK(becomes_true(kSoon, [&] { return r.run.group().empty(); }));
}

TEST_CASE("ranks started by somebody else train what dptrain's own ranks do") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const auto words = [&](const std::string& run) {
    return std::vector<std::string>{
        folder.file("t.yaml"), "parallel=ddp",           "devices=2", "cores=1", "epochs=3",
        "log.every=1",         "out=" + folder.file(run)};
  };
  const Finished own = dptrain(words("own"));
  CHECK_MESSAGE(own.code == 0, own.err);
  // The same arguments for both: ranks compare their specs, of which `out` is a part.
  Process zero(words("given"), rank_of_two(0)), one(words("given"), rank_of_two(1));
  CHECK_MESSAGE(zero.wait() == 0, zero.err());
  CHECK_MESSAGE(one.wait() == 0, one.err());
  const std::string weights = read_file(folder.file("own/model.safetensors"));
  CHECK(!weights.empty());
  CHECK(weights == read_file(folder.file("given/model.safetensors")));
  CHECK(zero.out().find("Training on CPU 0 finished.") != std::string::npos);
  CHECK(one.out() == "Training on CPU 1 finished.\n");
}

TEST_CASE("ranks started by somebody else open no TCP socket, and end when one is killed") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const std::vector<std::string> words = {
      folder.file("t.yaml"),       "parallel=ddp",         "devices=2", "cores=1",
      "out=" + folder.file("run"), "save.every_epochs=100"};
  Process zero(words, rank_of_two(0)), one(words, rank_of_two(1));
  REQUIRE_MESSAGE(
      becomes_true(60, [&] { return zero.out().find("Epoch [101/") != std::string::npos; }),
      zero.err() << one.err());
  const std::set<std::string> tcp = tcp_inodes();
  size_t sockets = 0;
  for (const Process* p : {&zero, &one})
    for (const std::string& s : sockets_of(p->pid())) {
      CHECK(!tcp.contains(s));
      ++sockets;
    }
  CHECK(sockets >= 2);  // the local ones: so this looks at the right place
  one.send(SIGKILL);
  CHECK(zero.wait(kSoon) == 6);
  CHECK(one.wait(10) == 137);
  CHECK_MESSAGE(count(zero.err(), "rank 1 (pid " + std::to_string(one.pid())) == 1, zero.err());
  CHECK_MESSAGE(count(zero.err(), "to resume, run the same command with --resume ") == 1,
                zero.err());
}

TEST_CASE("another rank writes error.txt where rank 0, started by somebody else, is killed") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const std::vector<std::string> words = {folder.file("t.yaml"), "parallel=ddp", "devices=2",
                                          "cores=1", "out=" + folder.file("run")};
  Process zero(words, rank_of_two(0)), one(words, rank_of_two(1));
  REQUIRE_MESSAGE(
      becomes_true(60, [&] { return zero.out().find("Epoch [2/") != std::string::npos; }),
      zero.err() << one.err());
  zero.send(SIGKILL);
  CHECK(one.wait(10) == 6);
  CHECK(zero.wait(10) == 137);
  const std::string error = read_file(folder.file("run/error.txt"));
  CHECK_MESSAGE(error.starts_with("exit code 6\nrank 0 (pid " + std::to_string(zero.pid()) + ", "),
                error);
  CHECK(has(dptrain({"runs", "--csv", folder.file("run")}).out, ",failed,\"rank 0 (pid "));
}

TEST_CASE("environments that start ranks by half are refused, before anything is waited for") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const auto run = [&](const std::string& mode, const Variables& environment) {
    return dptrain({folder.file("t.yaml"), mode, "cores=1", "out=" + folder.file("run")},
                   environment);
  };
  const Finished half = run("parallel=ddp", {{"RANK", "0"}});
  CHECK(half.code == 2);
  CHECK_MESSAGE(half.err.find("RANK, but not WORLD_SIZE") != std::string::npos, half.err);
  const std::vector<std::string> words = {folder.file("t.yaml"), "parallel=single", "cores=1",
                                          "out=" + folder.file("run")};
  Process zero(words, rank_of_two(0)), one(words, rank_of_two(1));
  CHECK(zero.wait(20) == 2);
  CHECK(one.wait(20) == 2);
  const std::string said =
      "2 ranks were started, but parallel mode 'single' is one process; write `parallel: ddp`";
  CHECK_MESSAGE(count(zero.err(), said) == 1, zero.err());
  // rank 0 has said it for both
  CHECK_MESSAGE(without_core_notes(one.err()).empty(), one.err());
  CHECK(!fs::exists(folder.file("run")));
}

TEST_CASE("an error before training that rank 0 does not report is reported by the rank itself") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const auto words = [&](const std::string& more) {
    return std::vector<std::string>{folder.file("t.yaml"), "parallel=ddp", "cores=1", more,
                                    "out=" + folder.file("run")};
  };
  Process zero(words("seed=x"), rank_of_two(0)), one(words("seed=y"), rank_of_two(1));
  CHECK(zero.wait(20) == 2);
  CHECK(one.wait(20) == 2);
  CHECK_MESSAGE(count(zero.err(), "seed=x:1:6: error: ") == 1, zero.err());
  CHECK_MESSAGE(count(one.err(), "seed=y:1:6: error: ") == 1, one.err());
}

TEST_CASE("a launcher's number of ranks replaces `devices`, with a note") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const auto run = [&](const std::string& mode) {
    return dptrain({folder.file("t.yaml"), mode, "devices=2", "cores=1", "steps=2",
                    "out=" + folder.file("run")},
                   {{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  };
  for (const char* mode : {"parallel=ddp", "parallel={ddp: 2}"}) {
    CAPTURE(mode);
    const Finished one = run(mode);
    CHECK_MESSAGE(one.code == 0, one.err);
    CHECK_MESSAGE(
        count(one.err, "devices: 2 in the spec, but torchrun started 1 rank: training on 1\n") == 1,
        one.err);
    CHECK(count(one.out, "Training on CPU") == 1);
  }
}

}  // namespace dpt
