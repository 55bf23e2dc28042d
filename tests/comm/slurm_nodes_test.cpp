#include "comm/slurm_nodes.h"

#include <doctest/doctest.h>

namespace dpt {
namespace {

TEST_CASE("the first node of SLURM's list is found, brackets or not") {
  CHECK(first_slurm_node("hosta") == "hosta");
  CHECK(first_slurm_node("hosta,hostb") == "hosta");
  CHECK(first_slurm_node("node[007-012,020],login1") == "node007");
  CHECK(first_slurm_node("node[3,5]") == "node3");
  CHECK(first_slurm_node("rack[1-2]node[3-4]-ib") == "rack1node3-ib");
  for (const char* wrong : {"", ",", "node[", "node[]", "node[-3]"})
    CHECK(first_slurm_node(wrong).empty());
}

TEST_CASE("SLURM's tasks per node are read") {
  CHECK(slurm_tasks_per_node("2") == std::vector{2});
  CHECK(slurm_tasks_per_node("2(x3),1") == std::vector{2, 2, 2, 1});
  CHECK(slurm_tasks_per_node("1,3(x2)") == std::vector{1, 3, 3});
  for (const char* wrong : {"", ",", "2,", "x", "2(x0)", "2(x", "2(x3", "2(x3)4", "-1", "1(x65537)",
                            "1(x65536),1", "99999999999"})
    CHECK(!slurm_tasks_per_node(wrong));
}

}  // namespace
}  // namespace dpt
