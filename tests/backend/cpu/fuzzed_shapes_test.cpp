// Every row of cpu_kernels() against its operator's plain loops, on shapes that nobody chose; a
// failure says which. More of them: graph/fuzzed_samples.h.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "backend/cpu/kernels.h"
#include "base/half.h"
#include "graph/fuzzed_samples.h"
#include "graph/in_layouts.h"
#include "graph/sample_run.h"

namespace dpt {
namespace {

bool whole_numbers(HostTensor& t) {
  for (size_t i = 0; i < t.size(); ++i)
    if (t.get(i) != std::round(t.get(i))) return false;
  return true;
}

bool numbers_of_bf16(HostTensor& t) {
  for (size_t i = 0; i < t.size(); ++i)
    if (t.get(i) != double{rounded_to(DType::bf16, static_cast<float>(t.get(i)))}) return false;
  return true;
}

// On numbers of bf16, these round what they compute before they multiply it, which
// simd/bf16_attention_test.cpp checks.
bool rounds_factors(std::string_view op) { return op.starts_with("attention"); }

// Multiplies by weights that are no whole numbers.
bool interpolates(std::string_view op) {
  return op.starts_with("upsample_bilinear") || op.starts_with("upsample_bicubic");
}

// Whether this CPU runs the row: those of bf16 are for CPUs with a fast VDPBF16PS.
bool runs_here(const KernelType& row) {
  if (row.name.ends_with("_bf16") && rounds_factors(row.op)) return false;
  if (row.name == "amx_bf16") return refuses_tiles(Bf16Products::automatic).empty();
  return !row.name.ends_with("_bf16") || refuses_instruction(Bf16Products::automatic).empty();
}

struct Count {
  int compared = 0, exact = 0, empty = 0;
};
// By operator and row.
using Counts = std::map<std::pair<std::string_view, std::string_view>, Count>;

// What multiplies and adds whole numbers and gives whole ones has their very bits, in whatever
// order it sums: they stay far below 2^24. Others: some ten roundings of the largest result and,
// where terms of size one have cancelled, one of single precision for each of the `terms`.
void check_same(HostTensor& got, HostTensor& expected, bool exact, size_t terms) {
  double largest = 0;
  for (size_t i = 0; i < expected.size(); ++i)
    largest = std::max(largest, std::abs(expected.get(i)));
  const double tolerance = exact ? 0 : 1e-5 * largest + 0x1p-24 * static_cast<double>(terms + 16);
  for (size_t i = 0; i < expected.size(); ++i) {
    const double a = got.get(i), b = expected.get(i);
    if ((std::isnan(a) && std::isnan(b)) || a == b) continue;
    REQUIRE_MESSAGE(std::abs(a - b) <= tolerance, "element " << i << ": " << a << " and " << b);
  }
}

class Comparison {
 public:
  explicit Comparison(ShapeFuzzer& fuzzer) : fuzzer_(fuzzer) {}

  void compare(const Sample& s, bool whole) {
    SampleRun r(s, fuzzer_.random(), whole);
    for (size_t i = 0; i < r.graph.nodes.size(); ++i)
      if (!r.graph.nodes[i].op->is(Trait::view)) compare(r, i);
  }
  Counts counts;

 private:
  // As the plain loops have it, and with images and weights in the layouts that a run gives them.
  void compare(SampleRun& r, size_t node) {
    const KernelQuery query = query_of(r.graph, node);
    compare(r, node, query);
    if (query.op == "reorder") return;  // its layouts are its own
    const KernelQuery moved = in_layouts(query);
    if (moved.in != query.in || moved.out != query.out) compare(r, node, moved);
  }

  void compare(SampleRun& r, size_t node, KernelQuery query) {
    const GraphNode& n = r.graph.nodes[node];
    const auto value = [&](ValueId v) -> HostTensor& { return r.values[static_cast<size_t>(v)]; };
    std::vector<HostTensor> given, expected;
    std::vector<TensorView> in;
    std::string shapes;
    size_t terms = 0;
    for (size_t i = 0; i < n.in.size(); ++i) {
      given.push_back(in_layout(value(n.in[i]), query.in[i].layout));
      terms = std::max(terms, given.back().size());
      shapes += given.back().desc.shape.str() + " ";
    }
    for (HostTensor& t : given) in.push_back(t.view());
    for (size_t i = 0; i < n.out.size(); ++i)
      expected.push_back(in_layout(value(n.out[i]), query.out[i].layout));
    if (std::ranges::all_of(given, numbers_of_bf16) && !rounds_factors(query.op))
      query.rounded_inputs = DType::bf16;
    bool exact = n.op->precision != Precision::full && !interpolates(query.op);
    for (auto* side : {&given, &expected})
      for (HostTensor& t : *side) exact = exact && whole_numbers(t);
    const bool empty = expected[0].size() == 0;
    for (const KernelType& row : cpu_kernels()) {
      if (row.op != query.op || !row.refuses(query).empty()) continue;
      CAPTURE(row.op);
      CAPTURE(row.name);
      CAPTURE(shapes);
      std::vector<HostTensor> out;
      std::vector<TensorView> to;
      for (const TensorDesc& d : query.out) out.emplace_back(d);
      for (HostTensor& t : out) {
        std::ranges::fill(t.storage, NAN);  // whatever is not written shows, and so does too much
        to.push_back(t.view());
      }
      const std::unique_ptr<Kernel> kernel = row.prepare(query);
      kernel->run({in, to, &kSampleContext});
      for (size_t i = 0; i < out.size(); ++i) check_same(out[i], expected[i], exact, terms);
      for (HostTensor& t : out) CHECK(std::isnan(t.storage.back()));
      if (row.rounds) compare_rounded(row, query, in, out);
      if (row.makes_rows && out[0].desc.layout == Layout::plain) compare_rows(*kernel, in, out[0]);
      Count& c = counts[{row.op, row.name}];
      ++c.compared;
      c.exact += exact;
      c.empty += empty;
    }
  }

