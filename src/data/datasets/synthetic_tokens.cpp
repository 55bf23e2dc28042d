#include <algorithm>

#include <fmt/format.h>

#include "base/generator.h"
#include "data/tables.h"

namespace dpt::datasets {
namespace {

// Uniformly random tokens i32 [N, T], or [N] if length is 0. The targets are one of:
// - classes: the successor of the last token, (31 * last + 17) mod vocabulary, i32 [N]
// - next: the successor of each token, i32 [N, T] or [N]
// - values: fixed normal numbers for each token, f32 [N, T, out_features] or [N, out_features],
//   which an Embedding can memorize
struct Tokens {
  static constexpr Usage kUsage{
      "",
      "dataset: {synthetic_tokens: {samples: 1000, length: 16, vocabulary: 100, targets: values,\n"
      "    out_features: 1, seed: 0, test_samples: 100}}"};

  int64_t samples = 1000, length = 8, vocabulary = 1000, out_features = 10, seed = 0,
          test_samples = 200;
  std::string targets = "classes";
  static KeyTable<Tokens> keys() {
    return KeyTable<Tokens>()
        .optional("samples", &Tokens::samples, "number of training samples", kSamples)
        .optional("length", &Tokens::length,
                  "tokens per sample, [N, length]; 0: one token per sample, [N]", kSizeOrZero)
        .optional("vocabulary", &Tokens::vocabulary, "number of different tokens",
                  Range{.text = "must be between 1 and 2^27", .low = 1, .high = 1 << 27})
        .choice("targets", &Tokens::targets, {"classes", "next", "values"},
                "classes: the token after the sample; next: the token after each token; "
                "values: real numbers for each token")
        .optional("out_features", &Tokens::out_features,
                  "real numbers per token, for `targets: values`", kSize)
        .optional("seed", &Tokens::seed, "seed of the tokens and values")
        .optional("test_samples", &Tokens::test_samples, "number of test samples", kSamples);
  }
};

struct Sizes {
  int64_t samples, seed;
};
Sizes sizes_of(const Tokens& t, Split split) {
  return split == Split::train ? Sizes{t.samples, t.seed + 1} : Sizes{t.test_samples, t.seed + 2};
}

int32_t follower(int32_t token, int64_t vocabulary) {
  return static_cast<int32_t>((31 * int64_t{token} + 17) % vocabulary);
}

// Writes the successors of all tokens, or of each sample's last token, depending on next.size().
void fill_next(const Tokens& t, std::span<const int32_t> tokens, std::span<int32_t> next) {
  const size_t step = tokens.size() / next.size();
  for (size_t i = 0; i < next.size(); ++i)
    next[i] = follower(tokens[i * step + step - 1], t.vocabulary);
}

void fill_values(const Tokens& t, std::span<const int32_t> tokens, std::span<float> values) {
  const auto width = static_cast<size_t>(t.out_features);
  const NewTable each({DType::f32, {t.vocabulary, t.out_features}});
  const std::span<float> of_token = each.as<float>();
  Generator(static_cast<uint64_t>(t.seed)).normal_(of_token, 0, 1);
  auto to = values.begin();
  for (const int32_t token : tokens)
    to = std::copy_n(
        of_token.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(token) * width), width,
        to);
}

TensorDesc target_of(const Tokens& t, int64_t samples) {
  std::vector<int64_t> extents = {samples};
  if (t.length > 0 && t.targets != "classes") extents.push_back(t.length);
  if (t.targets == "values") extents.push_back(t.out_features);
  return {t.targets == "values" ? DType::f32 : DType::i32, Shape(extents)};
}

Dataset load(const std::any& settings, const LoadQuery& query) {
  const auto& t = std::any_cast<const Tokens&>(settings);
  const auto [samples, seed] = sizes_of(t, query.split);
  NewTable inputs({DType::i32, t.length > 0 ? Shape{samples, t.length} : Shape{samples}});
  NewTable targets(target_of(t, samples));
  if (!query.sizes_only) {
    Generator g(static_cast<uint64_t>(seed));
    const std::span<int32_t> tokens = inputs.as<int32_t>();
    for (int32_t& token : tokens) token = static_cast<int32_t>(g.randint(0, t.vocabulary));
    if (t.targets == "values")
      fill_values(t, tokens, targets.as<float>());
    else
      fill_next(t, tokens, targets.as<int32_t>());
  }
  Dataset d;
  d.made = !query.sizes_only;
  d.inputs = std::move(inputs).done();
  d.targets = std::move(targets).done();
  if (t.targets != "values") d.classes = t.vocabulary;
  d.tokens = t.vocabulary;
  d.description = describe("synthetic_tokens", d, "");
  return d;
}

std::string torch(const std::any& settings, const LoadQuery& query) {
  const auto& t = std::any_cast<const Tokens&>(settings);
  const auto [samples, seed] = sizes_of(t, query.split);
  std::string text = fmt::format(
      "g = torch.Generator().manual_seed({})\n"
      "x = torch.randint(0, {}, ({},{}), generator=g)\n",
      seed, t.vocabulary, samples, t.length > 0 ? fmt::format(" {}", t.length) : "");
  if (t.targets != "values")
    return text + fmt::format("y = (31 * x{} + 17) % {}\n",
                              t.targets == "classes" && t.length > 0 ? "[:, -1]" : "",
                              t.vocabulary);
  return text + fmt::format(
                    "g = torch.Generator().manual_seed({})\n"
                    "y = torch.randn({}, {}, generator=g)[x]\n",
                    t.seed, t.vocabulary, t.out_features);
}

}  // namespace

DatasetType synthetic_tokens() {
  DatasetType t{registry_entry<Tokens>(
      "synthetic_tokens", "Random tokens with the next tokens, or real numbers, as targets.")};
  t.load = load;
  t.torch = torch;
  return t;
}

}  // namespace dpt::datasets
