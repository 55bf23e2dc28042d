#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "base/half.h"
#include "graph/operators/run.h"

namespace dpt {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("bf16: rounded to the nearest, ties to even") {
  CHECK(to_bf16(1.0F) == 0x3f80);
  CHECK(to_bf16(1.0F + 0x1p-8F) == 0x3f80);      // half way: to even
  CHECK(to_bf16(1.0F + 3 * 0x1p-8F) == 0x3f82);  // half way above an odd one
  CHECK(to_bf16(1.0F + 0x1p-8F + 0x1p-20F) == 0x3f81);
  CHECK(to_bf16(-0.0F) == 0x8000);
  CHECK(to_bf16(3.4e38F) == 0x7f80);  // beyond the largest
  CHECK(to_bf16(-kInfinity) == 0xff80);
  CHECK(std::isnan(from_bf16(to_bf16(std::numeric_limits<float>::quiet_NaN()))));
  for (uint32_t h = 0; h < 65536; ++h)  // what is one stays one
    if (const float x = from_bf16(static_cast<uint16_t>(h)); !std::isnan(x))
      REQUIRE(to_bf16(x) == h);
}

TEST_CASE("f16: rounded to the nearest, ties to even, with subnormals and infinity") {
  CHECK(to_f16(1.0F) == 0x3c00);
  CHECK(to_f16(65504.0F) == 0x7bff);
  CHECK(to_f16(65519.996F) == 0x7bff);
  CHECK(to_f16(65520.0F) == 0x7c00);
  CHECK(to_f16(0x1p-24F) == 0x0001);
  CHECK(to_f16(0x1p-25F) == 0x0000);  // half of the least: to even
  CHECK(to_f16(0x1p-25F + 0x1p-40F) == 0x0001);
  CHECK(to_f16(3 * 0x1p-25F) == 0x0002);
  CHECK(to_f16(0x1p-14F - 0x1p-26F) == 0x0400);  // rounds up to the least normal one
  CHECK(to_f16(1.0F + 0x1p-11F) == 0x3c00);
  CHECK(to_f16(1.0F + 3 * 0x1p-11F) == 0x3c02);
  CHECK(to_f16(-kInfinity) == 0xfc00);
  CHECK(std::isnan(from_f16(to_f16(std::numeric_limits<float>::quiet_NaN()))));
  for (uint32_t h = 0; h < 65536; ++h)
    if (const float x = from_f16(static_cast<uint16_t>(h)); !std::isnan(x)) REQUIRE(to_f16(x) == h);
}

TEST_CASE("cast goes to a half and back; its gradient has the type of what came in") {
  HostTensor x = tensor(f32({3}), {1, 1.001, -300});
  std::vector<HostTensor> in = {x};
  for (const DType type : {DType::bf16, DType::f16}) {
    std::vector<HostTensor> half = run_reference(op("cast"), in, Cast{type}, {});
    CHECK(half[0].desc.dtype == type);
    std::vector<HostTensor> back = run_reference(op("cast"), half, Cast{DType::f32}, {});
    CHECK(back[0].get(0) == 1);
    CHECK(back[0].get(1) == (type == DType::bf16 ? 1.0 : 1.0009765625));
    CHECK(back[0].get(2) == -300);
    Graph graph;
    GraphBuilder g(graph);
    const ValueId v = g.input("x", f32({3}));
    g.apply("cast", {v}, Cast{type});
    const GraphNode node = graph.nodes[0];
    // A weight comes back as f32, unchanged; an activation as a half.
    const ValueId wide = g.input("dy", f32({3})), narrow = g.input("dy", {type, {3}});
    CHECK(node.op->gradient(g, node, std::vector{wide})[0] == wide);
    CHECK(g.desc(node.op->gradient(g, node, std::vector{narrow})[0]).dtype == DType::f32);
  }
}

TEST_CASE("round_to gives numbers of the half as f32") {
  CHECK(run_op("round_to", {{f32({3}), {1.001, 70000, -1e-8}}}, Cast{DType::f16}) ==
        std::vector<double>{1.0009765625, double{kInfinity}, 0});
  CHECK(run_op("round_to", {{f32({2}), {1.001, 70000}}}, Cast{DType::bf16}) ==
        std::vector<double>{1, 70144});
}

TEST_CASE("what comes back through scale_gradient is scaled") {
  CHECK(run_op("scale_gradient", {{f64({2}), {3, 4}}, {f64({1}), {8}}}) ==
        std::vector<double>{3, 4});
  CHECK(run_op("scale", {{f64({2}), {3, 4}}, {f64({1}), {8}}}) == std::vector<double>{24, 32});
}

}  // namespace dpt
