// Compares implementations of operators for GPUs with the operators' reference implementations. A
// comparison that fails or throws is recorded, and the next one is made.
#pragma once

#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "graph/interpret.h"
#include "graph/kernel.h"
#include "graph/operator.h"

namespace dpt::cuda {

// For each comparison.
inline const StepContext kStep{.seed = 7, .step = 3, .first_sample = 11};

// The result of all comparisons of one implementation of an operator with one type.
struct Outcome {
  int compared = 0, failed = 0;
  double worst = 0;          // the largest difference, as a multiple of the tolerance
  std::string first;         // what failed first
  std::string text() const;  // "12 comparisons, at most 0.31 of the tolerance"
};

class Conformance {
 public:
  struct Got {
    std::vector<HostTensor> out;
    std::vector<std::string> fallbacks;  // why own kernels ran in a library's place
  };
  // Runs an implementation at least twice and throws if the results differ in a bit. tf32: products
  // of f32 may round their factors to TF32.
  using Run = std::function<Got(const KernelType& row, const KernelQuery& q,
                                std::vector<HostTensor>& in, bool tf32)>;
  // Whether an implementation may fall back to own kernels for a type.
  using Announced =
      std::function<bool(const std::string& op, const std::string& row, const std::string& type)>;
  explicit Conformance(Run run, Announced announced = nullptr)
      : run_(std::move(run)), announced_(std::move(announced)) {}

  // A sample as it is, in the layouts that GPUs have, and in both halves.
  void compare(const Sample& s);
  // Also the operators of its gradient, on the numbers that they are given there.
  void compare_with_gradient(const Sample& s);
  // A node of a model as it stands, with the values of the operator's samples.
  void compare(const KernelQuery& q, bool tf32);

  using Key = std::tuple<std::string, std::string, std::string>;  // operator, implementation, type
  const std::map<Key, Outcome>& outcomes() const { return outcomes_; }
  const std::map<std::string, std::set<DType>>& compared() const { return compared_; }
  int count() const;
  std::string failures() const;  // a line each; empty: none

 private:
  std::vector<HostTensor> inputs(const Sample& s);
  // In all layouts and types. f32: plain, of f32.
  void compare(const KernelQuery& f32, std::vector<HostTensor> in);
  void make_mask(HostTensor& y, HostTensor& mask);
  void compare(const KernelQuery& q, std::vector<HostTensor>& values, double tolerance,
               bool tf32 = false);
  void compare(const KernelType& row, const KernelQuery& q, std::vector<HostTensor>& in,
               std::vector<HostTensor>& expected, double tolerance, bool tf32);

  Run run_;
  Announced announced_;
  std::mt19937 random_{1};
  std::map<std::string, std::set<DType>> compared_;
  std::map<Key, Outcome> outcomes_;
};

// Whether only the library that makes this result can read it: relu's mask.
bool opaque(const KernelQuery& q, size_t result);
// Throws if the results differ.
void same_bits(const KernelQuery& q, std::vector<HostTensor>& a, std::vector<HostTensor>& b);
bool is_indices_gradient(const KernelQuery& q);

}  // namespace dpt::cuda
