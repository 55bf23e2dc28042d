// A graph of dptrain's for one ONNX case, run twice: by the operators' plain loops in double, and
// in single precision by the kernels that a run takes.
#pragma once

#include <any>
#include <string>
#include <string_view>
#include <vector>

#include "graph/builder.h"
#include "onnx/cases.h"

namespace dpt::onnx {

// Why a case says what dptrain cannot say.
struct Inexpressible {
  std::string reason;
};

// Both limits hold together as in numpy.allclose: |got - want| <= absolute + relative * |want|.
struct Tolerance {
  double relative = 0, absolute = 0;
};
inline constexpr Tolerance kMoved{};  // nothing is computed, so no bit may change
// ONNX's own is 1e-3 and 1e-7. The wanted numbers are numpy's in single precision: a few roundings
// of 6e-8 each; 1e-7 for layer norms, whose terms of size 1 cancel. Measured: within 0.8 of it
// there and 0.2 elsewhere.
inline constexpr Tolerance kRounded{2e-6, 1e-7};

struct Comparison {
  std::string what;
  std::vector<double> got, want;
  Tolerance tolerance;
};

class Net {
 public:
  explicit Net(GraphBuilder::Mode mode = GraphBuilder::Mode{}) : g_(graph_, mode) {}

  // A tensor of the case as real numbers, or as numbers of classes or rows; with other extents
  // (of as many elements) where some are given.
  ValueId real(const Tensor& t, const std::vector<int64_t>& extents = {});
  ValueId indices(const Tensor& t);

  // A layer with settings as a spec writes them, on values, with the contents of its parameters.
  ValueId layer(std::string_view name, const std::string& settings, const std::vector<ValueId>& in,
                const std::vector<std::vector<double>>& parameters = {});
  ValueId op(std::string_view name, const std::vector<ValueId>& in, std::any attrs) {
    return g_.apply(name, in, std::move(attrs));
  }
  // The results of the node that made a value.
  std::vector<ValueId> results(ValueId v) const;
  // The masks of dropout layers.
  void masks(const Tensor& t);
  // The running mean and variance of a batch norm, and what follows them.
  void running(const Tensor& mean, const Tensor& variance);
  ValueId after_update(size_t buffer) const { return graph_.updates.at(buffer).next; }

  void expect(ValueId v, const Tensor& want, Tolerance tolerance) {
    expected_.push_back({v, want, tolerance});
  }
  std::vector<Comparison> run() const;

 private:
  struct Expected {
    ValueId value;
    Tensor want;
    Tolerance tolerance;
  };
  Graph graph_;
  GraphBuilder g_;
  std::vector<std::pair<ValueId, std::vector<double>>> filled_;
  std::vector<Expected> expected_;
};

// The loss of a spec for one batch, both ways.
std::vector<double> loss(std::string_view name, const std::string& settings,
                         const std::vector<int64_t>& extents, const std::vector<double>& output,
                         const std::vector<double>& target);

// The layers, losses and optimizers that cases have used so far.
std::vector<std::string>& used_words();

// A number as a spec may write it, with all the digits of its bits; and a list of them.
std::string text(double x);
std::string text(const std::vector<double>& list);

}  // namespace dpt::onnx
