// dptrain explain WORD: one word of the spec language, its keys and their defaults.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/spec_argument.h"
#include "spec/schema.h"

namespace dpt::commands {
namespace {

int run_explain(const std::vector<std::string>& words) {
  CLI::App app("Explains a word of the spec language: a layer, loss, optimizer, key, ...",
               "dptrain explain");
  std::string word;
  app.add_option("WORD", word, "linear, adam, cross_entropy, ddp, data, ...")->required();
  parse(app, words);
  const Explanation e = explain(vocabulary(), word);
  if (!e.found) throw BadSpec{e.text};
  fmt::print("{}", e.text);
  return 0;
}

}  // namespace

Command explain() { return {"explain", "explain a word of the spec language", run_explain}; }

}  // namespace dpt::commands
