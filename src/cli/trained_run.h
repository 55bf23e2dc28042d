// The arguments RUN and --weights of commands that use trained weights.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/spec_argument.h"
#include "data/sample_form.h"

namespace dpt {

// The weights that a user means: `word`, if it is a file; those of the run directory that `word`
// or, if it is empty, the spec names: the best ones if the run kept them, else the last ones;
// `best` or `last` of the spec's run. run: the directory of the run; empty: the newest one of the
// spec. Throws Error{data} if the file does not exist.
std::string trained_weights(const Spec& spec, const std::string& word, const std::string& run = "");

// Help texts of RUN and --weights.
inline constexpr const char* kRunOrSpec =
    "run directory, such as runs/NAME or runs/NAME/3, NAME for runs/NAME, or a spec, whose newest "
    "run is used; default: the newest run in runs/";
inline constexpr const char* kRunWeights =
    "a file of safetensors or torch.save, a run directory, or `best` or `last` weights of the run; "
    "default: its best weights if it kept them (`save.best`), else its last ones";

struct TrainedRunArgument {
  std::string run, weights;
  std::vector<std::string> overrides;  // empty for commands that take none
  void add_to(Arguments& arguments);   // RUN, --weights
};

struct TrainedRun {
  LoadedSpec loaded;
  std::string folder;   // the run directory; empty: RUN is a spec
  std::string weights;  // the file
};

// RUN is a run directory, a directory of runs, NAME for runs/NAME, or a spec whose newest run is
// meant; empty: the newest run below runs/. Says on standard error which weights it takes. Throws
// Error{data} and BadSpec.
TrainedRun load(const TrainedRunArgument& argument);

// What the weights were trained with: data.json of their run directory, or of `run.folder` if they
// are in none. Empty: there is none.
std::optional<SampleForm> fitted_form(const TrainedRun& run);

// What the run's samples look like: by its data.json, or else by its training data, which is
// loaded. Throws Error{data} if it is missing.
SampleForm sample_form(const TrainedRun& run);

// Whether a user means a run and not a file: an existing directory, or NAME for runs/NAME.
bool names_run(const std::string& given);

}  // namespace dpt
