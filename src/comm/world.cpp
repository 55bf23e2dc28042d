#include "comm/world.h"

#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

#include <unistd.h>

#include "base/count.h"
#include "base/fail.h"

namespace dpt {
namespace {

// A launcher's names of its variables; empty: it has no such variable.
struct Names {
  std::string_view launcher, rank, size, local_rank, local_size, nodes;
};

constexpr Names kTorchrun = {.launcher = "torchrun",
                             .rank = "RANK",
                             .size = "WORLD_SIZE",
                             .local_rank = "LOCAL_RANK",
                             .local_size = "LOCAL_WORLD_SIZE",
                             .nodes = "GROUP_WORLD_SIZE"};
constexpr Names kOpenMpi = {.launcher = "Open MPI",
                            .rank = "OMPI_COMM_WORLD_RANK",
                            .size = "OMPI_COMM_WORLD_SIZE",
                            .local_rank = "OMPI_COMM_WORLD_LOCAL_RANK",
                            .local_size = "OMPI_COMM_WORLD_LOCAL_SIZE",
                            .nodes = ""};
constexpr Names kPmi = {.launcher = "MPI (PMI)",
                        .rank = "PMI_RANK",
                        .size = "PMI_SIZE",
                        .local_rank = "MPI_LOCALRANKID",
                        .local_size = "MPI_LOCALNRANKS",
                        .nodes = ""};
constexpr Names kSlurm = {.launcher = "SLURM",
                          .rank = "SLURM_PROCID",
                          .size = "SLURM_NTASKS",
                          .local_rank = "SLURM_LOCALID",
                          .local_size = "",
                          .nodes = "SLURM_NNODES"};

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
      fail(Fault::spec, "the environment has {}={}, which is not a valid rank or number of ranks",
           name, value);
    return number;
  }

 private:
  const Environment& get_;
};

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
  if (w.local_size != w.size)
    fail(Fault::spec,
         "{} started {}, {} of them on this machine: ranks on several machines are not "
         "supported in this version; start all of them on one machine",
         n.launcher, counted(w.size, "rank"), w.local_size);
  if (w.local_rank >= w.local_size)
    fail(Fault::spec, "the environment has {}={}, but this machine has {}; {}", n.local_rank,
         w.local_rank, counted(w.local_size, "rank"), advice(n));
}

// Number of ranks on this machine according to the variables; all ranks if they do not say.
int local_size(const Reader& env, const Names& n, int size) {
  if (const auto local = env.number(n.local_size)) return *local;
  const int nodes = env.number(n.nodes).value_or(1);
  return nodes <= 1 ? size : (size + nodes - 1) / nodes;
}

World read(const Reader& env, const Names& n) {
  const auto rank = env.number(n.rank), size = env.number(n.size);
  if (!rank || !size)
    fail(Fault::spec, "the environment has {}, but not {}; {}",
         rank ? n.rank : (size ? n.size : n.local_rank), rank ? n.size : n.rank, advice(n));
  World w{.rank = *rank, .size = *size, .launcher = std::string(n.launcher)};
  w.local_size = local_size(env, n, w.size);
  w.local_rank = env.number(n.local_rank).value_or(w.rank);
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

std::optional<World> world_from_environment(const Environment& get) {
  const Reader env(get);
  const auto with_job = [&](const Names& n, std::initializer_list<std::string_view> job) {
    World world = read(env, n);
    world.job = job_of(env, n, job);
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
