#include "onnx/net.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backend/cpu/kernels.h"
#include "graph/operator.h"
#include "layers/layer.h"
#include "layers/loss.h"

namespace dpt::onnx {
namespace {

using Contents = std::vector<std::pair<ValueId, std::vector<double>>>;

Shape shape_of(const Tensor& t, const std::vector<int64_t>& extents) {
  if (t.type == "sequence") throw Inexpressible{"a sequence, not a tensor"};
  if (extents.size() > Shape::kMaxRank)
    throw Inexpressible{"more extents than a tensor of dptrain has"};
  return Shape(extents);
}

Node settings_of(const std::string& text, SourceFile& file) {
  file = {"settings", text};
  Diagnostics d;
  Node n = read_yaml(file, d);
  REQUIRE_MESSAGE(d.ok(), d.render());
  return n;
}

Choice choose(const std::vector<const RegistryEntry*>& words, std::string_view name,
              const std::string& settings) {
  used_words().emplace_back(name);
  SourceFile file;
  return golden::choice(words, name, settings_of(settings, file));
}

// Every value of the graph once its nodes have run: f64 by the plain loops, f32 by the kernels.
std::vector<HostTensor> values_of(const Graph& graph, const Contents& filled, DType real) {
  std::vector<HostTensor> values;
  for (const Value& v : graph.values) {
    TensorDesc d = v.desc;
    if (d.dtype == DType::f32) d.dtype = real;
    values.emplace_back(d);
    if (v.role == Role::constant) golden::fill(values.back(), v.origin->content);
  }
  for (const auto& [v, data] : filled) golden::fill(values[static_cast<size_t>(v)], data);
  const std::span<const KernelType> rows =
      real == DType::f64 ? std::span<const KernelType>() : cpu_kernels();
  run_graph(graph, values, {}, Part::prologue, rows);
  if (graph.target_weight != kNoValue)  // one shard, whose sum is the whole divisor
    values[static_cast<size_t>(graph.divisor)].set(
        0, values[static_cast<size_t>(graph.target_weight)].get(0));
  for (Part part : {Part::forward, Part::loss}) run_graph(graph, values, {}, part, rows);
  return values;
}

}  // namespace

ValueId Net::real(const Tensor& t, const std::vector<int64_t>& extents) {
  const Shape shape = shape_of(t, extents.empty() ? t.extents : extents);
  if (t.type != "float32") throw Inexpressible{t.type + " elements"};
  const ValueId v = g_.input(t.name, {DType::f32, shape});
  filled_.emplace_back(v, t.data);
  return v;
}

ValueId Net::indices(const Tensor& t) {
  const ValueId v = g_.input(t.name, {DType::i32, shape_of(t, t.extents)});
  filled_.emplace_back(v, t.data);
  return v;
}

ValueId Net::layer(std::string_view name, const std::string& settings,
                   const std::vector<ValueId>& in,
                   const std::vector<std::vector<double>>& parameters) {
  const Choice c = choose(layer_registry(), name, settings);
  const size_t before = graph_.parameters.size();
  const ValueId y = static_cast<const LayerType*>(c.what)->build(c.settings, g_, in);
  REQUIRE(graph_.parameters.size() == before + parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i)
    filled_.emplace_back(graph_.parameters[before + i], parameters[i]);
  return y;
}

std::vector<ValueId> Net::results(ValueId v) const {
  for (const GraphNode& n : graph_.nodes)
    if (n.out[0] == v) return n.out;
  return {};
}

void Net::masks(const Tensor& t) {
  for (size_t v = 0; v < graph_.values.size(); ++v)
    if (graph_.values[v].role == Role::mask) filled_.emplace_back(static_cast<ValueId>(v), t.data);
}

void Net::running(const Tensor& mean, const Tensor& variance) {
  filled_.emplace_back(graph_.buffers.at(0), mean.data);
  filled_.emplace_back(graph_.buffers.at(1), variance.data);
}

std::vector<Comparison> Net::run() const {
  std::vector<Comparison> out;
  for (const DType real : {DType::f64, DType::f32}) {
    std::vector<HostTensor> values = values_of(graph_, filled_, real);
    for (const Expected& e : expected_)
      out.push_back({fmt::format("{} in {}", e.want.name, name_of(real)),
                     golden::content(values[static_cast<size_t>(e.value)]), e.want.data,
                     e.tolerance});
  }
  return out;
}

std::vector<double> loss(std::string_view name, const std::string& settings,
                         const std::vector<int64_t>& extents, const std::vector<double>& output,
                         const std::vector<double>& target) {
  Spec spec;
  spec.model.push_back(golden::layer("identity", {}));
  spec.loss = choose(loss_registry(), name, settings);
  std::vector<int64_t> places = extents;
  places.erase(places.begin() + 1);
  Diagnostics d;
  const Graph graph = build_graph(spec,
                                  {.input = {DType::f32, Shape(extents)},
                                   .target = {DType::i32, Shape(places)},
                                   .differentiate = false},
                                  d);
  REQUIRE_MESSAGE(d.ok(), d.render());
  const Divisor by = divisor_of(spec, graph);
  const int64_t terms = by == Divisor::one ? 1 : extents[0] * terms_per_sample(by, Shape(extents));
  const double divisor = static_cast<double>(terms);
  std::vector<double> out;
  for (const DType real : {DType::f64, DType::f32})
    out.push_back(
        values_of(graph,
                  {{graph.input, output}, {graph.target, target}, {graph.divisor, {divisor}}},
                  real)[static_cast<size_t>(graph.loss)]
            .get(0));
  return out;
}

std::vector<std::string>& used_words() {
  static std::vector<std::string> words;
  return words;
}

std::string text(double x) { return fmt::format("{:.17g}", x); }

std::string text(const std::vector<double>& list) {
  std::vector<std::string> parts;
  for (double x : list) parts.push_back(text(x));
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

}  // namespace dpt::onnx
