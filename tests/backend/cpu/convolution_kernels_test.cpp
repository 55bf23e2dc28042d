// Convolution kernels against the plain loops where every sum is exact, and one sample's values
// beside different neighbours.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <thread>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "backend/cpu/kernels.h"
#include "backend/cpu/scratch.h"
#include "backend/cpu/simd/simd.h"
#include "graph/in_layouts.h"
#include "graph/operator.h"
#include "graph/windows.h"
#include "skip.h"

namespace dpt {
namespace {

struct Case {
  Shape x;
  int64_t outs;
  Convolution s;
};

// Of two or three extents.
Window window(const std::vector<int64_t>& kernel, const std::vector<int64_t>& stride,
              const std::vector<int64_t>& padding, const std::vector<int64_t>& dilation = {}) {
  const auto of = [](const std::vector<int64_t>& sizes, int64_t none) {
    Extents out{none, none, none};
    std::copy(sizes.begin(), sizes.end(), out.end() - std::ssize(sizes));
    return out;
  };
  return {of(kernel, 1), of(stride, 1), of(dilation, 1), of(padding, 0), of(padding, 0)};
}

// Channels around a vector's, what ResNet and LeNet have, and what is rare.
std::vector<Case> cases() {
  std::vector<Case> out;
  for (int64_t channels : {1, 3, 8, 15, 16, 17, 33, 64})
    for (int64_t outs : {1, 6, 16, 18, 32, 48})
      out.push_back({{3, channels, 6, 5}, outs, {window({3, 3}, {1, 1}, {1, 1})}});
  for (int64_t k : {1, 2, 3, 5, 7})
    for (int64_t stride : {1, 2, 3})
      out.push_back({{2, 16, 9, 11}, 16, {window({k, k}, {stride, stride}, {k / 2, k / 2})}});
  out.push_back({{2, 3, 19, 17}, 64, {window({7, 7}, {2, 2}, {3, 3})}});
  out.push_back({{2, 1, 28, 28}, 6, {window({5, 5}, {1, 1}, {2, 2})}});
  out.push_back({{2, 6, 14, 14}, 16, {window({5, 5}, {1, 1}, {0, 0})}});
  out.push_back({{2, 16, 9, 8}, 32, {window({3, 2}, {1, 2}, {1, 0}, {2, 3})}});
  out.push_back({{2, 32, 9, 8}, 32, {window({3, 3}, {1, 1}, {1, 1}), 32}});
  out.push_back({{2, 32, 9, 8}, 64, {window({3, 3}, {2, 2}, {1, 1}), 4}});
  out.push_back({{2, 6, 5, 7}, 9, {window({3, 3}, {1, 1}, {0, 1}), 3}});
  out.push_back({{3, 5, 20}, 7, {window({1, 5}, {1, 2}, {0, 2})}});
  for (int64_t channels : {1, 3, 16, 17})
    for (int64_t stride : {1, 2})
      out.push_back({{2, channels, 5, 6, 7}, 18, {window({3, 3, 3}, {stride, 1, 2}, {1, 0, 1})}});
  out.push_back({{2, 32, 4, 5, 6}, 32, {window({2, 3, 3}, {1, 2, 1}, {1, 1, 2}, {2, 1, 3})}});
  out.push_back({{2, 16, 4, 5, 6}, 16, {window({3, 3, 3}, {1, 1, 1}, {1, 1, 1}), 16}});
  out.push_back({{2, 12, 4, 5, 6}, 8, {window({3, 1, 3}, {2, 1, 1}, {1, 0, 1}), 4}});
  for (int64_t channels : {4, 40})
    out.push_back({{2, channels, 4, 3, 5}, 48, {window({1, 1, 1}, {2, 1, 2}, {0, 0, 0})}});
  out.push_back({{2, 64, 3, 4, 3}, 65, {window({1, 1, 1}, {1, 1, 1}, {0, 0, 0})}});
  out.push_back({{1, 192, 3, 4, 4}, 208, {window({3, 3, 3}, {1, 1, 1}, {1, 1, 1})}});
  for (int64_t channels : {1, 4, 6, 8, 12})
    out.push_back({{2, channels, 10, 8}, 6, {window({1, 1}, {2, 2}, {0, 0})}});
  // What is a product of matrices: depths and widths around those of its blocks.
  for (int64_t channels : {32, 45, 515})
    for (int64_t outs : {33, 64, 400})
      out.push_back({{3, channels, 5, 3}, outs, {window({1, 1}, {1, 1}, {0, 0})}});
  out.push_back({{2, 1024, 3, 2}, 70, {window({1, 1}, {1, 1}, {0, 0})}});
  out.push_back({{3, 40, 9, 8}, 48, {window({1, 1}, {2, 3}, {0, 0})}});
  out.push_back({{3, 40, 4, 3}, 48, {window({1, 1}, {1, 1}, {1, 2})}});
  out.push_back({{2, 64, 7, 7}, 65, {window({3, 3}, {1, 1}, {1, 1})}});
  out.push_back({{2, 33, 9, 8}, 48, {window({3, 2}, {2, 1}, {1, 0}, {2, 3})}});
  out.push_back({{3, 35, 20}, 37, {window({1, 5}, {1, 2}, {0, 2})}});
  out.push_back({{6, 32, 14, 14}, 256, {window({1, 1}, {1, 1}, {0, 0})}});
  out.push_back(
      {{1, 16, 7, 7}, 16, {{.kernel = {1, 4, 4}, .before = {0, 1, 1}, .behind = {0, 2, 2}}}});
  return out;
}

// Whole numbers of -4 to 4, so that every sum is exact in any order.
HostTensor whole(TensorDesc d, std::mt19937& random) {
  HostTensor t(d);
  for (size_t i = 0; i < t.size(); ++i) t.set(i, static_cast<double>(random() % 9) - 4);
  return t;
}

HostTensor real(TensorDesc d, std::mt19937& random) {
  HostTensor t(d);
  for (size_t i = 0; i < t.size(); ++i)
    t.set(i, std::uniform_real_distribution<double>(-1, 1)(random));
  return t;
}

// The three operators of a convolution with their inputs.
std::vector<KernelQuery> queries(const Case& c) {
  Convolution s = c.s;
  std::vector<int64_t> weight(s.window.kernel.end() - (c.x.rank() - 2), s.window.kernel.end());
  weight.insert(weight.begin(), {c.outs, c.x[1] / s.groups});
  const TensorDesc x = f32(c.x), w = f32(Shape(weight));
  const TensorDesc b = f32({c.outs});
  const TensorDesc y = op("convolution").infer(std::vector{x, w, b}, s)[0];
  std::vector<KernelQuery> out = {{"convolution", {x, w, b}, {y}, s},
                                  {"convolution_weight_gradient", {y, x}, {w}, s}};
  for (size_t i = 0; i < 3; ++i)
    s.output_padding[i] =
        (padded(s.window, i, extents_of(c.x)[i]) - covered(s.window, i)) % s.window.stride[i];
  out.push_back({"convolution_transpose", {y, w, f32({c.x[1]})}, {x}, s});
  return out;
}

}  // namespace

TEST_CASE("convolutions and their gradients are exact for whole numbers") {
  std::mt19937 random(5);
  int products = 0;
  for (const Case& c : cases())
    for (const KernelQuery& q : queries(c)) {
      INFO(std::string(q.op), " ", c.x.str(), " to ", c.outs, " channels");
      std::vector<HostTensor> in;
      for (const TensorDesc& d : q.in) in.push_back(whole(d, random));
      auto plain = run_reference(op(q.op), in, q.attrs);
      const KernelQuery moved = in_layouts(q);
      std::vector<HostTensor> from;
      for (size_t i = 0; i < in.size(); ++i) from.push_back(in_layout(in[i], moved.in[i].layout));
      for (const KernelType& row : cpu_kernels()) {
        if (row.op != q.op) continue;
        INFO("by ", std::string(row.name));
        if (row.refuses(q).empty()) {
          auto fast = run_kernel(row, q, in);
          CHECK(std::memcmp(fast[0].view().data, plain[0].view().data, plain[0].desc.bytes()) == 0);
        }
        const std::string reason = row.refuses(moved);
        if (!reason.empty() && !reason.starts_with("windows are faster elsewhere")) continue;
        HostTensor back = in_layout(run_kernel(row, moved, from)[0], Layout::plain);
        CHECK(std::memcmp(back.view().data, plain[0].view().data, plain[0].desc.bytes()) == 0);
        products += row.name == "gemm" ? 1 : 0;
      }
    }
  CHECK(products > 30);
}

// Nobody sees what a library's own code writes: not even the sanitizers.
TEST_CASE("convolutions write into no memory beyond what they asked for") {
  std::mt19937 random(8);
  const auto touched_beyond = [&](const KernelType& row, const KernelQuery& q) {
    std::vector<HostTensor> in, out;
    std::vector<TensorView> from, to;
    for (const TensorDesc& d : q.in) in.push_back(whole(d, random));
    for (const TensorDesc& d : q.out) out.emplace_back(d);
    for (HostTensor& t : in) from.push_back(t.view());
    for (HostTensor& t : out) to.push_back(t.view());
    ptrdiff_t touched = 0;
    std::thread([&] {  // whose scratch memory is new
      constexpr size_t kBeyond = 4096;
      const auto kernel = row.prepare(q);
      const size_t bytes = scratch_bytes();
      const std::span beyond(scratch(bytes + kBeyond) + bytes, kBeyond);
      std::ranges::fill(beyond, std::byte{0xa5});
      const StepContext context;
      kernel->run({from, to, &context});
      touched = std::ranges::count_if(beyond, [](std::byte b) { return b != std::byte{0xa5}; });
    })
        .join();
    return touched;
  };
  for (const Case& c : cases())
    for (const KernelQuery& q : queries(c))
      for (const KernelQuery& given : {q, in_layouts(q)})
        for (const KernelType& row : cpu_kernels()) {
          if (row.op != q.op || !row.refuses(given).empty()) continue;
          INFO(std::string(q.op), " by ", std::string(row.name), " ", c.x.str(), " to ", c.outs);
          CHECK(touched_beyond(row, given) == 0);
        }
}

// oneDNN's kernels of bf16, wherever it has them: other CPUs may refuse them, but only as slow.
TEST_CASE("convolutions of bf16 are exact sums, rounded once; gradients of weights are not") {
  if (skip_without(simd_kernels().isa == Isa::avx512, "AVX-512")) return;
  std::mt19937 random(7);
  const std::vector<Case> all = cases();
  int compared = 0;
  for (size_t i = 0; i < all.size(); i += 3)
    for (const KernelQuery& q : queries(all[i])) {
      INFO(std::string(q.op), " ", all[i].x.str(), " to ", all[i].outs, " channels");
      if (q.op == "convolution_transpose") continue;  // of a bias
      KernelQuery halves = q;
      std::vector<HostTensor> in, narrow;
      for (TensorDesc& d : halves.in) {
        in.push_back(whole(d, random));
        d.dtype = DType::bf16;
        narrow.emplace_back(d);
        for (size_t e = 0; e < in.back().size(); ++e) narrow.back().set(e, in.back().get(e));
      }
      auto plain = run_reference(op(q.op), in, q.attrs);
      if (q.op == "convolution") halves.out[0].dtype = DType::bf16;
      HostTensor expected(halves.out[0]);
      for (size_t e = 0; e < expected.size(); ++e) expected.set(e, plain[0].get(e));
      for (const KernelType& row : cpu_kernels()) {
        if (row.op != q.op || row.name != "onednn" || !row.refuses(q).empty()) continue;
        auto fast = run_kernel(row, halves, narrow);
        REQUIRE(fast[0].desc == expected.desc);
        CHECK(std::memcmp(fast[0].view().data, expected.view().data, expected.desc.bytes()) == 0);
        ++compared;
      }
    }
  const bool has = std::ranges::any_of(cpu_kernels(), [](auto& k) { return k.name == "onednn"; });
  CHECK((compared > 30 || !has));
}

TEST_CASE("a sample's convolution does not depend on its neighbours") {
  std::mt19937 random(6);
  const std::vector<Case> some = {{{7, 64, 14, 14}, 64, {window({3, 3}, {1, 1}, {1, 1})}},
                                  {{7, 64, 7, 7}, 128, {window({1, 1}, {1, 1}, {0, 0})}},
                                  {{7, 600, 3, 2}, 200, {window({3, 3}, {2, 1}, {1, 1})}},
                                  {{7, 3, 32, 32}, 16, {window({7, 7}, {2, 2}, {3, 3})}}};
  for (const Case& c : some)
    for (const KernelQuery& q : queries(c)) {
      if (q.op == "convolution_weight_gradient") continue;
      for (const KernelQuery& all : {q, in_layouts(q)}) {
        std::vector<HostTensor> in;
        for (const TensorDesc& d : all.in) in.push_back(real(d, random));
        // Samples 4 and 5 by themselves.
        KernelQuery pair = all;
        pair.in[0].shape = all.in[0].shape.with(0, 2);
        pair.out[0].shape = all.out[0].shape.with(0, 2);
        std::vector<HostTensor> two = in;
        two[0] = HostTensor(pair.in[0]);
        for (size_t i = 0; i < two[0].size(); ++i) two[0].set(i, in[0].get(2 * two[0].size() + i));
        for (const KernelType& row : cpu_kernels()) {
          if (row.op != q.op || !row.refuses(all).empty()) continue;
          INFO(std::string(q.op), " by ", std::string(row.name), " ", c.x.str());
          auto together = run_kernel(row, all, in);
          auto alone = run_kernel(row, pair, two);
          const size_t bytes = pair.out[0].bytes();
          CHECK(std::memcmp(alone[0].view().data, together[0].view().data + 2 * bytes, bytes) == 0);
        }
      }
    }
}

}  // namespace dpt
