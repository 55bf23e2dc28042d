#include "comm/world.h"

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <numeric>
#include <string_view>

#include <unistd.h>

#include "base/count.h"
#include "base/fail.h"
#include "comm/endpoint.h"
#include "comm/slurm_nodes.h"

namespace dpt {
namespace {

// A launcher's names of its variables; empty: it has no such variable.
struct Names {
  std::string_view launcher, rank, size, local_rank, local_size, nodes, node;
};

constexpr Names kTorchrun = {.launcher = "torchrun",
                             .rank = "RANK",
                             .size = "WORLD_SIZE",
                             .local_rank = "LOCAL_RANK",
                             .local_size = "LOCAL_WORLD_SIZE",
                             .nodes = "GROUP_WORLD_SIZE",
                             .node = "GROUP_RANK"};
constexpr Names kOpenMpi = {.launcher = "Open MPI",
                            .rank = "OMPI_COMM_WORLD_RANK",
                            .size = "OMPI_COMM_WORLD_SIZE",
                            .local_rank = "OMPI_COMM_WORLD_LOCAL_RANK",
                            .local_size = "OMPI_COMM_WORLD_LOCAL_SIZE",
                            .nodes = "",
                            .node = ""};
constexpr Names kPmi = {.launcher = "MPI (PMI)",
                        .rank = "PMI_RANK",
                        .size = "PMI_SIZE",
                        .local_rank = "MPI_LOCALRANKID",
                        .local_size = "MPI_LOCALNRANKS",
                        .nodes = "",
                        .node = ""};
constexpr Names kSlurm = {.launcher = "SLURM",
                          .rank = "SLURM_PROCID",
                          .size = "SLURM_NTASKS",
                          .local_rank = "SLURM_LOCALID",
                          .local_size = "",
                          .nodes = "SLURM_NNODES",
                          .node = "SLURM_NODEID"};

constexpr std::string_view kPortNumbers = "a port: a number from 1 to 65535";

class Reader {
 public:
  explicit Reader(const Environment& get) : get_(get) {}

  std::string text(std::string_view name) const {
    const char* const value = name.empty() ? nullptr : get_(std::string(name).c_str());
    return value == nullptr ? "" : value;
  }

  bool has(std::string_view name) const { return !text(name).empty(); }

  std::optional<int> number(std::string_view name) const {
    const std::string value = text(name);
    if (value.empty()) return std::nullopt;
    int number = -1;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size() || number < 0)
      fail(Fault::spec, "the environment has {}={}, which is not {}", name, value,
           name == "MASTER_PORT" ? kPortNumbers : "a whole number from 0");
    return number;
  }

