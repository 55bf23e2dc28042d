// dptrain explain WORD: explains a word of the spec language, its keys and their defaults.
#include <fmt/format.h>

#include "base/stdout.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/spec_argument.h"
#include "spec/schema.h"

namespace dpt::commands {
namespace {

struct ExplainArguments {
  std::string word;
};

void declare_explain(Arguments& arguments, ExplainArguments& given) {
  arguments.about("Explains a word of the spec language: a layer, loss, optimizer, key, ...");
  arguments.required("WORD", given.word, {.words = known_words(registries())},
                     "linear, adam, cross_entropy, ddp, data, ...");
}

int run_explain(ExplainArguments& given) {
  const Registries registries_of_spec = registries();
  const std::string text = explain(registries_of_spec, given.word);
  if (!text.empty()) {
    print_stdout("{}", text);
    return 0;
  }
  const std::string near = nearest_word(registries_of_spec, given.word);
  throw BadSpec{near.empty()
                    ? fmt::format("dptrain: the spec language has no '{}'; `dptrain schema "
                                  "--markdown` lists all words\n",
                                  given.word)
                    : fmt::format("dptrain: the spec language has no '{}'; did you mean "
                                  "'{}'?\n",
                                  given.word, near)};
}

}  // namespace

Command explain() {
  return make_command("explain", "explain a word of the spec language", declare_explain,
                      run_explain);
}

}  // namespace dpt::commands
