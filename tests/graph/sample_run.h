// An operator and those of its gradient on one sample, each result by the plain loops.
#pragma once

#include <random>
#include <vector>

#include "graph/interpret.h"

namespace dpt {

inline const StepContext kSampleContext{.seed = 5, .step = 2, .first_sample = 9};

struct SampleRun {
  Graph graph;  // the operator is node 0
  std::vector<HostTensor> values;
  // Those of each result, of which only the first has an upstream and a loss has none, and those
  // of each input.
  std::vector<ValueId> upstreams, gradients;

  // whole: inputs are rounded to whole numbers. real: the type of real numbers.
  SampleRun(const Sample& s, std::mt19937& random, bool whole = false, DType real = DType::f32) {
    GraphBuilder g(graph);
    std::vector<ValueId> in;
    for (size_t i = 0; i < s.query.in.size(); ++i) {
      values.push_back(sample_input(s, i, real, random));
      in.push_back(g.input("x", values.back().desc));
    }
    g.apply(s.query.op, in, s.query.attrs);
    const GraphNode node = graph.nodes[0];
    add_values();
    const bool loss = s.query.out[0].dtype == DType::f64;
    if (node.op->gradient) add_gradient(g, node, loss, random);
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
  void add_gradient(GraphBuilder& g, const GraphNode& node, bool loss, std::mt19937& random) {
    upstreams.assign(node.out.size(), kNoValue);
    if (!loss) {
      upstreams[0] = g.input("dy", g.desc(node.out[0]));
      add_values();
      for (size_t i = 0; i < values.back().size(); ++i)
        values.back().set(i, std::uniform_real_distribution<double>(-1, 1)(random));
    }
    gradients = node.op->gradient(g, node, upstreams);
    add_values();
  }
  static void round(HostTensor& t) {
    for (size_t i = 0; i < t.size(); ++i) t.set(i, std::round(t.get(i)));
  }
};

}  // namespace dpt
