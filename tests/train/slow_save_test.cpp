// A save of the first host that takes longer than the time limit of the parallel mode.
#include <chrono>
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

// Returns the exit code of this host's only rank; 100: it did not wait for the disk.
int be_host(int host, int port, const std::string& folder) {
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
    Quick quick;
    SlowDisk slow;
    const int code = run(*session, {.location = {.folder = folder + "/run",
                                                 .numbered = false,
                                                 .resume = "",
                                                 .resolved_spec = to_yaml(tree)},
                                    .world = world,
                                    .hosts = &hosts,
                                    .disk = host == 0 ? &slow : &quick});
    return code == 0 && host == 0 && !slow.slept() ? 100 : code;
  } catch (const Error& e) {
    fmt::print(stderr, "{}\n", e.report());
    return static_cast<int>(e.fault());
  }
}

TEST_CASE("hosts wait while the first one saves for longer than the time limit") {
  if (skip_without(loaded_link_module("gloo").module != nullptr, "libdptrain_gloo.so")) return;
  if (skip_without(kCanFork, "processes with one thread")) return;
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const int port = TcpListener(numeric_address("127.0.0.1", 0).value()).address().port();
  std::fflush(nullptr);
  std::vector<pid_t> hosts;
  for (int host = 0; host < 2; ++host) {
    hosts.push_back(::fork());
    if (hosts.back() != 0) continue;
    const Redirect out(STDOUT_FILENO, "/dev/null");
    const Redirect err(STDERR_FILENO, folder.file(fmt::format("err{}", host)));
    alarm(60);
    const int code = be_host(host, port, folder.path());
    std::fflush(nullptr);
    ::_exit(code);
  }
  for (int host = 0; host < 2; ++host) {
    int status = 0;
    ::waitpid(hosts[static_cast<size_t>(host)], &status, 0);
    CAPTURE(host);
    CHECK_MESSAGE(status == 0, read_file(folder.file(fmt::format("err{}", host))));
  }
}

}  // namespace
}  // namespace dpt
