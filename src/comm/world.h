// World: which rank this process is, when torchrun, srun or mpirun started it.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace dpt {

struct World {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // among the ranks of this machine
  int local_size = 1;
  std::string job;       // what all ranks of the run, and no others, have in common
  std::string launcher;  // "torchrun", "Open MPI", "MPI (PMI)", "SLURM": for messages
  // The launcher's process that started this rank, whose end ends the run; 0: it does not, since
  // DPTRAIN_OUTLIVE_LAUNCHER=1 asks for it or a shell has set RANK and WORLD_SIZE by itself.
  int parent = 0;
};

// The value of an environment variable; null: not set.
using Environment = std::function<const char*(const char* name)>;

// Reads, in this order:
//   torchrun   RANK WORLD_SIZE, LOCAL_RANK LOCAL_WORLD_SIZE
//   Open MPI   OMPI_COMM_WORLD_RANK _SIZE _LOCAL_RANK _LOCAL_SIZE
//   MPICH ...  PMI_RANK PMI_SIZE, MPI_LOCALRANKID MPI_LOCALNRANKS; srun sets the first two as well,
//              so only without SLURM_PROCID or with MPI_LOCALRANKID
//   SLURM      SLURM_PROCID SLURM_NTASKS SLURM_LOCALID, SLURM_NNODES; nothing when
//              SLURM_NTASKS is 1 or SLURM_JOB_NAME is bash or interactive (as Lightning), where
//              nobody started ranks, or when neither SLURM_NTASKS nor SLURM_STEP_ID, which srun
//              sets, is there
// nullopt: none of them; dptrain starts its own ranks.
// Errors: Error{spec}, with the names of the variables, when they are set by half, are no numbers,
// contradict each other, or spread the ranks over several machines, and in a batch script of
// several tasks that were not started with srun.
std::optional<World> world_from_environment(const Environment& get);
std::optional<World> world_from_environment();  // this process's own

}  // namespace dpt
