#include "comm/world.h"

#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fail.h"

namespace dpt {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<World> world_of(const Variables& variables) {
  return world_from_environment([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

struct Case {
  Variables variables;
  const char* world;  // "launcher rank/size local_rank/local_size"; "": none
};

TEST_CASE("ranks are read as each launcher gives them") {
  const std::vector<Case> cases = {
      {{}, ""},
      {{{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}}, "torchrun 1/4 1/4"},
      {{{"RANK", "1"}, {"WORLD_SIZE", "4"}}, "torchrun 1/4 1/4"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "1"}}, "torchrun 0/1 0/1"},
      {{{"RANK", ""}, {"WORLD_SIZE", ""}}, ""},
      {{{"OMPI_COMM_WORLD_RANK", "2"},
        {"OMPI_COMM_WORLD_SIZE", "3"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}},
       "Open MPI 2/3 2/3"},
      {{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}, "MPI (PMI) 1/2 1/2"},
      {{{"SLURM_PROCID", "3"},
        {"SLURM_NTASKS", "4"},
        {"SLURM_LOCALID", "3"},
        {"SLURM_STEP_ID", "0"}},
       "SLURM 3/4 3/4"},
      {{{"SLURM_PROCID", "3"},
        {"SLURM_NTASKS", "4"},
        {"SLURM_NNODES", "1"},
        {"SLURM_STEP_ID", "0"}},
       "SLURM 3/4 3/4"},
      // srun --mpi=pmi2 sets both
      {{{"SLURM_PROCID", "1"},
        {"SLURM_NTASKS", "2"},
        {"SLURM_STEP_ID", "0"},
        {"PMI_RANK", "1"},
        {"PMI_SIZE", "2"}},
       "SLURM 1/2 1/2"},
      // mpirun inside a batch job, whose script is SLURM's task 0
      {{{"SLURM_PROCID", "0"},
        {"SLURM_NTASKS", "2"},
        {"OMPI_COMM_WORLD_RANK", "1"},
        {"OMPI_COMM_WORLD_SIZE", "2"}},
       "Open MPI 1/2 1/2"},
      // nobody started ranks
      {{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}, ""},
      {{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_NAME", "bash"}}, ""},
      {{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_NAME", "interactive"}}, ""},
      {{{"SLURM_NTASKS", "4"}}, ""},
      // a batch script of a job that does not ask for tasks
      {{{"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "17"}}, ""},
  };
  for (const Case& c : cases) {
    const auto w = world_of(c.variables);
    CHECK((w ? fmt::format("{} {}/{} {}/{}", w->launcher, w->rank, w->size, w->local_rank,
                           w->local_size)
             : "") == c.world);
  }
}

TEST_CASE("what is half set, no number, or contradicts itself is an error that names variables") {
  struct Wrong {
    Variables variables;
    std::vector<const char*> words;
  };
  const std::vector<Wrong> cases = {
      {{{"RANK", "1"}}, {"has RANK", "not WORLD_SIZE", "unset its variables"}},
      {{{"WORLD_SIZE", "2"}}, {"has WORLD_SIZE", "not RANK"}},
      {{{"LOCAL_RANK", "0"}}, {"has LOCAL_RANK", "not RANK"}},
      {{{"RANK", "2"}, {"WORLD_SIZE", "2"}}, {"RANK=2", "WORLD_SIZE=2"}},
      {{{"RANK", "0"}, {"WORLD_SIZE", "0"}}, {"WORLD_SIZE=0"}},
      {{{"RANK", "-1"}, {"WORLD_SIZE", "2"}}, {"RANK=-1"}},
      {{{"RANK", "one"}, {"WORLD_SIZE", "2"}}, {"RANK=one"}},
      {{{"RANK", "1"}, {"WORLD_SIZE", "2x"}}, {"WORLD_SIZE=2x"}},
      {{{"RANK", "1"}, {"WORLD_SIZE", "99999999999"}}, {"WORLD_SIZE=99999999999"}},
      {{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "5"}}, {"LOCAL_RANK=5"}},
      {{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "2"}}, {"LOCAL_RANK=2", "has 2 ranks"}},
      {{{"SLURM_PROCID", "1"},
        {"SLURM_NTASKS", "5"},
        {"SLURM_NNODES", "2"},
        {"SLURM_STEP_ID", "0"}},
       {"SLURM started 5 ranks on 2 machines", "does not say how many on each"}},
      // several hosts
      {{{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "2"}},
       {"4 ranks on several machines", "LOCAL_RANK is not set"}},
      {{{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}},
       {"torchrun started 4 ranks, 2 of them on this machine", "set MASTER_ADDR=HOST"}},
      {{{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}},
       {"RANK=0", "LOCAL_RANK=1", "must be consecutive"}},
      {{{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "5"}, {"LOCAL_RANK", "1"}},
       {"LOCAL_WORLD_SIZE=5", "WORLD_SIZE=4"}},
      {{{"OMPI_COMM_WORLD_RANK", "1"},
        {"OMPI_COMM_WORLD_SIZE", "2"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}},
       {"Open MPI started 2 ranks", "`-x MASTER_ADDR=HOST` to mpirun", "DPTRAIN_MASTER=HOST:PORT"}},
      {{{"SLURM_PROCID", "2"},
        {"SLURM_NTASKS", "4"},
        {"SLURM_NODEID", "0"},
        {"SLURM_LOCALID", "1"},
        {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
        {"SLURM_STEP_ID", "0"}},
       {"SLURM_PROCID is 2 for task 1 of node 0", "tasks 0 to 1", "--distribution=block"}},
      {{{"SLURM_PROCID", "1"}, {"SLURM_STEP_ID", "0"}}, {"has SLURM_PROCID", "not SLURM_NTASKS"}},
      // a batch script that starts dptrain without srun
      {{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_JOB_ID", "17"}},
       {"SLURM_NTASKS is 2, but only this process was started", "`srun dptrain ...`",
        "`unset SLURM_NTASKS`"}},
      {{{"OMPI_COMM_WORLD_SIZE", "2"}}, {"not OMPI_COMM_WORLD_RANK"}},
      {{{"PMI_RANK", "1"}}, {"not PMI_SIZE"}},
  };
  for (const Wrong& c : cases) try {
      world_of(c.variables);
      FAIL_CHECK("no error for " << c.words[0]);
    } catch (const Error& e) {
      CHECK(e.fault() == Fault::spec);
      for (const char* word : c.words) {
        CAPTURE(e.what());
        CHECK(std::string(e.what()).find(word) != std::string::npos);
      }
    }
}

// "host first+local/size on local_size at host:port"
std::string hosts_text(const Variables& variables) {
  const World w = world_of(variables).value();
  return fmt::format("{} {}+{}/{} on {} at {}:{}{}", w.host, w.first_rank(), w.local_rank, w.size,
                     w.local_size, w.master.host, w.master.port, w.master.is_store ? " store" : "");
}

TEST_CASE("each launcher's hosts and master are read") {
  Variables torchrun = {{"RANK", "3"},
                        {"WORLD_SIZE", "4"},
                        {"LOCAL_RANK", "1"},
                        {"LOCAL_WORLD_SIZE", "2"},
                        {"GROUP_RANK", "1"},
                        {"GROUP_WORLD_SIZE", "2"},
                        {"MASTER_ADDR", "hosta"},
                        {"MASTER_PORT", "4711"},
                        {"TORCHELASTIC_RUN_ID", "abc"},
                        {"TORCHELASTIC_RESTART_COUNT", "1"}};
  CHECK(hosts_text(torchrun) == "1 2+1/4 on 2 at hosta:4711");
  CHECK(world_of(torchrun)->run_id == "torchrun TORCHELASTIC_RUN_ID=abc");
  torchrun["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  CHECK(hosts_text(torchrun) == "1 2+1/4 on 2 at hosta:4711 store");
  torchrun["DPTRAIN_MASTER"] = "[fd00::2]:99";
  CHECK(hosts_text(torchrun) == "1 2+1/4 on 2 at fd00::2:99");
  Variables plain = {
      {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "1"}};
  plain["MASTER_ADDR"] = "10.0.0.1";
  CHECK(hosts_text(plain) == "-1 1+0/2 on 1 at 10.0.0.1:29500");
  plain.erase("MASTER_ADDR");
  plain["DPTRAIN_NODE"] = "1";
  CHECK(hosts_text(plain) == "1 1+0/2 on 1 at 127.0.0.1:29500");
  const Variables slurm = {{"SLURM_PROCID", "4"},
                           {"SLURM_NTASKS", "5"},
                           {"SLURM_NODEID", "2"},
                           {"SLURM_LOCALID", "0"},
                           {"SLURM_NNODES", "3"},
                           {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"},
                           {"SLURM_STEP_NODELIST", "node[07-09]"},
                           {"SLURM_JOB_ID", "123456"},
                           {"SLURM_STEP_ID", "1"}};
  CHECK(hosts_text(slurm) == "2 4+0/5 on 1 at node07:24193");
  CHECK(world_of(slurm)->run_id == "SLURM SLURM_JOB_ID=123456 SLURM_STEP_ID=1");
  const Variables open_mpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                              {"OMPI_COMM_WORLD_SIZE", "2"},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"},
                              {"MASTER_ADDR", "hosta"}};
  CHECK(hosts_text(open_mpi) == "-1 1+0/2 on 1 at hosta:29500");
}

TEST_CASE("a master that is not host:port is refused") {
  for (const char* text : {"hosta", "hosta:", ":29500", "hosta:0", "hosta:65536", "hosta:1x",
                           "fd00::2:29500", "[]:1", "hosta:-1"}) {
    CAPTURE(text);
    try {
      world_of({{"RANK", "0"},
                {"WORLD_SIZE", "2"},
                {"LOCAL_RANK", "0"},
                {"LOCAL_WORLD_SIZE", "1"},
                {"DPTRAIN_MASTER", text}});
      FAIL_CHECK("no error");
    } catch (const Error& e) {
      CHECK(std::string(e.what()) == fmt::format("the environment has DPTRAIN_MASTER={}; write "
                                                 "host:port, such as 10.0.0.1:29500 or "
                                                 "[fd00::2]:29500",
                                                 text));
    }
  }
}

TEST_CASE("the ranks of one host are a world of their own") {
  Variables second = {{"RANK", "3"},
                      {"WORLD_SIZE", "4"},
                      {"LOCAL_RANK", "1"},
                      {"LOCAL_WORLD_SIZE", "2"},
                      {"MASTER_ADDR", "127.0.0.1"},
                      {"MASTER_PORT", "1"}};
  const World local = local_world(*world_of(second));
  CHECK(local.rank == 1);
  CHECK(local.size == 2);
  CHECK(!local.has_several_hosts());
  CHECK(local.number(1) == 3);  // for messages
  CHECK(local.all_ranks() == 4);
  second["RANK"] = "1";  // of a pretended host on the same machine
  CHECK(local.job != local_world(*world_of(second)).job);
  const World alone = *world_of({{"RANK", "1"}, {"WORLD_SIZE", "2"}});
  CHECK(local_world(alone).job == alone.job);
  CHECK(local_world(alone).number(1) == 1);
  CHECK(local_world(alone).all_ranks() == 2);
}

TEST_CASE("a rank ends with the launcher that started it, unless it is asked not to") {
  const Variables by_a_shell = {{"RANK", "0"}, {"WORLD_SIZE", "2"}};
  CHECK(world_of(by_a_shell)->parent == 0);  // which may end before its ranks
  Variables rank = by_a_shell;
  rank["TORCHELASTIC_RUN_ID"] = "none";
  CHECK(world_of(rank)->parent == getppid());
  Variables alone = rank;
  alone["DPTRAIN_OUTLIVE_LAUNCHER"] = "1";
  CHECK(world_of(alone)->parent == 0);
}

TEST_CASE("a run is known by its launcher's name for it, else by the process that started it") {
  const auto job = [](Variables more) {
    more.insert({{"RANK", "0"}, {"WORLD_SIZE", "2"}});
    return world_of(more)->job;
  };
  CHECK(job({{"TORCHELASTIC_RUN_ID", "abc"}}) == "torchrun TORCHELASTIC_RUN_ID=abc");
  CHECK(job({{"TORCHELASTIC_RUN_ID", "none"}, {"MASTER_PORT", "29500"}}) ==
        "torchrun MASTER_PORT=29500");
  CHECK(job({{"MASTER_PORT", "1"}}) != job({{"MASTER_PORT", "2"}}));
  CHECK(job({}).find("torchrun parent=") == 0);
  CHECK(world_of({{"SLURM_PROCID", "1"},
                  {"SLURM_NTASKS", "2"},
                  {"SLURM_JOB_ID", "17"},
                  {"SLURM_STEP_ID", "0"}})
            ->job == "SLURM SLURM_JOB_ID=17 SLURM_STEP_ID=0");
}

}  // namespace
}  // namespace dpt
