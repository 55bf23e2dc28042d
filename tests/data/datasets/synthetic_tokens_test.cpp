#include "base/generator.h"
#include "loading.h"

namespace dpt {
namespace {

TEST_CASE("synthetic_tokens: classes are the tokens that follow") {
  const Dataset d = load("synthetic_tokens", "{samples: 50, length: 4, vocabulary: 30, seed: 2}");
  CHECK(d.inputs.desc == TensorDesc{DType::i32, {50, 4}});
  CHECK(d.targets.desc == TensorDesc{DType::i32, {50}});
  CHECK(d.classes == 30);
  Generator g(3);  // torch.randint(0, 30, (50, 4)) of a generator with seed 2 + 1
  for (const int32_t token : values_of<int32_t>(d.inputs)) CHECK(token == g.randint(0, 30));
  for (size_t n = 0; n < 50; ++n)
    CHECK(values_of<int32_t>(d.targets)[n] ==
          (31 * values_of<int32_t>(d.inputs)[4 * n + 3] + 17) % 30);
}

TEST_CASE("synthetic_tokens: next is what follows each token") {
  const Dataset d =
      load("synthetic_tokens", "{samples: 5, length: 4, vocabulary: 30, targets: next}");
  CHECK(d.targets.desc == TensorDesc{DType::i32, {5, 4}});
  CHECK(d.classes == 30);
  CHECK(d.tokens == 30);
  for (size_t i = 0; i < 20; ++i)
    CHECK(values_of<int32_t>(d.targets)[i] == (31 * values_of<int32_t>(d.inputs)[i] + 17) % 30);
}

TEST_CASE("synthetic_tokens: values belong to each token") {
  const std::string yaml =
      "{samples: 40, length: 3, vocabulary: 5, targets: values, out_features: 2}";
  const Dataset train = load("synthetic_tokens", yaml),
                test = load("synthetic_tokens", yaml, Split::test);
  CHECK(train.targets.desc == TensorDesc{DType::f32, {40, 3, 2}});
  CHECK(train.classes == 0);
  Generator g(0);
  std::vector<float> of_token(10);
  g.normal_(of_token, 0, 1);
  for (const Dataset& d : {train, test})
    for (size_t i = 0; i < static_cast<size_t>(d.inputs.desc.shape.elements()); ++i)
      for (size_t k = 0; k < 2; ++k)
        CHECK(values_of<float>(d.targets)[2 * i + k] ==
              of_token[2 * static_cast<size_t>(values_of<int32_t>(d.inputs)[i]) + k]);
  CHECK(!same(train.inputs,
              load("synthetic_tokens", "{length: 3, vocabulary: 5, test_samples: 40}", Split::test)
                  .inputs));
}

TEST_CASE("synthetic_tokens: length 0 is one token without an extent") {
  const Dataset d =
      load("synthetic_tokens", "{samples: 6, length: 0, targets: values, out_features: 10}");
  CHECK(d.inputs.desc == TensorDesc{DType::i32, {6}});
  CHECK(d.targets.desc == TensorDesc{DType::f32, {6, 10}});
  CHECK(load("synthetic_tokens", "{samples: 6, length: 0}").targets.desc ==
        TensorDesc{DType::i32, {6}});
}

TEST_CASE("synthetic_tokens: Python lines") {
  CHECK(torch_data_of("synthetic_tokens", "{samples: 6, length: 3, vocabulary: 9}") ==
        "g = torch.Generator().manual_seed(1)\n"
        "x = torch.randint(0, 9, (6, 3), generator=g)\n"
        "y = (31 * x[:, -1] + 17) % 9\n");
  CHECK(has(torch_data_of("synthetic_tokens", "{length: 3, vocabulary: 9, targets: next}"),
            "y = (31 * x + 17) % 9\n"));
  CHECK(torch_data_of("synthetic_tokens",
                      "{samples: 6, length: 0, vocabulary: 9, targets: values, out_features: 2}") ==
        "g = torch.Generator().manual_seed(1)\n"
        "x = torch.randint(0, 9, (6,), generator=g)\n"
        "g = torch.Generator().manual_seed(0)\n"
        "y = torch.randn(9, 2, generator=g)[x]\n");
}

}  // namespace
}  // namespace dpt
