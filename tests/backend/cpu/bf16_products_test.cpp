#include "backend/cpu/bf16_products.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/kernels.h"
#include "backend/cpu/simd/isas.h"
#include "base/flush_subnormals.h"
#include "base/half.h"
#include "graph/attrs.h"
#include "graph/in_layouts.h"
#include "skip.h"

namespace dpt {
namespace {

HostTensor bf16s(TensorDesc desc, Numbers& numbers) {
  HostTensor t(desc);
  for (size_t i = 0; i < t.size(); ++i) t.set(i, double{rounded_to(DType::bf16, numbers.real())});
  return t;
}

KernelQuery product_of(std::string_view op, Shape a, Shape b, Shape out) {
  return {.op = op,
          .in = {{DType::f32, a}, {DType::f32, b}},
          .out = {{DType::f32, out}},
          .attrs = {},
          .rounded_inputs = DType::bf16};
}

const KernelType& first_row(Bf16Products products, const KernelQuery& q) {
  for (const KernelType& k : cpu_kernels(products))
    if (k.op == q.op && k.refuses(q).empty()) return k;
  FAIL("no kernel for " << std::string(q.op));
  return cpu_kernels().back();
}

// The kernels of both lists compute the same bits; that of the instruction is another one.
void check_same(const KernelQuery& q, std::string_view name) {
  INFO(std::string(q.op), " ", q.in[0].shape.str(), " and ", q.in[1].shape.str());
  Numbers numbers(5);
  std::vector<HostTensor> in;
  for (const TensorDesc& d : q.in) in.push_back(bf16s(d, numbers));
  const KernelType& pairs = first_row(Bf16Products::instruction, q);
  const KernelType& floats = first_row(Bf16Products::fma, q);
  CHECK(pairs.name == name);
  CHECK(floats.name != name);
  CHECK((pairs.makes_rows == floats.makes_rows && pairs.by_sample == floats.by_sample));
  KernelQuery rounds = q;
  if (pairs.rounds) rounds.rounds = DType::bf16;
  const auto a = run_kernel(pairs, rounds, in), b = run_kernel(floats, rounds, in);
  CHECK(std::memcmp(a[0].storage.data(), b[0].storage.data(), a[0].desc.bytes()) == 0);
}

}  // namespace

TEST_CASE("products of bf16 have the same bits with the instruction as with fma") {
  if (skip_without(bf16_probe().usable(), "AVX512-BF16")) return;
  const FlushSubnormals flush;
  for (const int64_t n : {1, 3, 4, 15, 16, 100}) {
    const int64_t in = 75, out = 70;
    KernelQuery linear = product_of("linear", {n, in}, {out, in}, {n, out});
    check_same(linear, "avx512_bf16");
    linear.in.push_back({DType::f32, {out}});
    check_same(linear, "avx512_bf16");
    check_same(product_of("linear", {n, 784}, {200, 784}, {n, 200}), "avx512_bf16");
    check_same(product_of("linear", {n, in}, {10, in}, {n, 10}), "avx512_bf16");
    check_same(product_of("matmul", {n, out}, {out, in}, {n, in}), "avx512_bf16");
    check_same(product_of("linear_weight_gradient", {n, out}, {n, in}, {out, in}), "avx512_bf16");
    KernelQuery transposed = product_of("linear", {n, in}, {out, in}, {n, out});
    transposed.in[1].layout = Layout::transposed;
    check_same(transposed, "avx512_bf16");
  }
}

TEST_CASE("factors that are not numbers of bf16 are never multiplied as such") {
  KernelQuery q = product_of("linear", {50, 75}, {70, 75}, {50, 70});
  for (const DType held : {DType::f32, DType::f16}) {
    q.rounded_inputs = held;
    for (const Bf16Products asked :
         {Bf16Products::automatic, Bf16Products::fma, Bf16Products::instruction})
      CHECK(!first_row(asked, q).name.ends_with("_bf16"));
  }
  q.rounded_inputs = DType::bf16;
  CHECK(!first_row(Bf16Products::fma, q).name.ends_with("_bf16"));
}

TEST_CASE("the instruction is chosen by its rate, and only if its bits are those of fma") {
  Bf16Probe probe;
  CHECK(text_of(probe) == "this CPU has no AVX512-BF16; products use fma");
  CHECK(!probe.faster());
  probe = {.has_instruction = true, .same_bits = true, .ratio = 2};
  CHECK(probe.faster());
  CHECK(text_of(probe) == "VDPBF16PS multiplies 2.0 times as fast as fma; products use it");
  probe.ratio = 1;
  CHECK(!probe.faster());
  CHECK(text_of(probe) == "VDPBF16PS multiplies 1.0 times as fast as fma; products use fma");
  probe = {.has_instruction = true, .same_bits = false, .ratio = 2};
  CHECK(!probe.faster());
  CHECK(
      text_of(probe) ==
      "VDPBF16PS multiplies 2.0 times as fast as fma but rounds in another way; products use fma");
}

TEST_CASE("tiles are chosen if they are right and faster than VDPBF16PS") {
  Bf16Probe probe{.has_instruction = true, .same_bits = true, .ratio = 1};
  probe.has_tiles = true;
  CHECK(!probe.tiles_faster());
  CHECK(text_of(probe) ==
        "VDPBF16PS multiplies 1.0 times as fast as fma, AMX does not compute what its definition "
        "says; products use fma");
  probe.right_tiles = true;
  probe.tiles_ratio = 14.2;
  CHECK(probe.tiles_faster());
  CHECK(text_of(probe) ==
        "VDPBF16PS multiplies 1.0 times as fast as fma, AMX 14.2 times; products use AMX");
  probe.ratio = 2;
  probe.tiles_ratio = 2.5;
  CHECK(!probe.tiles_faster());
  CHECK(text_of(probe) ==
        "VDPBF16PS multiplies 2.0 times as fast as fma, AMX 2.5 times; products use VDPBF16PS");
}

TEST_CASE("a CPU without AMX, or a spec that chooses an instruction, does without tiles") {
  CHECK(refuses_tiles(Bf16Products::fma) == "the spec asks for fma");
  CHECK(refuses_tiles(Bf16Products::instruction) == "the spec asks for VDPBF16PS");
  if (!bf16_probe().has_tiles)
    CHECK(refuses_tiles(Bf16Products::automatic) ==
          "this CPU has no AMX, or the system does not permit it");
  const KernelQuery q = product_of("linear", {50, 75}, {70, 75}, {50, 70});
  if (!bf16_probe().tiles_faster()) CHECK(first_row(Bf16Products::automatic, q).name != "amx_bf16");
}

// No other bounds: on a busy machine, even the shortest burst may have been interrupted.
TEST_CASE("the instruction's rate is measured where there is one") {
  if (skip_without(bf16_probe().usable(), "AVX512-BF16")) return;
  CHECK(bf16_probe().ratio > 0);
  CHECK(std::isfinite(bf16_probe().ratio));
}

}  // namespace dpt
