#include "inference/text_generator.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/fail.h"
#include "layers/model.h"

namespace dpt {

size_t draw_token(std::span<const float> scores, const Sampling& sampling, Generator& generator) {
  for (const float s : scores)
    if (!std::isfinite(s)) fail(Fault::diverged, "the model's scores are not finite");
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  if (sampling.temperature == 0) return order[0];
  if (sampling.top_k > 0) order.resize(std::min(order.size(), static_cast<size_t>(sampling.top_k)));
  std::vector<double> sums;
  double sum = 0;
  for (const size_t i : order) {
    const auto below = static_cast<double>(scores[i]) - static_cast<double>(scores[order[0]]);
    sums.push_back(sum += std::exp(below / sampling.temperature));
  }
  const double drawn = generator.next_double() * sum;
  const auto at = std::ranges::upper_bound(sums, drawn) - sums.begin();
  return order[std::min(static_cast<size_t>(at), order.size() - 1)];
}

TextGenerator::TextGenerator(const Spec& spec, const SampleForm& form, TrainedModel& model)
    : form_(form), model_(model) {
  const Shape& output = model.output();
  if (form.characters.empty() || form.stored.shape.rank() != 1)
    fail(Fault::spec,
         "the run was not trained on text; `generate` is for runs of tiny_shakespeare and text");
  const int64_t positions = form.stored.shape[0];
  scores_last_ = class_dim_of(spec, Shape{1, positions, form.tokens}) == 2;
  const Shape wanted = scores_last_ ? Shape{positions, form.tokens} : Shape{form.tokens, positions};
  const int token_dim = scores_last_ ? 1 : 0;
  if (output.rank() != 2 || output[1 - token_dim] != positions || output[token_dim] < form.tokens)
    fail(Fault::spec,
         "the model outputs {} for a sample, where {} would be scores of the next character for "
         "each position",
         output.str(), wanted.str());
  vocabulary_ = static_cast<size_t>(output[token_dim]);
}

std::vector<int32_t> TextGenerator::tokens_of(std::string_view text) const {
  std::vector<int32_t> out;
  for (const char c : text) {
    const size_t token = form_.characters.find(c);
    if (token == std::string::npos)
      fail(Fault::spec,
           "the prompt has the byte 0x{:02x} ('{}'), which the training text does not contain",
           static_cast<unsigned char>(c), c >= ' ' && c <= '~' ? c : '?');
    out.push_back(static_cast<int32_t>(token));
  }
  return out;
}

const std::vector<float>& TextGenerator::scores_after(std::span<const int32_t> tokens) {
  const auto window = static_cast<size_t>(form_.stored.shape[0]);
  input_.assign(window, 0);
  std::ranges::copy(tokens, input_.begin());
  output_.resize(window * vocabulary_);
  scores_.resize(static_cast<size_t>(form_.tokens));  // others stand for no character
  model_.run_one(std::as_bytes(std::span(input_)), output_);
  const size_t position = tokens.size() - 1;
  for (size_t i = 0; i < scores_.size(); ++i)
    scores_[i] = output_[scores_last_ ? position * vocabulary_ + i : i * window + position];
  return scores_;
}

void TextGenerator::run(std::string_view prompt, int64_t count, const Sampling& sampling,
                        Generator& generator, const std::function<void(char)>& next) {
  const auto window = static_cast<size_t>(form_.stored.shape[0]);
  std::vector<int32_t> tokens = tokens_of(prompt);
  if (tokens.empty()) {
    const size_t line_break = form_.characters.find('\n');
    tokens.push_back(line_break == std::string::npos ? 0 : static_cast<int32_t>(line_break));
  }
  for (int64_t i = 0; i < count; ++i) {
    if (tokens.size() > window)
      tokens.erase(tokens.begin(), tokens.end() - static_cast<std::ptrdiff_t>(window));
    const size_t token = draw_token(scores_after(tokens), sampling, generator);
    tokens.push_back(static_cast<int32_t>(token));
    next(form_.characters[token]);
  }
}

}  // namespace dpt
