// dptrain generate RUN: text from a language model.
#include "base/stdout.h"
#include "base/utf8.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/trained_run.h"
#include "inference/text_generator.h"

namespace dpt::commands {
namespace {

// Prints characters as soon as all their bytes are there.
class CharacterStream {
 public:
  void add(char byte) {
    constexpr size_t kLongest = 4;  // bytes of a character in UTF-8
    pending_ += byte;
    if (utf8_length(pending_) == pending_.size() || pending_.size() == kLongest) flush();
  }
  void flush() {
    print_stdout("{}", pending_);
    pending_.clear();
  }

 private:
  std::string pending_;
};

struct GenerateArguments {
  TrainedRunArgument run;
  std::string prompt;
  int count = 500, top_k = 0, seed = 0;
  double temperature = 1;
};

void declare_generate(Arguments& arguments, GenerateArguments& given) {
  arguments.about("Continues a text with a language model that was trained on characters.");
  given.run.add_to(arguments);
  arguments.text("--prompt TEXT", given.prompt, {}, "text to continue; default: a line break");
  arguments.number("--tokens N", given.count, 1, 1000000, "number of characters to generate");
  arguments.number("--temperature T", given.temperature, 0, 100,
                   "below 1: more probable characters; 0: always the most probable one");
  arguments.number("--top-k K", given.top_k, 0, 1000000,
                   "draw only from the K most probable characters; 0: from all");
  arguments.number("--seed N", given.seed, 0, 2147483647,
                   "seed of the random numbers; equal seeds give equal texts");
}

int run_generate(GenerateArguments& given) {
  const TrainedRun run = load(given.run);
  const SampleForm form = sample_form(run);
  TrainedModel model(run.loaded.spec, form.stored, run.weights);
  TextGenerator text(run.loaded.spec, form, model);
  Generator generator(static_cast<uint64_t>(given.seed));
  text.tokens_of(given.prompt);  // refuses it before anything is printed
  print_stdout("{}", given.prompt);
  CharacterStream stream;
  text.run(given.prompt, given.count, {.temperature = given.temperature, .top_k = given.top_k},
           generator, [&](char c) { stream.add(c); });
  stream.flush();
  print_stdout("\n");
  return 0;
}

}  // namespace

Command generate() {
  return make_command("generate", "text from a language model", declare_generate, run_generate);
}

}  // namespace dpt::commands
