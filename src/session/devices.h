// Devices: where a run computes, and how its mode splits work over devices.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backend/cuda/interface/load.h"
#include "parallel/mode.h"
#include "session/run_settings.h"
#include "session/session_query.h"

namespace dpt {

struct Devices {
  std::string device = "cpu";  // or "cuda"
  std::string note;            // why `device: auto` is a CPU; empty: nothing to report
  Topology topology;
  Exchange exchange;
  std::optional<Pipeline> pipeline;  // if the mode splits layers into stages itself
  cuda::GpuSurvey gpus;              // set if CUDA was asked
  std::vector<int> gpu_of_worker;    // numbers among the GPUs that CUDA shows
  bool graphs = true;                // the spec allows CUDA graphs

  bool on_gpu() const { return device == "cuda"; }
  // The run has several hosts (machines), which exchange gradients by NCCL, or by their leaders.
  bool gpus_span_hosts() const { return on_gpu() && topology.hosts() > 1; }
  bool cpus_span_hosts() const { return !on_gpu() && topology.hosts() > 1; }
  bool sums_on_host() const {
    return on_gpu() && topology.replicas() > 1 && exchange.backend == Exchange::Backend::host;
  }
  // Whether the shared buffers have no optimizer states, because CPU workers keep them for
  // themselves. GPUs copy theirs to the buffers, sharded or not (StepExecutor::gather).
  bool own_states() const {
    // Several hosts share the states out by themselves: each has those of its elements.
    return exchange.shard_states && !on_gpu() && topology.hosts() == 1;
  }
  // The stages of a replica are in different processes, one device each.
  bool stages_are_processes() const {
    return topology.devices_per_rank < topology.devices_per_replica;
  }
  // Whether steps on GPUs are captured as CUDA graphs. This is impossible if the host takes part
  // within a step: to sum gradients, or to tell another GPU's thread that an event was recorded.
  bool captures_steps() const {
    const bool by_hosts = (topology.replicas() > 1 || stages_are_processes()) &&
                          exchange.backend == Exchange::Backend::host;
    return on_gpu() && graphs && !by_hosts &&
           (topology.devices_per_replica == 1 || stages_are_processes());
  }
};

// Chooses the devices, asks CUDA for its GPUs if needed, and splits work by the mode. Errors in the
// spec are reported to `d`. Throws Error{device} if a device is not available.
Devices make_devices(const RunSettings& settings, const SessionQuery& query, Diagnostics& d);

}  // namespace dpt
