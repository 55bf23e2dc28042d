// For tests of modes: text in, text out.
#pragma once

#include <string>

#include "base/error.h"
#include "parallel/mode.h"

namespace dpt {

inline const ModeType& mode_named(std::string_view name) {
  for (const ModeType& m : mode_table())
    if (m.name == name) return m;
  throw Error(Fault::failed, "no such mode");
}

// A mode with settings written as YAML flow: "{loss: distributed}"; empty: its defaults.
inline std::any mode_settings(const ModeType& mode, const std::string& yaml) {
  const SourceFile file{"t.yaml", yaml};
  Diagnostics d;
  const std::any out = mode.decode(yaml.empty() ? Node{} : read_yaml(file, d), {"mode", {}}, d);
  require(d.ok(), d.render());
  return out;
}

// The plan of a mode on CPUs.
inline Plan plan_of(const ModeType& mode, const Topology& topology, const PlanQuery& query = {}) {
  return mode.rewrite(basic_plan(query), {.topology = topology});
}

inline std::string planned(std::string_view mode, const std::string& yaml, const ModeQuery& query,
                           const PlanQuery& plan_query = {}) {
  const ModeType& m = mode_named(mode);
  return plan_of(m, m.topology(mode_settings(m, yaml), query), plan_query).str();
}

}  // namespace dpt
