#include "graph/samples/samples.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "graph/sample_run.h"

namespace dpt {
namespace {

using Table = std::map<std::string_view, Samples>;

const Table& written() {
  static const Table table = [] {
    Table out;
    for (const auto family : {activation_samples, image_samples, loss_samples, movement_samples,
                              norm_samples, product_samples})
      for (Sample& s : family()) out[s.query.op].push_back(std::move(s));
    return out;
  }();
  return table;
}

const Samples& in(const Table& table, std::string_view op) {
  static const Samples none;
  const auto at = table.find(op);
  return at == table.end() ? none : at->second;
}

// The range that covers the numbers of a tensor.
Sample::Range range_of(HostTensor& t) {
  Sample::Range out{INFINITY, -INFINITY};
  for (size_t i = 0; i < t.size(); ++i) {
    out.low = std::min(out.low, t.get(i));
    out.high = std::max(out.high, t.get(i));
  }
  if (!is_float(t.desc.dtype)) ++out.high;
  return out;
}

// Small, since positions between pixels are rounded by up to 5e-7 in float, and sums of upstreams
// that are weighted by them are compared with those in double.
constexpr Sample::Range kUpstream{-0.5, 0.5};

void add_nodes_of_gradient(const Sample& s, Table& out) {
  std::mt19937 random(29);
  SampleRun run(s, random);
  const auto inputs = s.query.in.size();
  for (size_t n = 1; n < run.graph.nodes.size(); ++n) {
    const GraphNode& node = run.graph.nodes[n];
    if (node.op->gradient) continue;
    Sample found{.query = query_of(run.graph, n), .kinks = s.kinks};
    for (const ValueId v : node.in) {
      const auto i = static_cast<size_t>(v);
      if (i < inputs)
        found.ranges.push_back(i < s.ranges.size() ? s.ranges[i] : Sample::Range{});
      else
        found.ranges.push_back(run.graph[v].role == Role::input ? kUpstream
                                                                : range_of(run.values[i]));
    }
    out[node.op->name].push_back(std::move(found));
  }
}

}  // namespace

const Samples& written_samples_of(std::string_view op) { return in(written(), op); }

const Samples& samples_of(std::string_view op) {
  static const Table all = [] {
    Table out = written();
    for (const auto& [name, samples] : written())
      if (dpt::op(name).gradient)
        for (const Sample& s : samples) add_nodes_of_gradient(s, out);
    return out;
  }();
  return in(all, op);
}

Samples elementwise_samples(std::string_view op, size_t inputs, const std::any& attrs,
                            Sample::Range first, const std::vector<double>& kinks) {
  Samples out;
  for (const Shape& s : {Shape{3, 5}, Shape{1, 33}, Shape{2, 3, 7}})
    out.push_back(sample(op, std::vector(inputs, f32(s)), attrs, {first}, kinks));
  return out;
}

}  // namespace dpt
