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

// The most workers that a host has.
int workers_of_largest_host(const Topology& topology) {
  int64_t out = 0;
  for (int h = 0; h < topology.hosts(); ++h)
    out = std::max(out, topology.workers_of_host(h).count());
  return static_cast<int>(out);
}

// The ranks of each host use its GPUs from the first one on.
std::vector<int> gpus_of_hosts(const Devices& devices, const std::vector<int64_t>& indices,
                               bool launched) {
  const Topology& topology = devices.topology;
  std::vector<int> out;
  for (int h = 0; h < topology.hosts(); ++h)
    for (int64_t w = 0; w < topology.workers_of_host(h).count(); ++w) {
      int64_t gpu = w;
      if (!indices.empty())
        gpu = indices.at(static_cast<size_t>(w));
      else if (launched && devices.gpus.count > 0)  // it may show each rank only its own GPU
        gpu = w % devices.gpus.count;
      out.push_back(static_cast<int>(gpu));
    }
  return out;
}

void choose_gpus(Devices& out, const DeviceSpec& devices, const SessionQuery& query) {
  const Topology& topology = out.topology;
  const int needed = workers_of_largest_host(topology);
  if (const auto named = std::ssize(devices.indices); named > 0 && named < needed)
    fail(Fault::spec,
         "`devices` lists {}, but the ranks that were started{} need {}; list that many, or leave "
         "`devices` out",
         text_of(static_cast<int>(named)), topology.hosts() > 1 ? " on a machine" : "", needed);
  out.gpu_of_worker = gpus_of_hosts(out, devices.indices, query.world.has_value());
  if (out.gpus.count == 0) return;  // a plan without a run
  const int highest = std::ranges::max(out.gpu_of_worker);
  if (highest < out.gpus.count) return;
  if (!devices.indices.empty())
    fail(Fault::device, "device cuda:{} does not exist: CUDA finds {}, numbered from 0", highest,
         text_of(out.gpus.count));
  fail(Fault::device,
       "the run needs {}, but CUDA finds {}; use {}, or, for a test, put several {} on one GPU: "
       "`devices: [cuda:0, cuda:0]`",
       text_of(topology.total_workers()), text_of(out.gpus.count),
       topology.devices_per_replica > 1 ? "fewer stages"
                                        : fmt::format("`devices: {}`", out.gpus.count),
       topology.devices_per_replica > 1 ? "devices" : "replicas");
}

// Chooses who sums gradients over replicas, and copies between stages in different processes.
void choose_backend(Devices& out, Span parallel, const SessionQuery& query, Diagnostics& d) {
  const bool apart = out.stages_are_processes();
  const std::set<int> own(out.gpu_of_worker.begin(), out.gpu_of_worker.end());
  // Ranks of an external launcher compare their GPUs after they have connected.
  const bool shared = !query.world && own.size() < out.gpu_of_worker.size();
  if (!out.exchange.backend) out.exchange.backend = shared ? Backend::host : Backend::nccl;
  if (out.exchange.backend == Backend::host) {
    if (out.exchange.bucket_mib)
      d.error(parallel,
              "`bucket_cap_mb` applies only to NCCL, but in this run the CPUs sum all gradients at "
              "once; leave it out");
    return;
  }
  if (shared)
    d.error(parallel,
            fmt::format("NCCL allows one {} per GPU, but a GPU is listed twice; leave `backend` "
                        "out, or set `backend: gloo`",
                        apart ? "stage" : "replica"));
  else if (!out.gpus.nccl_problem.empty())
    fail(Fault::device,
         "{} needs NCCL, which cannot be loaded: {}. Install it, or set `backend: gloo`, which "
         "uses the CPUs",
         apart ? "copying between GPUs of different processes" : "summing gradients across GPUs",
         out.gpus.nccl_problem);
}

