// dptrain plan SPEC --hosts N: the plan of several machines, and with --link the predicted time of
// a step on them.
#pragma once

#include <string>
#include <vector>

#include "cli/spec_argument.h"
#include "report/link_model.h"
#include "session/session_query.h"

namespace dpt::commands {

// The numbers of machines that `--hosts` names: "4", or the powers of two and both ends of a range
// "1..1024". Throws Error{spec} if it names none.
std::vector<int> parse_hosts(const std::string& text);

// So many machines like the one of this topology.
SessionQuery on_hosts(const Topology& one, int hosts, SessionQuery query);

// Measures a step of the spec for each number of machines, and prints a table of predicted times.
// The batch of a step is that of one machine. Throws BadSpec, and Error
// as measured_step_costs() does.
void print_host_table(const LoadedSpec& loaded, const std::vector<int>& hosts,
                      const LinkModel& link);

}  // namespace dpt::commands
