#include "session/gpus.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/count.h"
#include "base/fail.h"
#include "layers/model.h"

namespace dpt {
namespace {

using Backend = Exchange::Backend;

bool is_single(const Session& s) {
  return static_cast<const ModeType*>(s.spec.parallel.what)->name == "single";
}

std::string text_of(int gpus) { return counted(gpus, "GPU"); }

// CPU devices share the machine's cores and are numbered from 0, so two devices have no cpu:5.
void check_cpus(const std::vector<int64_t>& indices) {
  for (int64_t i : indices)
    if (i >= std::ssize(indices))
      fail(Fault::device,
           "device cpu:{} does not exist: CPU devices share the machine's cores and are numbered "
           "from 0, so {} of them are cpu:0 to cpu:{}",
           i, indices.size(), indices.size() - 1);
}

void choose_gpus(Session& s, const Topology& topology, const SessionQuery& query) {
  const DeviceSpec& devices = s.spec.devices;
  if (const auto named = std::ssize(devices.indices); named > 0 && named < topology.total_workers())
    fail(Fault::spec,
         "`devices` lists {}, but the ranks that were started need {}; list that many, or leave "
         "`devices` out",
         text_of(static_cast<int>(named)), topology.total_workers());
  for (int w = 0; w < topology.total_workers(); ++w) {
    int gpu = w;
    if (!devices.indices.empty())
      gpu = static_cast<int>(devices.indices.at(static_cast<size_t>(w)));
    else if (query.world && s.gpus.count > 0)  // a launcher may show each rank only its own GPU
      gpu = w % s.gpus.count;
    s.gpu_of_worker.push_back(gpu);
  }
  if (s.gpus.count == 0) return;  // a plan without a run
  const int highest = std::ranges::max(s.gpu_of_worker);
  if (highest < s.gpus.count) return;
  if (!devices.indices.empty())
    fail(Fault::device, "device cuda:{} does not exist: CUDA finds {}, numbered from 0", highest,
         text_of(s.gpus.count));
  fail(Fault::device,
       "the run needs {}, but CUDA finds {}; use {}, or, for a test, put several {} on one GPU: "
       "`devices: [cuda:0, cuda:0]`",
       text_of(topology.total_workers()), text_of(s.gpus.count),
       topology.devices_per_replica > 1 ? "fewer stages"
                                        : fmt::format("`devices: {}`", s.gpus.count),
       topology.devices_per_replica > 1 ? "devices" : "replicas");
}

// Chooses who sums gradients over replicas, and copies between stages in different processes.
void choose_backend(Session& s, const SessionQuery& query, Diagnostics& d) {
  const bool apart = s.stages_are_processes();
  const std::set<int> own(s.gpu_of_worker.begin(), s.gpu_of_worker.end());
  // Ranks of an external launcher compare their GPUs after they have connected.
  const bool shared = !query.world && own.size() < s.gpu_of_worker.size();
  if (!s.exchange.backend) s.exchange.backend = shared ? Backend::host : Backend::nccl;
  if (s.exchange.backend == Backend::host) {
    if (s.exchange.bucket_mib)
      d.error(s.spec.parallel.where,
              "`bucket_cap_mb` applies only to NCCL, but in this run the CPUs sum all gradients at "
              "once; leave it out");
    return;
  }
  if (shared)
    d.error(s.spec.parallel.where,
            fmt::format("NCCL allows one {} per GPU, but a GPU is listed twice; leave `backend` "
                        "out, or set `backend: gloo`",
                        apart ? "stage" : "replica"));
  else if (!s.gpus.nccl_problem.empty())
    fail(Fault::device,
         "{} needs NCCL, which cannot be loaded: {}. Install it, or set `backend: gloo`, which "
         "uses the CPUs",
         apart ? "copying between GPUs of different processes" : "summing gradients across GPUs",
         s.gpus.nccl_problem);
}

void check_spec(const Session& s, Diagnostics& d) {
  const int replicas = s.topology.replicas();
  if (s.spec.sync_batch_norm && replicas > 1 && s.exchange.backend == Backend::host)
    d.error(s.spec.at("sync_batch_norm"),
            "`sync_batch_norm` on GPUs needs NCCL; leave it out, or give each replica its own GPU "
            "and leave `backend` out");
  if (s.spec.random == "torch")
    d.error(s.spec.at("random"),
            "`random: torch` draws dropout masks on the CPU; leave it out on GPUs");
  if (!s.spec.reproducible_shards) return;
  if (*s.spec.reproducible_shards != replicas)
    d.error(s.spec.at("reproducible"),
            fmt::format("on GPUs each replica has exactly one shard: write `shards: {}`, or leave "
                        "`reproducible` out",
                        replicas));
  else if (replicas > 1 && s.exchange.backend == Backend::nccl)
    d.error(s.spec.at("reproducible"),
            "NCCL chooses its own order of summation, so modes differ in the last bits; set "
            "`backend: gloo`, or leave `reproducible` out");
}

}  // namespace

void choose_device(Session& s, const SessionQuery& query) {
  const std::string& wanted = s.spec.devices.device;
  if (wanted == "cuda") {
    s.device = "cuda";
    // `dptrain plan` works without GPUs, for as many as the spec asks for.
    if (query.gpus)
      s.gpus = *query.gpus;
    else if (query.runs && is_single(s) && devices_of(s.spec.model) == 1)
      s.gpus = cuda::gpus_of_this_process();
    else if (query.runs || (!is_single(s) && !s.spec.devices.count))
      s.gpus = cuda::survey_gpus();
    if (query.runs && !s.gpus.problem.empty())
      fail(Fault::device,
           "device 'cuda' cannot be used: {}. Set `device: cpu`, or leave `device` out; `dptrain "
           "doctor` shows details",
           s.gpus.problem);
    return;
  }
  check_cpus(s.spec.devices.indices);
  if (wanted != "auto" || !query.runs) return;  // only a run explains why it uses a CPU
  const std::string no_gpu = cuda::why_no_gpu();
  if (!no_gpu.empty() && !cuda::has_nvidia_gpu()) return;
  s.note = no_gpu.empty() ? "device: cpu (a GPU is available, but GPU training is new; to use it, "
                            "set `device: cuda`)"
                          : fmt::format("device: cpu ({})", no_gpu);
}

void place_on_gpus(Session& s, const SessionQuery& query, Diagnostics& d) {
  if (!s.on_gpu()) {
    if (!s.spec.graphs)
      d.error(s.spec.at("graphs"),
              "`graphs` is for CUDA devices, and this run is on a CPU; leave it out");
    if (s.exchange.backend == Backend::nccl || s.exchange.bucket_mib)
      d.error(s.spec.parallel.where,
              "`backend: nccl` and `bucket_cap_mb` are for GPUs; CPUs sum in the memory that they "
              "share: leave them out, or write `device: cuda`");
    return;
  }
  choose_gpus(s, s.topology, query);
  if (s.topology.replicas() > 1 || s.stages_are_processes()) choose_backend(s, query, d);
  if (s.topology.replicas() == 1) s.exchange.shard_states = false;  // there are no other replicas
  check_spec(s, d);
}

}  // namespace dpt