// What GPUs of several machines cannot do: their gradients are summed by NCCL, and the leaders of
// machines exchange nothing in a step.
void check_hosts(const Devices& out, const Spec& spec, Diagnostics& d) {
  if (out.topology.hosts() == 1) return;
  if (out.exchange.backend == Backend::host)
    d.error(spec.parallel.where,
            fmt::format("GPUs of several machines exchange gradients by NCCL only: leave out "
                        "`backend: {}`",
                        out.exchange.by_mpi ? "mpi" : "gloo"));
  if (out.topology.devices_per_replica > 1 || out.pipeline)
    d.error(spec.parallel.where,
            "on several machines each replica must be on one GPU: leave out pipelines and the "
            "layers' key `device`, or train on one machine");
}

void check_spec(const Devices& out, const Spec& spec, Diagnostics& d) {
  const int replicas = out.topology.replicas();
  if (spec.sync_batch_norm && replicas > 1 && out.exchange.backend == Backend::host)
    d.error(spec.at("sync_batch_norm"),
            "`sync_batch_norm` on GPUs needs NCCL; leave it out, or give each replica its own GPU "
            "and leave `backend` out");
  if (spec.random == "torch")
    d.error(spec.at("random"),
            "`random: torch` draws dropout masks on the CPU; leave it out on GPUs");
  if (!spec.reproducible_shards) return;
  if (*spec.reproducible_shards != replicas)
    d.error(spec.at("reproducible"),
            fmt::format("on GPUs each replica has exactly one shard: write `shards: {}`, or leave "
                        "`reproducible` out",
                        replicas));
  else if (replicas > 1 && out.exchange.backend == Backend::nccl)
    d.error(spec.at("reproducible"),
            fmt::format("NCCL chooses its own order of summation, so modes differ in the last "
                        "bits; {}leave `reproducible` out",
                        out.topology.hosts() > 1 ? "" : "set `backend: gloo`, or "));
}

}  // namespace

void choose_device(Devices& out, const RunSettings& settings, const SessionQuery& query) {
  const Spec& spec = settings.spec;
  const bool single = settings.mode->name == "single";
  const std::string& wanted = spec.devices.device;
  if (wanted == "cuda") {
    out.device = "cuda";
    // `dptrain plan` works without GPUs, for as many as the spec asks for.
    if (query.gpus)
      out.gpus = *query.gpus;
    else if (query.runs && single && devices_of(spec.model) == 1)
      out.gpus = cuda::gpus_of_this_process();
    else if (query.runs || (!single && !spec.devices.count))
      out.gpus = cuda::survey_gpus();
    if (query.runs && !out.gpus.problem.empty())
      fail(Fault::device,
           "device 'cuda' cannot be used: {}. Set `device: cpu`, or leave `device` out; `dptrain "
           "doctor` shows details",
           out.gpus.problem);
    return;
  }
  check_cpus(spec.devices.indices);
  if (wanted != "auto" || !query.runs) return;  // only a run explains why it uses a CPU
  const std::string no_gpu = cuda::why_no_gpu();
  if (!no_gpu.empty() && !cuda::has_nvidia_gpu()) return;
  out.note = no_gpu.empty()
                 ? "device: cpu (a GPU is available, but GPU training is new; to use it, "
                   "set `device: cuda`)"
                 : fmt::format("device: cpu ({})", no_gpu);
}

void place_on_gpus(Devices& out, const Spec& spec, const SessionQuery& query, Diagnostics& d) {
  if (!out.on_gpu()) {
    if (!spec.graphs)
      d.error(spec.at("graphs"),
              "`graphs` is for CUDA devices, and this run is on a CPU; leave it out");
    const bool buckets =
        out.exchange.bucket_mib && out.topology.hosts() == 1 && !query.one_of_several;
    if (out.exchange.backend == Backend::nccl || buckets)
      d.error(spec.parallel.where,
              "`backend: nccl` and `bucket_cap_mb` are for GPUs; the CPUs of one machine sum in "
              "memory that they share: leave them out, or write `device: cuda`");
    return;
  }
  check_hosts(out, spec, d);
  if (!d.ok()) return;
  choose_gpus(out, spec.devices, query);
  if (out.topology.replicas() > 1 || out.stages_are_processes())
    choose_backend(out, spec.parallel.where, query, d);
  if (out.topology.replicas() == 1)
    out.exchange.shard_states = false;  // there are no other replicas
  check_spec(out, spec, d);
}

}  // namespace dpt
