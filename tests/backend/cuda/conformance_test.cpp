// Compares every implementation for GPUs, on a GPU, with the operator's reference implementation:
// on the operator's samples and on nodes of models of real sizes. Each comparison runs the kernel
// twice and requires equal bits. Each operator has a process of its own; each operator,
// implementation and type has a line of output. Environment:
//   DPT_OPERATORS=linear,attention  only these; -linear,attention: all others
//   DPT_CONFORMANCE_JOBS=8          processes at a time; 0: no processes, for sanitizers. Default:
//                                   five eighths of the cores, at least 4: a process waits for its
//                                   GPU or computes the reference, and other probes run beside
//   DPT_ANNOUNCED_FALLBACKS="convolution:cudnn:f32 ..."  where an own kernel may replace a
//                                   library's; anywhere else that is a failure
#include "backend/cuda/conformance.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "backend/cuda/implementations/kernels.h"
#include "backend/cuda/in_processes.h"
#include "backend/cuda/interface/load.h"
#include "backend/cuda/on_device.h"
#include "backend/cuda/real_nodes.h"
#include "base/fail.h"

namespace dpt::cuda {
namespace {

std::string environment(const char* name, const char* otherwise) {
  const char* const text = std::getenv(name);
  return text ? text : otherwise;
}

bool announced(const std::string& op, const std::string& row, const std::string& type) {
  const std::string all = " " + environment("DPT_ANNOUNCED_FALLBACKS", "") + " ";
  return all.find(fmt::format(" {}:{}:{} ", op, row, type)) != std::string::npos;
}

// Prepared once and run twice.
Conformance::Got run_twice(DeviceApi& api, const KernelType& row, const KernelQuery& q,
                           std::vector<HostTensor>& in, bool tf32) {
  OnDevice kernel(api, row, q, in, kStep, tf32);
  std::vector<HostTensor> got = kernel.run(), again = kernel.run();
  same_bits(q, got, again);
  return {std::move(got), kernel.fallbacks()};
}

std::string line_of(const Conformance::Key& key, const Outcome& outcome) {
  return fmt::format("[{}] {} {} {}: {}", outcome.failed == 0 ? 'x' : ' ', std::get<0>(key),
                     std::get<1>(key), std::get<2>(key), outcome.text());
}

void compare_operator(const std::string& name, const std::vector<RealNode>& nodes,
                      const WriteLine& write) {
  const auto api = cuda_module().open(0);
  Conformance c([&](const KernelType& row, const KernelQuery& q, std::vector<HostTensor>& in,
                    bool tf32) { return run_twice(*api, row, q, in, tf32); },
                announced);
  for (const Sample& s : samples_of(name)) c.compare(s);
  for (const RealNode& n : nodes)
    if (n.query.op == name) c.compare(n.query, n.tf32);
  for (const auto& [key, outcome] : c.outcomes()) write(line_of(key, outcome));
  require(c.count() > 0, "an operator has a row that takes its samples");
}

TEST_CASE("a kernel is prepared once and run twice") {
  FakeApi api;
  const KernelType* row = nullptr;
  for (const KernelType& r : cuda_kernels())
    if (r.op == "linear" && r.name == "cublaslt") row = &r;
  REQUIRE(row != nullptr);
  const Sample sample = samples_of("linear")[0];
  std::mt19937 random(1);
  std::vector<HostTensor> in;
  for (size_t i = 0; i < sample.query.in.size(); ++i)
    in.push_back(sample_input(sample, i, DType::f32, random));
  const int64_t before = api.calls();
  OnDevice kernel(api, *row, sample.query, in, kStep);
  const int64_t preparing = api.calls() - before;
  run_twice(api, *row, sample.query, in, false);
  const auto first = kernel.run();
  const int64_t after_one = api.calls();
  const auto second = kernel.run();
  CHECK(preparing > 0);
  CHECK(first.size() == second.size());
  // Results are overwritten, computed and copied; nothing is prepared, and no stream is made.
  CHECK(api.calls() - after_one < preparing);
}

TEST_CASE("kernels agree with the reference on a GPU, on every sample and at real sizes") {
  const GpuSurvey survey = survey_gpus();
  if (!survey.problem.empty()) {
    MESSAGE("skipped: ", survey.problem);
    return;
  }
  const std::vector<RealNode> nodes = real_nodes();
  std::string chosen = environment("DPT_OPERATORS", "");
  const bool others = chosen.starts_with('-');
  if (others) chosen.erase(0, 1);
  std::vector<std::string> names;
  for (const OperatorType& type : operator_table()) {
    const std::string name(type.name);
    const bool listed = ("," + chosen + ",").find("," + name + ",") != std::string::npos;
    if (!type.is(Trait::view) && (chosen.empty() || listed != others)) names.push_back(name);
  }
  REQUIRE(!names.empty());
  constexpr int kSeconds = 120;  // of an operator; its libraries compile for some seconds
  int lines = 0;
  const auto body = [&](const std::string& name, const WriteLine& write) {
    compare_operator(name, nodes, write);
  };
  const auto ended = [&](const Piece& piece) {
    for (const std::string& line : piece.lines) {
      std::printf("conformance: %s\n", line.c_str());
      CHECK_MESSAGE(line.starts_with("[x]"), line);
      ++lines;
    }
    if (!piece.problem.empty())
      std::printf("conformance: [ ] %s: %s\n", piece.name.c_str(), piece.problem.c_str());
    std::fflush(stdout);
    CHECK_MESSAGE(piece.problem.empty(), piece.name, ": ", piece.problem);
  };
  const unsigned by_cores = std::max(4U, std::thread::hardware_concurrency() * 5 / 8);
  const int jobs =
      std::atoi(environment("DPT_CONFORMANCE_JOBS", std::to_string(by_cores).c_str()).c_str());
  if (jobs > 0)
    in_processes(names, jobs, kSeconds, body, ended);
  else
    for (const std::string& name : names) {
      Piece piece{name, {}, ""};
      try {
        body(name, [&](const std::string& line) { piece.lines.push_back(line); });
      } catch (const std::exception& e) {
        piece.problem = e.what();
      }
      ended(piece);
    }
  CHECK(lines >= std::ssize(names));
}

TEST_CASE("a piece of a test that throws, crashes or hangs leaves the others alone") {
  std::map<std::string, Piece> pieces;
  in_processes(
      {"throws", "crashes", "hangs", "exits", "good"}, 2, 3,
      [](const std::string& name, const WriteLine& write) {
        write("begun");
        if (name == "throws") fail(Fault::failed, "a reason");
        if (name == "crashes") std::raise(SIGSEGV);
        if (name == "exits") std::_Exit(9);
        while (name == "hangs") std::this_thread::yield();
        write("done");
      },
      [&](const Piece& piece) { pieces[piece.name] = piece; });
  CHECK(pieces.size() == 5);
  CHECK(pieces["throws"].problem == "a reason");
  CHECK(pieces["crashes"].problem.starts_with("ended by signal 11"));
  CHECK(pieces["hangs"].problem == "not done after 3 s");
  CHECK(pieces["exits"].problem == "ended with exit code 9");
  CHECK(pieces["good"].problem == "");
  CHECK(pieces["good"].lines == std::vector<std::string>{"begun", "done"});
  CHECK(pieces["hangs"].lines == std::vector<std::string>{"begun"});
}

TEST_CASE("what fails in a comparison is recorded, and the comparison goes on") {
  int calls = 0;
  const auto run = [&](const KernelType& row, const KernelQuery& q, std::vector<HostTensor>& in,
                       bool) {
    FakeApi api;
    Conformance::Got got{run_on(api, row, q, in, kStep), {}};
    if (calls++ == 0) fail(Fault::device, "a fault of the GPU");
    if (calls == 2) got.out[0].set(0, 1e6);
    if (calls == 3) got.fallbacks = {"there is no algorithm"};
    return got;
  };
  Conformance c(run);
  for (const Sample& s : samples_of("relu")) c.compare(s);
  REQUIRE(calls > 3);
  CHECK(c.count() == calls);
  int failed = 0;
  for (const auto& [key, outcome] : c.outcomes()) failed += outcome.failed;
  CHECK(failed == 3);
  CHECK(c.failures().find("a fault of the GPU") != std::string::npos);
  calls = 0;
  Conformance lenient(
      run, [](const std::string&, const std::string&, const std::string&) { return true; });
  for (const Sample& s : samples_of("relu")) lenient.compare(s);
  failed = 0;
  for (const auto& [key, outcome] : lenient.outcomes()) failed += outcome.failed;
  CHECK(failed == 2);  // the fallback was announced
}

}  // namespace
}  // namespace dpt::cuda
