// dptrain schema: prints the spec language for editors (JSON Schema) or readers (Markdown).
#include "spec/schema.h"

#include "base/stdout.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/spec_argument.h"

namespace dpt::commands {
namespace {

int run_schema(const std::vector<std::string>& words) {
  Arguments arguments("schema", "Prints the JSON Schema of the spec language.");
  bool markdown = false;
  arguments.flag("--markdown", markdown, "a reference page for people instead");
  arguments.parse(words);
  print_stdout("{}", markdown ? reference_page(registries()) : json_schema(registries()));
  return 0;
}

}  // namespace

Command schema() {
  return {.name = "schema",
          .summary = "print the JSON Schema of specs, or a reference page",
          .run = run_schema};
}

}  // namespace dpt::commands
