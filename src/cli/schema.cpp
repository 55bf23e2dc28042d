// dptrain schema: the spec language for editors (JSON Schema) and for readers (Markdown).
#include "spec/schema.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/spec_argument.h"

namespace dpt::commands {
namespace {

int run_schema(const std::vector<std::string>& words) {
  CLI::App app("Prints the JSON Schema of the spec language.", "dptrain schema");
  bool markdown = false;
  app.add_flag("--markdown", markdown, "a reference page for people instead");
  parse(app, words);
  fmt::print("{}", markdown ? reference_page(vocabulary()) : json_schema(vocabulary()));
  return 0;
}

}  // namespace

Command schema() {
  return {"schema", "print the JSON Schema of specs, or a reference page", run_schema};
}

}  // namespace dpt::commands
