// What other hosts do while the first one saves: for longer than their time limit, or in vain.
#include <cerrno>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/files.h"
#include "comm/hosts/tcp.h"
#include "comm/links/load.h"
#include "data/folder.h"
#include "skip.h"
#include "train/quick_disk.h"
#include "train/redirect.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

using namespace std::chrono_literals;

const std::string kSpec = R"(
data:
  dataset: {synthetic_images: {samples: 96, shape: [1, 6, 6]}}
  transforms: [to_tensor]
  batch_size: 48
model: [flatten, {linear: 10}]
loss: cross_entropy
optimizer: {adam: 0.01}
epochs: 3
parallel: {ddp: {timeout: 2}}
save: {every_epochs: 1}
cores: 1
)";

// Takes 5 s, once, to begin a checkpoint.
class SlowDisk : public Quick {
 public:
  int create(const std::string& path) override {
    if (!slept_ && path.find("checkpoints") != std::string::npos) {
      slept_ = true;
      std::this_thread::sleep_for(5s);
    }
    return Quick::create(path);
  }
  bool slept() const { return slept_; }

 private:
  bool slept_ = false;
};

// Breaks, after a while, with the weights, the last thing that a run saves.
class BrokenDisk : public Quick {
 public:
  int create(const std::string& path) override {
    if (path.find(".aside-model.") == std::string::npos) return Quick::create(path);
    std::this_thread::sleep_for(1s);
    return errno = EIO, -1;
  }
};

// Ends its process with the weights.
class DeadlyDisk : public Quick {
 public:
  int create(const std::string& path) override {
    if (path.find(".aside-model.") != std::string::npos) ::kill(::getpid(), SIGKILL);
    return Quick::create(path);
  }
};

// Returns the exit code of this host's only rank.
int be_host(int host, int port, const std::string& folder, Disk& disk) {
  const World world{.rank = host,
                    .size = 2,
                    .local_rank = 0,
                    .local_size = 1,
                    .job = fmt::format("slow save {}", port),
                    .launcher = "hand",
                    .parent = 0,
                    .host = host,
                    .run_id = "slow save",
                    .master = {.host = "127.0.0.1", .port = port, .source = "test"},
                    .pretended_host = host};
  try {
    std::vector<std::unique_ptr<SourceFile>> files;
    Diagnostics d;
    Node tree;
    Spec spec = load_spec(folder + "/t.yaml", {}, registries(), files, d, &tree);
    if (!d.ok()) fail(Fault::spec, "{}", d.render());
    RunHosts hosts(world, {.version = "1", .spec = "spec"}, timeout_of(spec));
    const auto session = make_session(std::move(spec), {.world = 2, .hosts = hosts.layout()}, d);
    if (!session) fail(Fault::spec, "{}", d.render());
    return run(*session, {.location = {.folder = folder + "/run",
                                       .numbered = false,
                                       .resume = "",
                                       .resolved_spec = to_yaml(tree)},
                          .world = world,
                          .hosts = &hosts,
                          .disk = &disk});
  } catch (const Error& e) {
    fmt::print(stderr, "{}\n", e.report());
    return static_cast<int>(e.fault());
  }
}

bool skips_hosts() {
  return skip_without(loaded_link_module("gloo").module != nullptr, "libdptrain_gloo.so") ||
         skip_without(kCanFork, "processes with one thread");
}

struct EndedHost {
  int status = 0;  // of waitpid()
  std::string out, err;
};

// Runs two hosts, each in a process of its own. The first one saves to `disk`; if it succeeds
// though `done` is false in its process, its exit code is 100.
std::vector<EndedHost> run_two_hosts(Disk& disk, const std::function<bool()>& done = {}) {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const int port = TcpListener(numeric_address("127.0.0.1", 0).value()).address().port();
  std::fflush(nullptr);
  std::vector<pid_t> hosts;
  for (int host = 0; host < 2; ++host) {
    hosts.push_back(::fork());
    if (hosts.back() != 0) continue;
    int code = 0;
    {
      const Redirect out(STDOUT_FILENO, folder.file(fmt::format("out{}", host)));
      const Redirect err(STDERR_FILENO, folder.file(fmt::format("err{}", host)));
      alarm(60);
      Quick quick;
      code = be_host(host, port, folder.path(), host == 0 ? disk : quick);
      if (code == 0 && host == 0 && done && !done()) code = 100;
    }
    ::_exit(code);
  }
  std::vector<EndedHost> out(2);
  for (size_t host = 0; host < 2; ++host) {
    ::waitpid(hosts[host], &out[host].status, 0);
    out[host].out = read_file(folder.file(fmt::format("out{}", host)));
    out[host].err = read_file(folder.file(fmt::format("err{}", host)));
  }
  return out;
}

TEST_CASE("hosts wait while the first one saves for longer than the time limit") {
  if (skips_hosts()) return;
  SlowDisk disk;
  for (const EndedHost& host : run_two_hosts(disk, [&] { return disk.slept(); })) {
    CHECK_MESSAGE(host.status == 0, host.err);
    CHECK_MESSAGE(host.out.find("finished.") != std::string::npos, host.out);
  }
}

TEST_CASE("no host reports success where the first one cannot save the weights") {
  if (skips_hosts()) return;
  BrokenDisk broken;
  DeadlyDisk deadly;
  for (Disk* disk : std::vector<Disk*>{&broken, &deadly}) {
    const bool dies = disk == &deadly;
    CAPTURE(dies);
    const std::vector<EndedHost> hosts = run_two_hosts(*disk);
    CHECK(hosts[0].status == (dies ? SIGKILL : 256 * static_cast<int>(Fault::failed)));
    CHECK_MESSAGE(hosts[1].status == 256 * static_cast<int>(Fault::rank), hosts[1].err);
    for (const EndedHost& host : hosts)
      CHECK_MESSAGE(host.out.find("finished") == std::string::npos, host.out);
    // The epoch is the last one, not one behind it.
    if (dies)
      CHECK_MESSAGE(hosts[1].err.find("at epoch 3, ") != std::string::npos, hosts[1].err);
    else
      CHECK_MESSAGE(hosts[1].err.find("Input/output error") != std::string::npos, hosts[1].err);
  }
}

}  // namespace
}  // namespace dpt
