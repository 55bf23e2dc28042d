// What holds for every operator: samples fit the shape rule, plain loops agree in both precisions,
// gradients agree with central differences.
#include <algorithm>

#include <doctest/doctest.h>

#include "base/error.h"
#include "graph/interpret.h"
#include "graph/operator.h"

namespace dpt {
namespace {

const StepContext kContext{.seed = 3, .step = 5, .first_sample = 11};

std::vector<HostTensor> inputs_of(const Sample& s, DType real) {
  std::mt19937 random(17);
  std::vector<HostTensor> in;
  for (size_t i = 0; i < s.query.in.size(); ++i) in.push_back(sample_input(s, i, real, random));
  return in;
}

// The results of an operator, and d sum(weights * results) / d input by its gradient, for each
// input that has one. Weights of results are given as dy; a loss has none, which means 1.
class GradientCheck {
 public:
  explicit GradientCheck(const Sample& s) : sample_(s), g_(graph_) {
    std::vector<ValueId> in;
    for (HostTensor& t : inputs_of(s, DType::f64)) {
      in.push_back(g_.input("x", t.desc));
      values_.push_back(t);
    }
    inputs_ = in.size();
    g_.apply(s.query.op, in, s.query.attrs);
    const GraphNode node = graph_.nodes[0];
    while (values_.size() < graph_.values.size())
      values_.emplace_back(graph_.values[values_.size()].desc);
    results_ = node.out;
    std::mt19937 random(23);
    const bool loss =
        graph_[results_[0]].desc.dtype == DType::f64 && s.query.out[0].dtype == DType::f64;
    for (size_t r = 0; r < results_.size(); ++r) {
      // Only the first result has an upstream: the others are for the gradient's own use.
      dy_.push_back(loss || r > 0 ? kNoValue : g_.input("dy", graph_[results_[r]].desc));
      if (dy_.back() == kNoValue) continue;
      values_.emplace_back(graph_[dy_.back()].desc);
      for (size_t i = 0; i < values_.back().size(); ++i)
        values_.back().set(i, std::uniform_real_distribution<double>(-1, 1)(random));
    }
    gradients_ = node.op->gradient(g_, node, dy_);
    while (values_.size() < graph_.values.size())
      values_.emplace_back(graph_.values[values_.size()].desc);
    run_graph(graph_, values_, kContext);
  }

  size_t inputs() const { return inputs_; }
  bool rounds() const { return graph_[results_[0]].desc.dtype != DType::f64; }
  bool has(size_t input) const { return gradients_[input] != kNoValue; }
  HostTensor& input(size_t i) { return values_[i]; }
  HostTensor& gradient(size_t i) { return values_[static_cast<size_t>(gradients_[i])]; }

  double weighted_sum() {
    std::vector<HostTensor> in(values_.begin(), values_.begin() + static_cast<long>(inputs_));
    std::vector<HostTensor> out =
        run_reference(op(sample_.query.op), in, sample_.query.attrs, kContext);
    if (dy_[0] == kNoValue) return out[0].get(0);
    double sum = 0;
    HostTensor& dy = values_[static_cast<size_t>(dy_[0])];
    for (size_t i = 0; i < out[0].size(); ++i) sum += out[0].get(i) * dy.get(i);
    return sum;
  }

 private:
  const Sample& sample_;
  Graph graph_;
  GraphBuilder g_;
  std::vector<HostTensor> values_;
  size_t inputs_ = 0;
  std::vector<ValueId> results_, dy_, gradients_;
};

}  // namespace

TEST_CASE("every operator has samples, and the graph gives them the shapes of its shape rule") {
  for (const OperatorType& t : operator_table()) {
    CAPTURE(t.name);
    CHECK_FALSE(samples_of(t.name).empty());
    for (const Sample& s : samples_of(t.name)) {
      CHECK(s.query.op == t.name);
      CHECK(t.infer(s.query.in, s.query.attrs) == s.query.out);
      CHECK(s.ranges.size() <= s.query.in.size());
    }
  }
}

TEST_CASE("operators that compute gradients say so") {
  for (const OperatorType& t : operator_table()) {
    CAPTURE(t.name);
    const bool named = t.name.ends_with("_gradient") || t.name.ends_with("_backward");
    CHECK(t.is(Trait::backward) == (named && t.name != "scale_gradient"));
    CHECK((!t.is(Trait::backward) || t.gradient == nullptr));
  }
}

TEST_CASE("plain loops write every element, the same in single and double precision") {
  for (const OperatorType& t : operator_table())
    for (const Sample& s : samples_of(t.name)) {
      CAPTURE(t.name);
      CAPTURE(s.query.in[0].shape.str());
      auto single = inputs_of(s, DType::f32);
      std::vector<HostTensor> twice;
      for (HostTensor& x : single) {
        twice.emplace_back(TensorDesc{is_float(x.desc.dtype) ? DType::f64 : x.desc.dtype,
                                      x.desc.shape, x.desc.layout});
        for (size_t i = 0; i < x.size(); ++i) twice.back().set(i, x.get(i));
      }
      auto a = run_reference(t, single, s.query.attrs, kContext);
      auto b = run_reference(t, twice, s.query.attrs, kContext);
      for (size_t r = 0; r < a.size(); ++r) {
        CHECK(a[r].desc.dtype == s.query.out[r].dtype);
        for (size_t i = 0; i < a[r].size(); ++i) {
          const double x = a[r].get(i), y = b[r].get(i);
          // Sums are in double, so only the rounding of the result is left; dropout's scale and
          // additions are rounded too.
          INFO("result ", r, " element ", i, ": ", x, " and ", y);
          REQUIRE(std::abs(x - y) <= 4e-7 * std::max(1.0, std::abs(y)));
        }
      }
    }
}

TEST_CASE("every gradient agrees with central differences") {
  int checked = 0;
  for (const OperatorType& t : operator_table()) {
    if (t.gradient == nullptr) continue;
    for (const Sample& s : samples_of(t.name)) {
      if (!std::ranges::any_of(s.query.in, [](auto& d) { return is_float(d.dtype); })) continue;
      CAPTURE(t.name);
      CAPTURE(s.query.in[0].shape.str());
      GradientCheck check(s);
      if (check.rounds()) continue;  // a step, whatever the difference
      for (size_t i = 0; i < check.inputs(); ++i) {
        if (!check.has(i)) continue;
        REQUIRE(check.gradient(i).desc == check.input(i).desc);
        // About a hundred elements of a large input, in all of its rows and columns in turn: each
        // needs two runs of the operator.
        const size_t step = 1 + check.input(i).size() / 97;
        for (size_t e = 0; e < check.input(i).size(); e += step) {
          const double x = check.input(i).get(e), h = 1e-6;
          check.input(i).set(e, x + h);
          const double up = check.weighted_sum();
          check.input(i).set(e, x - h);
          const double down = check.weighted_sum();
          check.input(i).set(e, x);
          const double difference = (up - down) / (2 * h);
          // 1e-7: cancellation (1e-16 * |sum| / h) and the h^2 of the third derivative.
          INFO("input ", i, " element ", e, ": ", check.gradient(i).get(e), " and ", difference);
          REQUIRE(std::abs(check.gradient(i).get(e) - difference) <=
                  1e-7 * std::max(1.0, std::abs(difference)));
          ++checked;
        }
      }
    }
  }
  CHECK(checked > 5000);
}

}  // namespace dpt
