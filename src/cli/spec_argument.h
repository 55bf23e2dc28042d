// SPEC [key=value ...]: what most commands begin with.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "session/session.h"
#include "spec/spec.h"

namespace dpt {

// Thrown with all complaints about a spec, rendered; exit code 2.
struct BadSpec {
  std::string text;
};

struct SpecArgument {
  std::string path;
  std::vector<std::string> overrides;
  void add_to(Arguments& arguments);
};

struct LoadedSpec {
  std::vector<std::unique_ptr<SourceFile>> files;  // places in the spec point into them
  Node tree;
  Spec spec;
};

// The file that a SPEC means: `path` itself, or, for configs/NAME.yaml that does not exist, the
// config of that name that is installed with the program, which standard error then names.
std::string find_spec(const std::string& path);

// Reads what find_spec() finds, overrides and checks. Throws BadSpec.
LoadedSpec load(const SpecArgument& argument);

// The session of a spec. Throws BadSpec where shapes or settings do not fit.
std::unique_ptr<Session> open_session(const LoadedSpec& loaded, const SessionQuery& query);

// runs/NAME, in which each run has a number (train/run_directories.h), or `out`.
std::string run_folder(const Spec& spec);

// The run that a user means by a directory: newest_run(), which is printed where it is another.
std::string named_run(const std::string& directory);

}  // namespace dpt
