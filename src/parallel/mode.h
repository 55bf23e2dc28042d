// What a spec can name under `parallel:`. One file in parallel/ holds one ModeType: where the work
// is done, and what it adds to a plan.
#pragma once

#include <any>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/plan.h"
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
};

struct ModeType : Nameable {
  // Throws Error{Fault::spec} where the settings and the machine do not fit.
  Topology (*topology)(const std::any& settings, const ModeQuery& query);
  // Adds what communicates and leaves the rest as it was. Pure: nothing is touched but the plan.
  void (*rewrite)(Plan& plan, const Topology& who);
  // Seconds that ranks wait for each other; empty: the usual ones. Null: there are no ranks.
  std::optional<double> (*timeout)(const std::any& settings) = nullptr;
  bool processes = false;  // every rank is a process of its own
};

std::span<const ModeType> mode_table();  // generated from parallel/meson.build
std::vector<const Nameable*> mode_words();

// A mode with its defaults. REQUIRES: there is one of that name.
Choice mode_choice(std::string_view name);

// Shared by the modes: the number of devices where none is written (`preferred`), cores of each,
// and the number of shards. `processes`: a device is a rank.
Topology place_workers(const ModeQuery& query, int preferred_devices, bool processes);

// All workers meet before gradients are summed and after the weights are there; each sums and
// updates its own range. The same text for every mode: what differs is whom a meeting spans.
void share_update(Plan& plan, const Topology& who);

}  // namespace dpt
