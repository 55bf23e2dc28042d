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
       {"SLURM started 5 ranks, 3 of them on this machine"}},
      {{{"RANK", "1"}, {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "2"}},
       {"4 ranks, 2 of them on this machine", "several machines"}},
      {{{"SLURM_PROCID", "1"},
        {"SLURM_NTASKS", "4"},
        {"SLURM_NNODES", "2"},
        {"SLURM_STEP_ID", "0"}},
       {"SLURM started 4 ranks", "several machines"}},
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