  // What rounds its first result makes the numbers that rounding makes of it.
  static void compare_rounded(const KernelType& row, KernelQuery query,
                              const std::vector<TensorView>& in, std::vector<HostTensor>& exact) {
    for (const DType half : {DType::bf16, DType::f16}) {
      query.rounds = half;
      if (!row.refuses(query).empty()) continue;
      std::vector<HostTensor> out;
      std::vector<TensorView> to;
      for (const TensorDesc& d : query.out) out.emplace_back(d);
      for (HostTensor& t : out) to.push_back(t.view());
      row.prepare(query)->run({in, to, &kSampleContext});
      for (size_t n = 0; n < out.size(); ++n)
        for (size_t i = 0; i < out[n].size(); ++i) {
          const double x = exact[n].get(i);
          REQUIRE(out[n].get(i) == (n > 0 ? x : double{rounded_to(half, static_cast<float>(x))}));
        }
    }
  }

  // Some rows of the result have the bits that they have in the whole.
  void compare_rows(Kernel& kernel, const std::vector<TensorView>& in, HostTensor& whole) {
    const Shape& s = whole.desc.shape;
    const auto begin = static_cast<int64_t>(fuzzer_.below(static_cast<size_t>(s[0]) + 1));
    const auto end =
        begin + static_cast<int64_t>(fuzzer_.below(static_cast<size_t>(s[0] - begin) + 1));
    HostTensor rows({DType::f32, s.with(0, end - begin)});
    const TensorView to = whole.view();
    kernel.run_rows({in, {&to, 1}, &kSampleContext}, begin, end, false, rows.view().data);
    for (size_t i = 0; i < rows.size(); ++i)
      REQUIRE(rows.get(i) == whole.get(static_cast<size_t>(begin * s.back()) + i));
  }

  ShapeFuzzer& fuzzer_;
};

}  // namespace

TEST_CASE("every kernel agrees with the plain loops on fuzzed shapes, exactly on whole numbers") {
  ShapeFuzzer fuzzer(fuzz_setting("DPT_FUZZ_SEED", 1));
  Comparison all(fuzzer);
  const uint64_t shapes = fuzz_setting("DPT_FUZZ_SHAPES", 60);
  for (const OperatorType& type : operator_table()) {
    // Gradients are compared on the values that their operators' fuzzed samples give them.
    const Samples& samples = written_samples_of(type.name);
    if (type.is(Trait::view) || samples.empty()) continue;
    for (const Sample& s : samples) all.compare(s, false);
    // More of them where the shapes so far suited not every row.
    const auto missing = [&](const KernelType& row) {
      return row.op == type.name && runs_here(row) && all.counts[{row.op, row.name}].compared == 0;
    };
    for (uint64_t i = 0;
         i < shapes || (i < 20 * shapes && std::ranges::any_of(cpu_kernels(), missing)); ++i)
      if (const std::optional<Sample> s = fuzzer.draw(samples)) all.compare(*s, i % 2 == 0);
  }
  for (const KernelType& row : cpu_kernels()) {
    if (row.op.empty() || !runs_here(row)) continue;
    CAPTURE(row.op);
    CAPTURE(row.name);
    CHECK(all.counts[{row.op, row.name}].compared > 0);
  }
  for (std::string_view sums : {"linear", "matmul", "linear_weight_gradient", "sum_rows", "add",
                                "embedding_gradient", "relu_gradient", "masked", "concat"})
    for (const KernelType& row : cpu_kernels())
      if (row.op == sums && runs_here(row)) {
        CAPTURE(sums);
        CAPTURE(row.name);
        CHECK(all.counts[{sums, row.name}].exact > 5);
        CHECK((all.counts[{sums, row.name}].empty > 0 || row.name == "onednn"));
      }
}

}  // namespace dpt
