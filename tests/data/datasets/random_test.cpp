#include <bit>

#include "loading.h"

namespace dpt {
namespace {

TEST_CASE("random: torch.randn of one generator, inputs first") {
  // torch.randn(4, 4) and the same 16 numbers whatever their shape, seed 0: see generator_test.cpp.
  const Dataset d = load("random", "{samples: 4, in_features: 4, out_features: 1}");
  CHECK(d.inputs.desc == TensorDesc{DType::f32, {4, 4}});
  CHECK(d.targets.desc == TensorDesc{DType::f32, {4, 1}});
  CHECK(std::bit_cast<uint32_t>(all_of<float>(d.inputs)[0]) == 0xbf901b85);
  CHECK(std::bit_cast<uint32_t>(all_of<float>(d.inputs)[15]) == 0xbe7d367c);
  CHECK(d.classes == 0);
  CHECK(d.description == "random: 4 x [4] f32, targets [1] f32");
}

TEST_CASE("random: a short tensor leaves its sine for the next") {
  // torch.randn(3) then torch.randn(2), seed 0.
  const Dataset d = load("random", "{samples: 1, in_features: 3, out_features: 2}");
  CHECK(std::bit_cast<uint32_t>(all_of<float>(d.inputs)[2]) == 0xc00b7149);
  CHECK(std::bit_cast<uint32_t>(all_of<float>(d.targets)[0]) == 0x3f1184b6);
}

TEST_CASE("random: the seed decides, and the splits differ") {
  CHECK(same(load("random", "{seed: 3}").inputs, load("random", "{seed: 3}").inputs));
  CHECK(!same(load("random", "{seed: 3}").inputs, load("random", "{seed: 4}").inputs));
  CHECK(same(load("random", "{seed: 3}", Split::test).inputs, load("random", "{seed: 4}").inputs));
  CHECK(load("random", "{test_samples: 7}", Split::test).size() == 7);
}

TEST_CASE("random: Python lines") {
  CHECK(torch_data_of("random", "{samples: 30, in_features: 5, out_features: 2, seed: 9}") ==
        "g = torch.Generator().manual_seed(9)\n"
        "x = torch.randn(30, 5, generator=g)\n"
        "y = torch.randn(30, 2, generator=g)\n");
}

}  // namespace
}  // namespace dpt
