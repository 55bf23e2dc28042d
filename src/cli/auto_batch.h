// Replaces `data.batch_size: auto` by a number before a run starts.
#pragma once

#include <optional>
#include <string>

#include "cli/spec_argument.h"
#include "comm/rendezvous.h"

namespace dpt::commands {

// The same spec with a number for `auto`, as if it were given on the command line; specs without
// `auto` as they are. resume: the argument of --resume; a run that is continued keeps its batch
// size. Otherwise measures some sizes in child processes for about ten seconds, and prints the
// choice. Throws Error{spec} on ranks of a launcher, which would each choose for themselves, and
// Error if no batch size runs. REQUIRES: called from a single-threaded process.
LoadedSpec with_chosen_batch(LoadedSpec loaded, SpecArgument argument, const std::string& resume,
                             const std::optional<World>& world);

}  // namespace dpt::commands
