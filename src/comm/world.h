// World: this process's rank if torchrun, srun or mpirun started it.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace dpt {

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
};

// Returns the value of an environment variable; null: not set.
using Environment = std::function<const char*(const char* name)>;

// Reads, in this order:
//   torchrun   RANK WORLD_SIZE, LOCAL_RANK LOCAL_WORLD_SIZE
//   Open MPI   OMPI_COMM_WORLD_RANK _SIZE _LOCAL_RANK _LOCAL_SIZE
//   MPICH ...  PMI_RANK PMI_SIZE, MPI_LOCALRANKID MPI_LOCALNRANKS. srun sets the first two as well,
//              so they count only without SLURM_PROCID or with MPI_LOCALRANKID.
//   SLURM      SLURM_PROCID SLURM_NTASKS SLURM_LOCALID, SLURM_NNODES. Ignored if SLURM_NTASKS is 1
//   or
//              SLURM_JOB_NAME is bash or interactive (as in Lightning), since no ranks were started
//              then, or if neither SLURM_NTASKS nor SLURM_STEP_ID, which srun sets, is there.
// nullopt: none of them; dptrain starts its own ranks. Throws Error{spec}, naming the variables, if
// some are missing, are no numbers, contradict each other, or describe ranks on several machines,
// and in a batch script with several tasks that were not started by srun.
std::optional<World> world_from_environment(const Environment& get);
std::optional<World> world_from_environment();  // of this process

}  // namespace dpt
