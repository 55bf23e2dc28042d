#include "inference/text_generator.h"

#include <cmath>
#include <limits>

#include "inference/trained.h"

namespace dpt {
namespace {

constexpr const char* kLoss = "{cross_entropy: {class_dim: -1}}";

SampleForm text_form(const std::string& characters, int64_t window) {
  SampleForm out;
  out.stored = out.target = {DType::i32, {window}};
  out.tokens = out.classes = std::ssize(characters);
  out.characters = characters;
  return out;
}

// A model whose scores of each position are a row of this table.
struct Bigram {
  Folder folder;
  LoadedText text{with_model("[{embedding: {num_embeddings: 3, embedding_dim: 3}}]", kLoss)};
  SampleForm form = text_form("abc", 4);
  std::unique_ptr<TrainedModel> model;

  explicit Bigram(const std::vector<float>& rows) {
    const NamedTensor weight{
        "0.weight", {DType::f32, {3, 3}}, reinterpret_cast<const std::byte*>(rows.data())};
    write_safetensors(folder.file("w"), {&weight, 1});
    model = std::make_unique<TrainedModel>(text.spec, form.stored, folder.file("w"));
  }
  std::string run(const std::string& prompt, int64_t count, const Sampling& sampling,
                  uint64_t seed = 1) {
    TextGenerator generator(text.spec, form, *model);
    Generator random(seed);
    std::string out;
    generator.run(prompt, count, sampling, random, [&](char c) { out += c; });
    return out;
  }
};

}  // namespace

TEST_CASE("tokens are drawn by the softmax of their scores") {
  Generator random(3);
  const float scores[] = {std::log(1.0F), std::log(6.0F), std::log(3.0F)};
  int counts[3] = {};
  for (int i = 0; i < 10000; ++i) ++counts[draw_token(scores, {}, random)];
  // The standard deviation of a count is below 50.
  CHECK(std::abs(counts[0] - 1000) < 250);
  CHECK(std::abs(counts[1] - 6000) < 250);
  CHECK(std::abs(counts[2] - 3000) < 250);
  int top[3] = {};
  for (int i = 0; i < 10000; ++i) ++top[draw_token(scores, {.top_k = 2}, random)];
  CHECK(top[0] == 0);
  CHECK(std::abs(top[2] - 3333) < 250);
  // Divided by 1/2, scores count twice: 36 to 9 to 1.
  int cold[3] = {};
  for (int i = 0; i < 10000; ++i) ++cold[draw_token(scores, {.temperature = 0.5}, random)];
  CHECK(std::abs(cold[1] - 7826) < 250);
  for (int i = 0; i < 100; ++i) CHECK(draw_token(scores, {.temperature = 0}, random) == 1);
  const float equal[] = {1, 2, 2};
  CHECK(draw_token(equal, {.temperature = 0}, random) == 1);
  const float broken[] = {1, std::numeric_limits<float>::infinity()};
  CHECK(has(error_of(Fault::diverged, [&] { draw_token(broken, {}, random); }), "not finite"));
}

TEST_CASE("a text goes on with the most probable characters, beyond the window") {
  Bigram table({0, 9, 0, 0, 0, 9, 9, 0, 0});  // after a comes b, then c, then a
  CHECK(table.run("a", 7, {.temperature = 0}) == "bcabcab");
  CHECK(table.run("", 3, {.temperature = 0}) == "bca");
  CHECK(table.run("abcabc", 2, {.temperature = 0}) == "ab");
  const std::string one = table.run("a", 50, {.temperature = 5}, 1);
  CHECK(one == table.run("a", 50, {.temperature = 5}, 1));
  CHECK(one != table.run("a", 50, {.temperature = 5}, 2));
}

TEST_CASE("tokens beyond the text's characters are never drawn") {
  // The model has a third token, the most probable one everywhere; the text has two characters.
  Bigram table({0, 1, 9, 1, 0, 9, 0, 0, 9});
  table.form = text_form("ab", 4);
  CHECK(table.run("a", 4, {.temperature = 0}) == "baba");
  const std::string drawn = table.run("a", 100, {.temperature = 5});
  CHECK(drawn.find_first_not_of("ab") == drawn.npos);
}

TEST_CASE("the last character decides, wherever the window ends") {
  // Scores are position-wise, so padding behind a short prompt must not matter.
  Bigram table({0, 0, 9, 9, 0, 0, 0, 9, 0});
  for (const std::string prompt : {"a", "ba", "cba", "acba", "bacba"})
    CHECK(table.run(prompt, 1, {.temperature = 0}) == "c");
}

TEST_CASE("what is no language model, and prompts of other characters, are refused") {
  Bigram table({0, 9, 0, 0, 0, 9, 9, 0, 0});
  CHECK(error_of(Fault::spec, [&] { table.run("ax", 1, {}); }) ==
        "the prompt has the byte 0x78 ('x'), which the training text does not contain");
  SampleForm other = table.form;
  other.characters.clear();
  CHECK(has(error_of(Fault::spec, [&] { TextGenerator(table.text.spec, other, *table.model); }),
            "the run was not trained on text"));
  other = text_form("abcd", 4);
  CHECK(error_of(Fault::spec, [&] { TextGenerator(table.text.spec, other, *table.model); }) ==
        "the model outputs [4, 3] for a sample, where [4, 4] would be scores of the next character "
        "for each position");
}

}  // namespace dpt
