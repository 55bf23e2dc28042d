// PyTorch's own samples of its modules and functions (tests/fixtures/modules.*) as a spec says
// them: the graph that is trained, once by the operators' plain loops in double, once compiled with
// the fast kernels.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/kernels.h"
#include "engine/cpu/binding.h"
#include "formats/safetensors.h"
#include "graph/passes/layouts.h"
#include "layers/golden.h"
#include "paths.h"

namespace dpt {
namespace {

using golden::at;
using golden::find;

// A case with its tensors, which are called NAME.input, NAME.gradient.weight and so on.
struct ModuleSample {
  const Node& node;
  const SafeTensors& file;
  std::string name = at(node, "name").text;

  bool layer() const { return find(node, "loss") == nullptr; }
  const SafeTensors::Entry* entry(const std::string& key) const {
    return file.find(name + "." + key);
  }
  golden::Tensor tensor(const std::string& key) const {
    const SafeTensors::Entry* e = entry(key);
    REQUIRE_MESSAGE(e, "no tensor " << name << "." << key);
    const TensorView view{e->desc, const_cast<std::byte*>(e->data)};
    return {e->desc.shape, golden::content(view)};
  }
  TensorDesc target() const {
    if (layer()) return {DType::f32, tensor("output").shape};
    return entry("target")->desc;
  }
};

// The sample's model behind a table of which its input is the rows: so the input has a gradient.
// The loss of a layer is any, since set_upstream takes the place of its gradient.
struct SampleGraph {
  Spec spec;
  Graph graph;
  std::vector<std::string> parameters;  // what the fixture calls graph.parameters

  explicit SampleGraph(const ModuleSample& s) {
    const Shape x = s.tensor("input").shape;
    const bool indices = s.entry("input")->desc.dtype == DType::i32;
    const Shape rows = indices ? x : Shape(x.extents().first(static_cast<size_t>(x.rank() - 1)));
    if (!indices) {
      spec.model.push_back(golden::layer(
          "embedding", golden::map({{"num_embeddings", std::to_string(rows.elements())},
                                    {"embedding_dim", std::to_string(x.back())}})));
      parameters.emplace_back("input");
    }
    for (const Node& item : at(s.node, "model").items)
      spec.model.push_back(golden::layer(item.entries.at(0).key.value, item.entries.at(0).value));
    for (const char* name : {"weight", "bias"})
      if (s.entry(name)) parameters.emplace_back(name);
    if (s.layer()) {
      spec.loss = golden::choice(loss_registry(), "mse_loss", {});
    } else {
      const Node::Entry& loss = at(s.node, "loss").entries.at(0);
      spec.loss = golden::choice(loss_registry(), loss.key.value, loss.value);
    }
    Diagnostics d;
    const bool training = find(s.node, "training") == nullptr;  // else evaluation
    graph = build_graph(
        spec, {.input = {DType::i32, rows}, .target = s.target(), .mode = {.training = training}},
        d);
    REQUIRE_MESSAGE(d.ok(), d.render());
    choose_layouts(graph);
    REQUIRE(graph.parameters.size() == parameters.size());
  }
};

class InDouble {
 public:
  explicit InDouble(const Graph& graph) : graph_(graph), values_(golden::in_double(graph)) {}
  TensorView view(ValueId v) { return values_[static_cast<size_t>(v)].view(); }
  void run(Part part) { run_graph(graph_, values_, {}, part); }

 private:
  const Graph& graph_;
  std::vector<HostTensor> values_;
};

class WithKernels {
 public:
  explicit WithKernels(const Graph& graph)
      : layout_(flat_layout(graph)),
        program_(compile(graph, cpu_kernels(), layout_)),
        weights_(lines(layout_.total * sizeof(float))),
        gradients_(lines(layout_.trainable * sizeof(float))),
        activations_(lines(program_.arena[0].kept)),
        scratch_(lines(program_.arena[0].scratch)),
        sums_(lines(program_.sum_bytes)),
        binding_(program_,
                 {.weights = weights_.data()->bytes,
                  .gradients = gradients_.data()->bytes,
                  .activations = {activations_.data()->bytes},
                  .scratch = {scratch_.data()->bytes},
                  .sums = sums_.data()->bytes},
                 std::vector{Part::prologue, Part::forward, Part::loss, Part::backward},
                 std::vector{0}) {}
  TensorView view(ValueId v) { return binding_.view(v); }

