// dptrain schema: prints the spec language for editors (JSON Schema) or readers (Markdown).
#include "spec/schema.h"

#include "base/stdout.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/spec_argument.h"

namespace dpt::commands {
namespace {

struct SchemaArguments {
  bool markdown = false;
};

void declare_schema(Arguments& arguments, SchemaArguments& given) {
  arguments.about("Prints the JSON Schema of the spec language.");
  arguments.flag("--markdown", given.markdown, "a reference page for people instead");
}

int run_schema(SchemaArguments& given) {
  print_stdout("{}", given.markdown ? reference_page(registries()) : json_schema(registries()));
  return 0;
}

}  // namespace

Command schema() {
  return make_command("schema", "print the JSON Schema of specs, or a reference page",
                      declare_schema, run_schema);
}

}  // namespace dpt::commands
