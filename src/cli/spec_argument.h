// The arguments SPEC [key=value ...] that most commands take.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "session/session.h"
#include "spec/spec.h"

namespace dpt {

// Thrown with the rendered text of all errors in a spec; exit code 2.
struct BadSpec {
  std::string text;
};

struct SpecArgument {
  std::string path;
  std::vector<std::string> overrides;
  // also: what else SPEC takes; more: what else its overrides take.
  void add_to(Arguments& arguments, const std::string& help = "a YAML file; see configs/",
              unsigned also = 0, unsigned more = 0);
};

struct LoadedSpec {
  std::vector<std::unique_ptr<SourceFile>> files;  // the locations in `spec` point into these
  Node tree;
  Spec spec;
};

// The file that a SPEC means: `path` itself, or, for configs/NAME.yaml that does not exist, the
// config of that name that is installed with the program, which standard error then names.
std::string find_spec(const std::string& path);

// Reads the spec that find_spec() finds, applies the overrides, checks the result. Throws BadSpec.
LoadedSpec load(const SpecArgument& argument);

// Throws Error{spec} if a command would write its output over a file of the spec or one that the
// spec names, such as its data.
void refuse_overwriting(const std::string& output, const LoadedSpec& loaded);

// Replaces `data.batch_size: auto` by a number. Returns whether the spec had it.
bool assume_batch_size(Spec& spec);

// Opens the session of a spec. Throws BadSpec if shapes or settings do not fit. Assumes and prints
// a batch size for `auto`, which runs replace before (cli/auto_batch.h).
std::unique_ptr<const Session> open_session(const LoadedSpec& loaded, const SessionQuery& query);

// The folder of a spec's runs: `out`, or runs/NAME, in which runs are numbered
// (train/run_directories.h).
std::string run_folder(const Spec& spec);

// The run that a user means by a directory: its newest_run(), whose path is printed if it differs.
std::string named_run(const std::string& directory);

}  // namespace dpt
