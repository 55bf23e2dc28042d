#include "graph/passes/layouts.h"

#include <cstring>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "backend/cpu/kernels.h"
#include "graph/in_layouts.h"
#include "layers/lowered.h"

namespace dpt {
namespace {

// "name layout" of every value that does not lie plain, and the nodes that reorder.
std::string layouts_of(const std::string& model, TensorDesc x, TensorDesc y) {
  ModelText text(model);
  Graph graph = build_graph(text.spec, {.input = x, .target = y}, text.diagnostics);
  REQUIRE_MESSAGE(text.diagnostics.ok(), text.diagnostics.render());
  choose_layouts(graph);
  std::string out;
  for (const Value& v : graph.values)
    if (v.desc.layout != Layout::plain)
      out += fmt::format("{} {}\n", v.name, name_of(v.desc.layout));
  for (const GraphNode& n : graph.nodes)
    if (n.op->name == "reorder")
      out += fmt::format("reorder {} for {}\n", graph[n.in[0]].name, n.layer);
  return out;
}

}  // namespace

TEST_CASE("images lie channels_last between convolutions, weights and their gradients transposed") {
  CHECK(layouts_of("model:\n"
                   "  - conv2d: {out_channels: 8, kernel_size: 3}\n"
                   "    name: a\n"
                   "  - relu\n"
                   "  - conv2d: {out_channels: 4, kernel_size: 1, bias: false}\n"
                   "    name: b\n"
                   "  - flatten\n"
                   "  - linear: 5\n",
                   real({2, 3, 6, 5}), real({2, 5})) ==
        "a.weight transposed\n"
        "a.convolution channels_last\n"
        "1.relu channels_last\n"
        "b.weight transposed\n"
        "b.convolution channels_last\n"
        "d 1.relu channels_last\n"
        "d b.weight transposed\n"
        "d a.convolution channels_last\n"
        "d a.weight transposed\n"
        "input.channels_last channels_last\n"
        "d b.convolution.channels_last channels_last\n"
        "reorder input for a\n"
        "reorder b.convolution for 3\n"
        "reorder d b.convolution for b\n");
}

TEST_CASE("where both orders are the same nothing is reordered") {
  CHECK(layouts_of("model: [{conv2d: {out_channels: 8, kernel_size: 3}}, {adaptive_avg_pool2d: 1}, "
                   "flatten, {linear: 5}]",
                   real({2, 1, 6, 5}), real({2, 5}))
            .find("reorder") == std::string::npos);
}

TEST_CASE("a linear layer that gets data keeps its weight as [in, out], whatever dropout does") {
  for (const bool training : {false, true}) {
    ModelText text("model: [dropout, {linear: 64}, relu, {linear: 64}]");
    Graph graph = build_graph(text.spec,
                              {.input = real({2, 100}),
                               .target = real({2, 64}),
                               .mode = {.training = training},
                               .differentiate = training},
                              text.diagnostics);
    choose_layouts(graph);
    const Value &first = graph[graph.parameters[0]], &second = graph[graph.parameters[2]];
    CHECK(first.desc.layout == Layout::transposed);
    CHECK(first.desc.shape == Shape{64, 100});
    CHECK(second.desc.layout == Layout::plain);
    if (!training) continue;
    CHECK(graph[graph.gradients[0]].desc == first.desc);
    CHECK(graph[graph.gradients[2]].desc == second.desc);
  }
}

TEST_CASE("operators with layouts and their kernels give the same in any layout") {
  std::mt19937 random(3);
  int compared = 0;
  for (const OperatorType& t : operator_table()) {
    if (t.layouts != Layouts::images && t.weight.index < 0) continue;
    for (const Sample& s : samples_of(t.name)) {
      CAPTURE(t.name);
      CAPTURE(s.query.in[0].shape.str());
      std::vector<HostTensor> in;
      for (size_t i = 0; i < s.query.in.size(); ++i)
        in.push_back(sample_input(s, i, DType::f32, random));
      std::vector<HostTensor> plain = run_reference(t, in, s.query.attrs);
      const KernelQuery moved = in_layouts(s.query);
      std::vector<HostTensor> from;
      for (size_t i = 0; i < in.size(); ++i) from.push_back(in_layout(in[i], moved.in[i].layout));
      for (const KernelType& row : cpu_kernels()) {
        if ((!row.op.empty() && row.op != t.name) || (row.refuses && !row.refuses(moved).empty()))
          continue;
        CAPTURE(row.name);
        std::vector<HostTensor> out = run_kernel(row, moved, from);
        for (size_t r = 0; r < out.size(); ++r) {
          HostTensor back = in_layout(out[r], Layout::plain);
          double largest = 1;
          for (size_t i = 0; i < back.size(); ++i)
            largest = std::max(largest, std::abs(plain[r].get(i)));
          for (size_t i = 0; i < back.size(); ++i) {
            INFO("result ", r, " element ", i, ": ", back.get(i), " and ", plain[r].get(i));
            // As every kernel, see kernels_test.cpp; the plain loops sum in the same order.
            REQUIRE(std::abs(back.get(i) - plain[r].get(i)) <=
                    (row.op.empty() ? 0 : 1e-5 * largest));
          }
        }
        ++compared;
      }
    }
  }
  CHECK(compared > 150);
}

}  // namespace dpt
