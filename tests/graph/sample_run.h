// An operator and those of its gradient on one sample, each result by the plain loops in f32.
#pragma once

#include <random>
#include <vector>

#include "graph/interpret.h"

namespace dpt {

inline const StepContext kSampleContext{.seed = 5, .step = 2, .first_sample = 9};

struct SampleRun {
  Graph graph;  // the operator is node 0
  std::vector<HostTensor> values;

  // whole: inputs are rounded to whole numbers.
  SampleRun(const Sample& s, std::mt19937& random, bool whole = false) {
    GraphBuilder g(graph);
    std::vector<ValueId> in;
    for (size_t i = 0; i < s.query.in.size(); ++i) {
      in.push_back(g.input("x", s.query.in[i]));
      values.push_back(sample_input(s, i, DType::f32, random));
    }
    g.apply(s.query.op, in, s.query.attrs);
    const GraphNode node = graph.nodes[0];
    add_values();
    if (node.op->gradient) add_gradient(g, node, random);
    if (whole)
      for (const Value& v : graph.values)
        if (v.role == Role::input) round(values[static_cast<size_t>(&v - graph.values.data())]);
    run_graph(graph, values, kSampleContext);
  }

 private:
  void add_values() {
    while (values.size() < graph.values.size())
      values.emplace_back(graph.values[values.size()].desc);
  }
  // Only the first result has an upstream, and a loss has none.
  void add_gradient(GraphBuilder& g, const GraphNode& node, std::mt19937& random) {
    std::vector<ValueId> dy(node.out.size(), kNoValue);
    if (g.desc(node.out[0]).dtype != DType::f64) {
      dy[0] = g.input("dy", g.desc(node.out[0]));
      add_values();
      for (size_t i = 0; i < values.back().size(); ++i)
        values.back().set(i, std::uniform_real_distribution<double>(-1, 1)(random));
    }
    node.op->gradient(g, node, dy);
    add_values();
  }
  static void round(HostTensor& t) {
    for (size_t i = 0; i < t.size(); ++i) t.set(i, std::round(t.get(i)));
  }
};

}  // namespace dpt
