// The registry of `parallel:`. Each file in parallel/ holds one ModeType: where work is done, and
// how the plan is rewritten.
#pragma once

#include <any>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/program/plan.h"
#include "parallel/exchange.h"
#include "parallel/rewrites.h"
#include "parallel/schedule.h"
#include "parallel/topology.h"
#include "spec/registry_entry.h"

namespace dpt {

// What the machine and the spec offer to a mode.
struct ModeQuery {
  std::optional<int> devices;   // as in the spec; empty: the mode's default
  std::optional<int> cores;     // per device, as in the spec; empty: the machine's, divided evenly
  std::optional<int> shards;    // reproducible: {shards: n}
  int machine_cores = 1;        // cores that this process may use
  std::optional<int> world;     // number of ranks, if an external launcher started them
  int hosts = 1;                // on which these ranks are
  int devices_per_replica = 1;  // on which its layers are placed
  bool gpus = false;            // devices are GPUs
};

// How a pipeline splits a replica's work: layers into stages, batches into chunks.
struct Pipeline {
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  int chunks = 1;                // per micro-batch
  int stages_a_device = 1;       // more than 1: interleaved
  bool by_memory = false;        // balance stages by bytes instead of FLOPs
  std::vector<std::string> cut;  // units that begin a stage; empty: balanced
  Checkpointing checkpoint = Checkpointing::never;
  bool deferred_batch_norm = false;  // update running statistics once per batch, not per chunk
};

struct ModeType : RegistryEntry {
  // Throws Error{spec} if the settings do not fit the machine.
  Topology (*topology)(const std::any& settings, const ModeQuery& query);
  // From the plan of one worker to the plan of this mode: adds stages and communication and leaves
  // the rest unchanged (parallel/rewrites.h). No side effects.
  Plan (*rewrite)(Plan plan, const PlanTarget& target);
  // Seconds of silence until a rank counts as lost; empty: the default. Null: the mode has one
  // rank.
  std::optional<double> (*timeout)(const std::any& settings) = nullptr;
  bool processes = false;  // each rank is a process
  // The mode splits layers into stages itself. Null: the layers' key `device` places them.
  Pipeline (*pipeline)(const std::any& settings) = nullptr;
  // Null: gradients are not compressed, and optimizer states are shared.
  Exchange (*exchange)(const std::any& settings) = nullptr;
  // The value of the mode's own key `devices`; empty: not given. Null: the mode has no such key.
  std::optional<int64_t> (*devices)(const std::any& settings) = nullptr;
};

std::span<const ModeType> mode_table();  // generated from parallel/meson.build
std::vector<const RegistryEntry*> mode_registry();

// A mode with default settings. REQUIRES: a mode of this name exists.
Choice mode_choice(std::string_view name);

// The main key of dp and ddp.
inline constexpr std::string_view kDevicesKey = "devices";
inline constexpr std::string_view kDevicesDoc =
    "number of devices, the same as `devices` at the top level; none: the mode's default";
inline constexpr Range kDeviceCount{.text = "must be between 1 and 4096", .low = 1, .high = 4096};

// The number of devices in the spec: the top-level `devices`, or the mode's own key; empty: neither
// is given. Throws Error{spec} if they differ. REQUIRES: `parallel` is a mode.
std::optional<int64_t> devices_asked(const Choice& parallel, std::optional<int64_t> devices);

// Computes the topology of a mode: the number of devices (for `preferred_replicas` replicas if the
// spec gives none), the cores of each, and the number of shards. processes: each replica is a rank.
// Throws Error{spec} if devices is not a multiple of devices per replica, or if there are too many
// workers.
Topology place_workers(const ModeQuery& query, int preferred_replicas, bool processes);

}  // namespace dpt
