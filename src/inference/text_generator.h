// Continues a text with a language model, one character at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/generator.h"
#include "data/sample_form.h"
#include "inference/trained_model.h"
#include "spec/spec.h"

namespace dpt {

// How the next token is drawn from the model's scores.
struct Sampling {
  double temperature = 1;  // scores are divided by it; 0: the most probable token
  int64_t top_k = 0;       // only the most probable ones are drawn; 0: all
};

// Draws an index by probabilities softmax(scores / temperature): one double of the generator, none
// if the temperature is 0. Equal scores count in the order of their indices. Throws Error{diverged}
// if a score is not finite.
size_t draw_token(std::span<const float> scores, const Sampling& sampling, Generator& generator);

class TextGenerator {
 public:
  // The model may have more tokens than the text has characters (a vocabulary padded to 64, say):
  // these are never drawn. Throws Error{spec} if the model was not trained on text, or does not
  // output scores of the next character for each position. All references must outlive it.
  TextGenerator(const Spec& spec, const SampleForm& form, TrainedModel& model);

  // The tokens of a text. Throws Error{spec} for a byte that the training text does not contain.
  std::vector<int32_t> tokens_of(std::string_view text) const;

  // Calls `next` for `count` characters that follow the prompt. The model sees at most as many
  // characters as a training sample has, the latest. Where there are fewer, others follow them,
  // which the position of the last one does not depend on if the model is causal. An empty prompt
  // is a line break, or else the first character of the vocabulary.
  void run(std::string_view prompt, int64_t count, const Sampling& sampling, Generator& generator,
           const std::function<void(char)>& next);

 private:
  const std::vector<float>& scores_after(std::span<const int32_t> tokens);

  const SampleForm& form_;
  TrainedModel& model_;
  bool scores_last_ = false;  // [positions, vocabulary], otherwise [vocabulary, positions]
  size_t vocabulary_ = 0;     // tokens of the model, at least those of the form
  std::vector<int32_t> input_;
  std::vector<float> output_, scores_;
};

}  // namespace dpt