 private:
  const Environment& get_;
};

std::string consecutive_advice(const Names& n) {
  if (n.launcher == kOpenMpi.launcher) return "start them with `mpirun --map-by slot`";
  if (n.launcher == kSlurm.launcher) return "start them with `srun --distribution=block`";
  return "number them machine by machine";
}

std::string advice(const Names& n) {
  return fmt::format(
      "start the ranks with {} again, or unset its variables so that dptrain starts "
      "its own ranks",
      n.launcher);
}

void check(const World& w, const Names& n) {
  if (w.size < 1 || w.rank >= w.size)
    fail(Fault::spec, "the environment has {}={}, but {}={}: ranks are counted from 0; {}", n.rank,
         w.rank, n.size, w.size, advice(n));
  if (w.local_rank >= w.local_size)
    fail(Fault::spec, "the environment has {}={}, but this machine has {}; {}", n.local_rank,
         w.local_rank, counted(w.local_size, "rank"), advice(n));
  if (w.local_size > w.size)
    fail(Fault::spec, "the environment has {}={}, but {}={}; {}", n.local_size, w.local_size,
         n.size, w.size, advice(n));
}

// Number of ranks on this machine according to the variables; all ranks if they do not say.
int local_size(const Reader& env, const Names& n, int size) {
  if (const auto local = env.number(n.local_size)) return *local;
  const int nodes = env.number(n.nodes).value_or(1);
  if (nodes <= 1) return size;
  if (size % nodes != 0)
    fail(Fault::spec,
         "{} started {} on {} machines, but does not say how many on each: start as many on each",
         n.launcher, counted(size, "rank"), nodes);
  return size / nodes;
}

// srun says exactly which host has which tasks. False: there is one host, or no such list.
bool read_slurm_layout(const Reader& env, World& w) {
  std::string list = env.text("SLURM_STEP_TASKS_PER_NODE");
  if (list.empty()) list = env.text("SLURM_TASKS_PER_NODE");
  const auto tasks = slurm_tasks_per_node(list);
  const auto node = env.number(kSlurm.node), local = env.number(kSlurm.local_rank);
  if (!tasks || tasks->size() < 2 || !node || !local) return false;
  const auto at = static_cast<size_t>(*node);
  if (std::accumulate(tasks->begin(), tasks->end(), 0) != w.size || at >= tasks->size())
    return false;
  w.local_size = (*tasks)[at];
  const int first = std::accumulate(tasks->begin(), tasks->begin() + *node, 0);
  if (w.rank != first + *local)
    fail(Fault::spec,
         "SLURM_PROCID is {} for task {} of node {}, which has tasks {} to {} if the ranks of each "
         "machine are consecutive: start them with `srun --distribution=block`",
         w.rank, *local, *node, first, first + w.local_size - 1);
  return true;
}

World read(const Reader& env, const Names& n) {
  const auto rank = env.number(n.rank), size = env.number(n.size);
  if (!rank || !size)
    fail(Fault::spec, "the environment has {}, but not {}; {}",
         rank ? n.rank : (size ? n.size : n.local_rank), rank ? n.size : n.rank, advice(n));
  World w{.rank = *rank, .size = *size, .launcher = std::string(n.launcher)};
  if (n.launcher != kSlurm.launcher || !read_slurm_layout(env, w))
    w.local_size = local_size(env, n, w.size);
  const auto local_rank = env.number(n.local_rank);
  if (!local_rank && w.has_several_hosts())
    fail(Fault::spec,
         "{} started {} on several machines, but {} is not set: set it to the rank's number on its "
         "machine, from 0",
         n.launcher, counted(w.size, "rank"), n.local_rank);
  w.local_rank = local_rank.value_or(w.rank);
  check(w, n);
  return w;
}

// A name of the job: the given variables that are set, or else the process that started all ranks.
std::string job_of(const Reader& env, const Names& n,
                   std::initializer_list<std::string_view> names) {
  std::string job(n.launcher);
  bool known = false;
  for (const std::string_view name : names) {
    const std::string value = env.text(name);
    if (value.empty() || value == "none") continue;  // torchrun's default run id
    job += fmt::format(" {}={}", name, value);
    known = true;
  }
  return known ? job : fmt::format("{} parent={}", job, getppid());
}

constexpr int kDefaultPort = 29500;  // torch's

Master named_master(const std::string& text) {
  const auto endpoint = parse_endpoint(text);
  if (!endpoint)
    fail(Fault::spec,
         "the environment has DPTRAIN_MASTER={}; write host:port, such as 10.0.0.1:29500 or "
         "[fd00::2]:29500",
         text);
  return {.host = endpoint->host, .port = endpoint->port, .source = "DPTRAIN_MASTER"};
}

int master_port(const Reader& env, int otherwise) {
  const int port = env.number("MASTER_PORT").value_or(otherwise);
  if (port < 1 || port > 65535)
    fail(Fault::spec, "the environment has MASTER_PORT={}, which is not {}", port, kPortNumbers);
  return port;
}

// Where host 0 is. Empty: the environment does not say.
Master master_of(const Reader& env, const Names& n, const World& w) {
  if (env.has("DPTRAIN_MASTER")) return named_master(env.text("DPTRAIN_MASTER"));
  if (env.has("MASTER_ADDR")) {
    const bool torchrun = n.launcher == kTorchrun.launcher;
    return {.host = env.text("MASTER_ADDR"),
            .port = master_port(env, kDefaultPort),
            .is_store = torchrun && env.text("TORCHELASTIC_USE_AGENT_STORE") == "True",
            .source = env.has("MASTER_PORT") ? "MASTER_ADDR and MASTER_PORT" : "MASTER_ADDR"};
  }
  if (w.pretended_host >= 0)
    return {.host = "127.0.0.1",
            .port = master_port(env, kDefaultPort),
            .source = env.has("MASTER_PORT") ? "DPTRAIN_NODE and MASTER_PORT" : "DPTRAIN_NODE"};
  if (n.launcher != kSlurm.launcher) return {};
  std::string list = env.text("SLURM_STEP_NODELIST");
  if (list.empty()) list = env.text("SLURM_NODELIST");
  // Above the ports of services, below those that systems give to clients. Steps of one job differ.
  constexpr int kFirst = 15000, kCount = 15000, kSteps = 7;
  const int64_t job = env.number("SLURM_JOB_ID").value_or(0);
  const int64_t step = env.number("SLURM_STEP_ID").value_or(0);
  const int derived = kFirst + static_cast<int>((job * kSteps + step) % kCount);
  return {.host = first_slurm_node(list),
          .port = master_port(env, derived),
          .source = "SLURM_STEP_NODELIST"};
}

std::string how_to_name_the_master(const Names& n) {
  if (n.launcher == kOpenMpi.launcher) return "add `-x MASTER_ADDR=HOST` to mpirun";
  if (n.launcher == kPmi.launcher) return "add `-genv MASTER_ADDR HOST` to mpiexec";
  return "set MASTER_ADDR=HOST, and MASTER_PORT, for all ranks";
}

// What a launcher calls the run on every host. The restart counter of torchrun is not part of it:
// agents whose ranks were healthy do not count a restart.
std::string run_id_of(const Reader& env, const Names& n) {
  std::string id(n.launcher);
  for (const char* name : {"TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid",
                           "PMI_JOBID", "SLURM_JOB_ID", "SLURM_STEP_ID"})
    if (env.has(name)) id += fmt::format(" {}={}", name, env.text(name));
  return id;
}

void read_hosts(const Reader& env, const Names& n, World& w) {
  w.pretended_host = env.number("DPTRAIN_NODE").value_or(-1);
  if (!w.has_several_hosts()) return;
  constexpr int kMostPretended = 253;  // 127.0.0.(k + 1)
  if (w.pretended_host > kMostPretended)
    fail(Fault::spec,
         "the environment has DPTRAIN_NODE={}, but pretended hosts have numbers up to "
         "{}",
         w.pretended_host, kMostPretended);
  if (w.rank < w.local_rank)
    fail(Fault::spec,
         "the environment has {}={}, but {}={}: the ranks of a machine must be consecutive; {}",
         n.rank, w.rank, n.local_rank, w.local_rank, consecutive_advice(n));
  w.host = w.pretended_host >= 0 ? w.pretended_host : env.number(n.node).value_or(-1);
  w.run_id = run_id_of(env, n);
  w.master = master_of(env, n, w);
  if (w.master.host.empty())
    fail(Fault::spec,
         "{} started {}, {} of them on this machine, and the machines do not know how to reach the "
         "one of rank 0: {}, where HOST is the name or address of that machine, or set "
         "DPTRAIN_MASTER=HOST:PORT",
         n.launcher, counted(w.size, "rank"), w.local_size, how_to_name_the_master(n));
}

// SLURM runs a batch script as task 0 of as many as the job requests, but only srun starts them
// all.
bool slurm_started_ranks(const Reader& env) {
  const std::string name = env.text("SLURM_JOB_NAME"), tasks = env.text("SLURM_NTASKS");
  if (!env.has("SLURM_PROCID") || tasks == "1" || name == "bash" || name == "interactive")
    return false;
  if (env.has("SLURM_STEP_ID")) return true;
  if (!tasks.empty())
    fail(Fault::spec,
         "SLURM_NTASKS is {}, but only this process was started; start all ranks with `srun "
         "dptrain ...`, or `unset SLURM_NTASKS`, and dptrain starts its own ranks",
         tasks);
  return false;
}

}  // namespace

