// SLURM's lists of nodes and of tasks per node, as srun puts them into the environment.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dpt {

// The first name of a list such as SLURM_STEP_NODELIST: "node[007-012,020],login1" -> "node007".
// "": the text is no such list.
std::string first_slurm_node(std::string_view list);

// The tasks of each node, from a list such as SLURM_STEP_TASKS_PER_NODE: "2(x3),1" -> {2, 2, 2, 1}.
// nullopt: the text is no such list, or describes more than 65536 nodes.
std::optional<std::vector<int>> slurm_tasks_per_node(std::string_view list);

}  // namespace dpt
