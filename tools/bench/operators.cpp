// Time of every kernel on the samples of its operator, beside the plain loops: the samples that the
// tests compare them on.
//
//   operators [--rounds N] [OPERATOR...]      # all operators, 200 rounds
//
// Best of the rounds, one thread, warm. Samples are small, so this shows what a call costs and
// which kernel lags behind its neighbours; tools/bench/kernels.cpp has the sizes of training.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "backend/cpu/kernels.h"
#include "graph/interpret.h"
#include "graph/operator.h"

namespace {

using namespace dpt;

double best_nanoseconds(Kernel& kernel, const KernelArgs& args, int rounds) {
  double best = 1e18;
  for (int r = 0; r < rounds; ++r) {
    const auto start = std::chrono::steady_clock::now();
    kernel.run(args);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count());
  }
  return best;
}

void time_sample(const OperatorType& type, const Sample& sample, int rounds) {
  std::mt19937 random(1);
  std::vector<HostTensor> in, out;
  std::vector<TensorView> from, to;
  for (size_t i = 0; i < sample.query.in.size(); ++i)
    in.push_back(sample_input(sample, i, DType::f32, random));
  for (const TensorDesc& d : sample.query.out) out.emplace_back(d);
  for (HostTensor& t : in) from.push_back(t.view());
  for (HostTensor& t : out) to.push_back(t.view());
  const StepContext context{.seed = 1};
  const KernelArgs args{from, to, &context};
  const double flops = type.flops ? type.flops(sample.query.in, sample.query.out)
                                  : static_cast<double>(sample.query.out[0].shape.elements());
  std::string shapes;
  for (const TensorDesc& d : sample.query.in) shapes += d.shape.str() + " ";
  for (const KernelType& row : cpu_kernels()) {
    if (!row.op.empty() && row.op != type.name) continue;
    if (row.refuses && !row.refuses(sample.query).empty()) continue;
    const double ns = best_nanoseconds(*row.prepare(sample.query), args, rounds);
    std::printf("%-30s %-10s %9.0f ns %8.2f GFLOP/s  %s\n", std::string(type.name).c_str(),
                std::string(row.name).c_str(), ns, flops / ns, shapes.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 200;
  std::set<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--rounds" && i + 1 < argc)
      rounds = std::max(1, std::atoi(argv[++i]));
    else
      wanted.insert(argv[i]);
  }
  size_t found = 0;
  for (const OperatorType& type : operator_table()) {
    if (type.is(Trait::view) || (!wanted.empty() && !wanted.contains(std::string(type.name))))
      continue;
    ++found;
    for (const Sample& s : samples_of(type.name)) time_sample(type, s, rounds);
  }
  if (!wanted.empty() && found != wanted.size()) {
    std::fprintf(stderr, "operators: there is no such operator\n");
    return 2;
  }
  return 0;
}