World local_world(const World& world) {
  if (!world.has_several_hosts()) return world;
  World out = world;
  out.rank = world.local_rank;
  out.size = world.local_size;
  out.number_of_first = world.first_rank();
  out.ranks_of_run = world.size;
  // Pretended hosts share one machine, but not a socket.
  out.job += fmt::format(" first rank={}", world.first_rank());
  return out;
}

std::optional<World> world_from_environment(const Environment& get) {
  const Reader env(get);
  const auto with_job = [&](const Names& n, std::initializer_list<std::string_view> job) {
    World world = read(env, n);
    world.job = job_of(env, n, job);
    read_hosts(env, n, world);
    world.parent = env.text("DPTRAIN_OUTLIVE_LAUNCHER") == "1" ? 0 : getppid();
    return world;
  };
  if (env.has("RANK") || env.has("WORLD_SIZE") || env.has("LOCAL_RANK")) {
    World world =
        with_job(kTorchrun, {"TORCHELASTIC_RUN_ID", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT"});
    // A shell that sets the variables may end before its ranks: `nohup dptrain SPEC &`.
    if (!env.has("TORCHELASTIC_RUN_ID")) world.parent = 0;
    return world;
  }
  if (env.has("OMPI_COMM_WORLD_RANK") || env.has("OMPI_COMM_WORLD_SIZE"))
    return with_job(kOpenMpi, {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"});
  const bool slurm = env.has("SLURM_PROCID");
  if ((env.has("PMI_RANK") || env.has("PMI_SIZE")) && (!slurm || env.has("MPI_LOCALRANKID")))
    return with_job(kPmi, {"PMI_JOBID", "PMI_ID", "SLURM_JOB_ID"});
  if (slurm_started_ranks(env)) return with_job(kSlurm, {"SLURM_JOB_ID", "SLURM_STEP_ID"});
  return std::nullopt;
}

std::optional<World> world_from_environment() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes the environment
  return world_from_environment([](const char* name) { return std::getenv(name); });
}

}  // namespace dpt