  // At sync points the total is that of the only shard.
  void run(Part part) {
    const int last = binding_.sync_points(part, 0);
    for (int piece = 0; piece <= last; ++piece) {
      const Binding::Piece at{.part = part, .piece = piece};
      binding_.run(at);
      if (piece == last) break;
      const Binding::SyncPoint sync = binding_.sync_point(at);
      std::memcpy(sync.sum.data(), sums_.data()->bytes + sync.offset, sync.sum.size_bytes());
    }
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  static std::vector<Line> lines(size_t bytes) { return std::vector<Line>(bytes / 64 + 1); }
  FlatLayout layout_;
  Program program_;
  std::vector<Line> weights_, gradients_, activations_, scratch_, sums_;
  Binding binding_;
};

double largest_of(const std::vector<double>& numbers) {
  double largest = 0;
  for (double x : numbers) largest = std::max(largest, std::abs(x));
  return largest;
}

// The same formulas with sums in another order: some hundred terms.
constexpr double kInDouble = 1e-13;
// Some thirty roundings of float32.
constexpr double kInFloat = 2e-6;

// How far apart they are, in parts of the largest number, or of `least`: the size of what they were
// computed from, where differences have cancelled. Nan and infinities must be in both.
double distance(const std::vector<double>& ours, const std::vector<double>& torchs, double least) {
  REQUIRE(ours.size() == torchs.size());
  double largest = least, difference = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    if (std::isnan(ours[i]) && std::isnan(torchs[i])) continue;
    if (ours[i] == torchs[i] && std::isinf(ours[i])) continue;
    largest = std::max(largest, std::abs(torchs[i]));
    if (!std::isfinite(ours[i] - torchs[i])) return HUGE_VAL;
    difference = std::max(difference, std::abs(ours[i] - torchs[i]));
  }
  return difference == 0 ? 0 : difference / largest;
}

template <class Machine>
class SampleRun {
 public:
  SampleRun(const ModuleSample& sample, const SampleGraph& built, double tolerance)
      : s_(sample), built_(built), graph_(built.graph), machine_(graph_), tolerance_(tolerance) {}

  void check() {
    for (size_t i = 0; i < graph_.parameters.size(); ++i)
      set(graph_.parameters[i], s_.tensor(built_.parameters[i]).data);
    std::vector<double> rows(static_cast<size_t>(graph_[graph_.input].desc.shape.elements()));
    std::iota(rows.begin(), rows.end(), 0);
    const bool indices = s_.entry("input")->desc.dtype == DType::i32;
    set(graph_.input, indices ? s_.tensor("input").data : rows);
    s_.layer() ? forward_layer() : forward_loss();
    machine_.run(Part::backward);
    for (size_t i = 0; i < graph_.parameters.size(); ++i)
      compare(graph_.gradients[i], "gradient." + built_.parameters[i]);
  }

 private:
  void forward_layer() {
    machine_.run(Part::forward);
    least_ = largest_of(s_.tensor("input").data);
    compare(graph_.output, "output");
    const std::vector<double> upstream = s_.tensor("upstream").data;
    set(graph_.output_gradient, upstream);
    least_ = largest_of(upstream);
  }

  void forward_loss() {
    set(graph_.target, s_.tensor("target").data);
    machine_.run(Part::prologue);
    const double weight = graph_.target_weight == kNoValue
                              ? 1
                              : golden::content(machine_.view(graph_.target_weight)).at(0);
    const double divisor = golden::divisor_number(divisor_of(built_.spec, graph_),
                                                  graph_[graph_.output].desc.shape, weight);
    set(graph_.divisor, {divisor});
    least_ = 1 / std::abs(divisor);  // what a probability of one weighs
    machine_.run(Part::forward);
    machine_.run(Part::loss);
    compare(graph_.loss, "output");
  }

  void set(ValueId v, const std::vector<double>& data) { golden::fill(machine_.view(v), data); }
  void compare(ValueId v, const std::string& key) {
    const double far = distance(golden::content(machine_.view(v)), s_.tensor(key).data, least_);
    CHECK_MESSAGE(far <= tolerance_, s_.name << "." << key << " is " << far << " away");
  }

  const ModuleSample& s_;
  const SampleGraph& built_;
  const Graph& graph_;
  Machine machine_;
  double tolerance_;
  double least_ = 0;
};

}  // namespace

TEST_CASE("PyTorch's own samples of its modules and functions: values and all gradients") {
  const golden::Document fixture = golden::read_fixture("modules");
  const SafeTensors file = SafeTensors::read(test_file("fixtures/modules.safetensors"));
  int samples = 0;
  for (const Node& node : at(fixture.root, "cases").items) {
    const ModuleSample sample{node, file};
    CAPTURE(sample.name);
    const SampleGraph built(sample);
    SampleRun<InDouble>(sample, built, kInDouble).check();
    SampleRun<WithKernels>(sample, built, kInFloat).check();
    ++samples;
  }
  CHECK(samples == 845);  // all that modules.py could say in a spec
}

}  // namespace dpt
