// dptrain explain WORD: explains a word of the spec language, its keys and their defaults.
#include <fmt/format.h>

#include "base/stdout.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/spec_argument.h"
#include "spec/schema.h"

namespace dpt::commands {
namespace {

int run_explain(const std::vector<std::string>& words) {
  Arguments arguments("explain",
                      "Explains a word of the spec language: a layer, loss, optimizer, key, ...");
  std::string word;
  arguments.required("WORD", word, "linear, adam, cross_entropy, ddp, data, ...");
  arguments.parse(words);
  const Registries registries_of_spec = registries();
  const std::string text = explain(registries_of_spec, word);
  if (!text.empty()) {
    print_stdout("{}", text);
    return 0;
  }
  const std::string near = nearest_word(registries_of_spec, word);
  throw BadSpec{near.empty()
                    ? fmt::format("dptrain: the spec language has no '{}'; `dptrain schema "
                                  "--markdown` lists all words\n",
                                  word)
                    : fmt::format("dptrain: the spec language has no '{}'; did you mean "
                                  "'{}'?\n",
                                  word, near)};
}

}  // namespace

Command explain() {
  return {.name = "explain", .summary = "explain a word of the spec language", .run = run_explain};
}

}  // namespace dpt::commands
