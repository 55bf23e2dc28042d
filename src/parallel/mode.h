// What a spec can name under `parallel:`. One file in parallel/ holds one ModeType: where the work
// is done, and what it adds to a plan.
#pragma once

#include <any>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/program/plan.h"
#include "parallel/exchange.h"
#include "parallel/schedule.h"
#include "parallel/topology.h"
#include "spec/nameable.h"

namespace dpt {

// What the machine and the spec offer.
struct ModeQuery {
  std::optional<int> devices;  // as written; empty: the mode's own default
  std::optional<int> cores;    // of each device, as written; empty: the machine's, shared evenly
  std::optional<int> shards;   // reproducible: {shards: n}
  int machine_cores = 1;       // that this process may use
  std::optional<int> world;    // ranks that somebody else has started
  int span = 1;                // devices that the layers of a replica are placed on
};

// How the work of one replica is cut up: layers into stages, a batch into chunks.
struct Pipeline {
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  int chunks = 1;                // of a micro-batch
  int stages_a_device = 1;       // interleaved
  bool by_memory = false;        // stages are balanced by bytes in the place of FLOPs
  std::vector<std::string> cut;  // units that begin a stage; empty: balanced
  Checkpointing checkpoint = Checkpointing::never;
  bool deferred_batch_norm = false;  // running statistics are of whole batches, not of chunks
};

struct ModeType : Nameable {
  // Throws Error{Fault::spec} where the settings and the machine do not fit.
  Topology (*topology)(const std::any& settings, const ModeQuery& query);
  // Adds what communicates and leaves the rest as it was. Pure: nothing is touched but the plan.
  void (*rewrite)(Plan& plan, const Topology& who);
  // Seconds that ranks wait for each other; empty: the usual ones. Null: there are no ranks.
  std::optional<double> (*timeout)(const std::any& settings) = nullptr;
  bool processes = false;  // every rank is a process of its own
  // Cuts the layers into stages itself; null: `device` of the layers says where they lie.
  Pipeline (*pipeline)(const std::any& settings) = nullptr;
  // Null: what others read is all there is, and states are everyone's.
  Exchange (*exchange)(const std::any& settings) = nullptr;
  // The value of the mode's own key `devices`; empty: not written. Null: the mode has no such key.
  std::optional<int64_t> (*devices)(const std::any& settings) = nullptr;
};

std::span<const ModeType> mode_table();  // generated from parallel/meson.build
std::vector<const Nameable*> mode_words();

// A mode with its defaults. REQUIRES: there is one of that name.
Choice mode_choice(std::string_view name);

// The main key of dp and ddp.
inline constexpr std::string_view kDevicesKey = "devices";
inline constexpr std::string_view kDevicesDoc =
    "how many devices share the work, as `devices` at the top level says, too; none: the mode's "
    "own number";
inline constexpr Range kDeviceCount{"must be between 1 and 4096", 1, 4096};

// How many devices a spec asks for: the top-level `devices`, or the mode's own key; empty: neither
// is written. REQUIRES: `parallel` is a mode. Throws Error{Fault::spec} where the two differ.
std::optional<int64_t> devices_asked(const Choice& parallel, std::optional<int64_t> devices);

// Shared by the modes: the number of devices where none is written (`preferred` replicas), cores of
// each, and the number of shards. `processes`: a replica is a rank. Throws Error{Fault::spec} where
// the devices make no whole replicas.
Topology place_workers(const ModeQuery& query, int preferred_replicas, bool processes);

// All workers meet before gradients are summed and after the weights are there; each sums and
// updates its own range. The same text for every mode: what differs is whom a meeting spans.
void share_update(Plan& plan, const Topology& who);

}  // namespace dpt
