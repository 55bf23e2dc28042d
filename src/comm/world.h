// World: this process's rank if torchrun, srun or mpirun started it, on one machine or several.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace dpt {

// Where the hosts of a run find host 0, the one that has rank 0.
struct Master {
  std::string host;  // a name or a numeric address; "": nobody says
  int port = 0;
  // torchrun's agent listens there itself: host 0 publishes its address in the agent's TCPStore.
  bool is_store = false;
  std::string source;  // the variables that say so, for messages: "MASTER_ADDR and MASTER_PORT"
};

struct World {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // among the ranks on this machine
  int local_size = 1;
  std::string job;       // identifies the run: equal in its ranks, and only in these
  std::string launcher;  // "torchrun", "Open MPI", "MPI (PMI)", "SLURM", for messages
  // Pid of the launcher's process that started this rank; the run ends with it. 0: the run may
  // outlive it, because of DPTRAIN_OUTLIVE_LAUNCHER=1, or because a shell set RANK and WORLD_SIZE
  // itself.
  int parent = 0;

  // The fields below are set for runs on several hosts only.
  int host = -1;       // index of this host; -1: the launcher does not say
  std::string run_id;  // identifies the run: equal on its hosts
  Master master;
  // DPTRAIN_NODE: this process pretends to be on a host of its own, with this index and the address
  // 127.0.0.(index + 1). For tests of several hosts on one machine. -1: no.
  int pretended_host = -1;
  // Of local_world(), for messages: the number of its rank 0 among the ranks of the run, and how
  // many these are (0: `size`).
  int number_of_first = 0;
  int ranks_of_run = 0;

  bool has_several_hosts() const { return local_size != size; }
  // The ranks of a host are consecutive; this is the lowest one.
  int first_rank() const { return rank - local_rank; }
  int number(int of_rank) const { return number_of_first + of_rank; }
  int all_ranks() const { return ranks_of_run > 0 ? ranks_of_run : size; }
};

// The world of the ranks of this host alone, in which they connect (comm/rendezvous.h): ranks are
// counted from 0 on each host. For one host it is `world` itself.
World local_world(const World& world);

// Returns the value of an environment variable; null: not set.
using Environment = std::function<const char*(const char* name)>;

// Reads, in this order:
//   torchrun   RANK WORLD_SIZE, LOCAL_RANK LOCAL_WORLD_SIZE, GROUP_RANK
//   Open MPI   OMPI_COMM_WORLD_RANK _SIZE _LOCAL_RANK _LOCAL_SIZE
//   MPICH ...  PMI_RANK PMI_SIZE, MPI_LOCALRANKID MPI_LOCALNRANKS. srun sets the first two as well,
//              so they count only without SLURM_PROCID or with MPI_LOCALRANKID.
//   SLURM      SLURM_PROCID SLURM_NTASKS SLURM_LOCALID, SLURM_NODEID, SLURM_STEP_TASKS_PER_NODE.
//              Ignored if SLURM_NTASKS is 1 or SLURM_JOB_NAME is bash or interactive (as in
//              Lightning), since no ranks were started then, or if neither SLURM_NTASKS nor
//              SLURM_STEP_ID, which srun sets, is there.
// The master of several hosts comes from, in this order:
//   DPTRAIN_MASTER           "host:port", "[fd00::2]:port"
//   MASTER_ADDR MASTER_PORT  the port is 29500 if it is not set. With
//                            TORCHELASTIC_USE_AGENT_STORE=True torchrun's agent owns the port.
//   DPTRAIN_NODE             127.0.0.1
//   SLURM_STEP_NODELIST      its first host, and a port that follows from the job and step
// nullopt: none of them; dptrain starts its own ranks. Throws Error{spec}, naming the variables, if
// some are missing, are no numbers or contradict each other, if the ranks of a host are known not
// to be consecutive, and in a batch script with several tasks that were not started by srun.
std::optional<World> world_from_environment(const Environment& get);
std::optional<World> world_from_environment();  // of this process

}  // namespace dpt
