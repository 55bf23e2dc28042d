// Questions about CUDA that only a GPU can answer, one per test case. tools/gpu/probe.sh runs each
// in a process of its own, since a fault of the GPU spoils all later answers of its process.
// Results are lines that begin with "probe: ". Without a GPU the test cases are skipped. On a fake
// GPU they check the order of calls, and times mean nothing.
//   DPT_TIME_SPEC="spec.yaml key=value ..."  the model whose kernels are timed
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "backend/cuda/conformance.h"
#include "backend/cuda/implementations/kernels.h"
#include "backend/cuda/interface/context.h"
#include "backend/cuda/interface/launch.h"
#include "backend/cuda/interface/load.h"
#include "base/fail.h"
#include "base/units.h"
#include "cli/spec_argument.h"
#include "graph/interpret.h"
#include "graph/operator.h"

namespace dpt::cuda {
namespace {

void say(const std::string& line) {
  std::printf("probe: %s\n", line.c_str());
  std::fflush(stdout);
}

// Null: there is no GPU, which is said.
std::unique_ptr<DeviceApi> open_gpu() {
  if (const std::string reason = why_no_gpu(); !reason.empty()) {
    MESSAGE("skipped: ", reason);
    return nullptr;
  }
  return cuda_module().open(0);
}

float* floats(const DeviceBuffer& m) { return reinterpret_cast<float*>(m.data()); }

std::vector<float> read(DeviceApi& api, Stream& stream, const DeviceBuffer& from, size_t count) {
  const DeviceBuffer host(api, MemoryKind::pinned, count * sizeof(float));
  stream.copy(host.data(), from.data(), count * sizeof(float));
  stream.synchronise();
  std::vector<float> out(count);
  std::memcpy(out.data(), host.data(), count * sizeof(float));
  return out;
}

double seconds_of(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// In the shortest of some rounds.
double shortest(int rounds, const std::function<void()>& f) {
  double out = 1e30;
  for (int i = 0; i < rounds; ++i) out = std::min(out, seconds_of(f));
  return out;
}

TEST_CASE("a captured step on a GPU is replayed with the same results") {
  const auto api = open_gpu();
  if (!api) return;
  const auto stream = api->make_stream();
  constexpr size_t kCount = 1000;
  const DeviceBuffer x(*api, MemoryKind::device, kCount * sizeof(float)),
      y(*api, MemoryKind::device, kCount * sizeof(float));
  launch(*stream, Fill<float>{floats(x), 1}, kCount);  // the first call loads the kernel's code
  stream->begin_capture();
  launch(*stream, Fill<float>{floats(x), 3}, kCount);
  stream->copy(y.data(), x.data(), kCount * sizeof(float));
  const auto graph = stream->end_capture();
  say(fmt::format("capture: a graph of {} nodes", graph->nodes()));
  for (int i = 0; i < 3; ++i) {
    stream->fill(y.data(), 0, kCount * sizeof(float));
    stream->launch(*graph);
    CHECK(read(*api, *stream, y, kCount) == std::vector<float>(kCount, 3));
  }
  say("replay: three times with the same results");
}

struct Product {
  static constexpr int64_t kN = 64;
  static constexpr size_t kBytes = kN * kN * sizeof(float);
  DeviceBuffer a, b, d, workspace;
  std::unique_ptr<DeviceWork> work;
  explicit Product(DeviceApi& api)
      : a(api, MemoryKind::device, kBytes),
        b(api, MemoryKind::device, kBytes),
        d(api, MemoryKind::device, kBytes),
        work(api.prepare(Matmul{.m = kN, .n = kN, .k = kN})) {
    workspace = DeviceBuffer(api, MemoryKind::device, std::max<size_t>(1, work->workspace_bytes()));
  }
  void fill(Stream& stream) const {
    launch(stream, Fill<float>{floats(a), 2}, kN * kN);
    launch(stream, Fill<float>{floats(b), 0.5F}, kN * kN);
  }
  void run(Stream& stream) const {
    const std::array<std::byte*, 3> tensors = {a.data(), b.data(), d.data()};
    stream.run(*work, tensors, workspace.data());
  }
  bool right(DeviceApi& api, Stream& stream) const {
    return read(api, stream, d, kN * kN) == std::vector<float>(kN * kN, kN);
  }
};

TEST_CASE("the first library call on a GPU is made outside of a capture") {
  const auto api = open_gpu();
  if (!api) return;
  const auto stream = api->make_stream();
  const Product product(*api);
  product.fill(*stream);
  product.run(*stream);
  CHECK(product.right(*api, *stream));
  stream->begin_capture();
  product.run(*stream);
  const auto graph = stream->end_capture();
  stream->fill(product.d.data(), 0, Product::kBytes);
  stream->launch(*graph);
  CHECK(product.right(*api, *stream));
  say(fmt::format("{}: first call outside of the capture, then captured and replayed",
                  product.work->algorithm()));
}

// Captures `run`, whose library is called for the first time, launches the graph and checks the
// result. A library that loads code or allocates in a capture ends it (error 900). Which of the two
// happens is what the probe finds out: both are results.
void probe_first_call(Stream& stream, const DeviceWork& work, const std::function<void()>& run,
                      const std::function<bool()>& right) {
  std::unique_ptr<CapturedGraph> graph;
  try {
    stream.begin_capture();
    run();
    graph = stream.end_capture();
  } catch (const Error& e) {
    stream.cancel_capture();
    say(fmt::format("{}: first call inside of the capture ends it: {}", work.algorithm(),
                    e.what()));
    return;
  }
  stream.launch(*graph);
  CHECK(right());
  say(fmt::format("{}: first call inside of the capture", work.algorithm()));
}

TEST_CASE("the first library call on a GPU is made inside of a capture") {
  const auto api = open_gpu();
  if (!api) return;
  const auto stream = api->make_stream();
  const Product product(*api);
  product.fill(*stream);
  probe_first_call(
      *stream, *product.work, [&] { product.run(*stream); },
      [&] { return product.right(*api, *stream); });
}

TEST_CASE("the first call of cuDNN on a GPU is made inside of a capture") {
  const auto api = open_gpu();
  if (!api) return;
  const auto stream = api->make_stream();
  const DnnConvolution c{.x = {2, 8, 8, 8},
                         .w = {8, 8, 1, 1},
                         .y = {2, 8, 8, 8},
                         .window = {.kernel = {1, 1, 1}, .stride = {1, 1, 1}}};
  const auto work = api->prepare(c);
  const DeviceBuffer x(*api, MemoryKind::device, 1024 * sizeof(float)),
      w(*api, MemoryKind::device, 64 * sizeof(float)),
      y(*api, MemoryKind::device, 1024 * sizeof(float)),
      workspace(*api, MemoryKind::device, std::max<size_t>(1, work->workspace_bytes()));
  launch(*stream, Fill<float>{floats(x), 2}, 1024);
  launch(*stream, Fill<float>{floats(w), 0.5F}, 64);
  const std::array<std::byte*, 3> tensors = {x.data(), w.data(), y.data()};
  probe_first_call(
      *stream, *work, [&] { stream->run(*work, tensors, workspace.data()); },
      [&] { return read(*api, *stream, y, 1024) == std::vector<float>(1024, 8); });
}

TEST_CASE("the time between two kernels on a GPU") {
  const auto api = open_gpu();
  if (!api) return;
  const auto stream = api->make_stream();
  const DeviceBuffer x(*api, MemoryKind::device, 256);
  constexpr int kKernels = 1000;
  const auto enqueue = [&] {
    for (int i = 0; i < kKernels; ++i)
      launch(*stream, Fill<float>{floats(x), static_cast<float>(i)}, 1);
  };
  const double one_by_one = shortest(5, [&] {
    enqueue();
    stream->synchronise();
  });
  stream->begin_capture();
  enqueue();
  const auto graph = stream->end_capture();
  stream->launch(*graph);
  stream->synchronise();
  const double replayed = shortest(5, [&] {
    stream->launch(*graph);
    stream->synchronise();
  });
  say(fmt::format("launch gap: {:.2f} us a kernel one by one, {:.2f} us in a graph",
                  one_by_one / kKernels * 1e6, replayed / kKernels * 1e6));
}

TEST_CASE("the memory bandwidth of a GPU") {
  const auto api = open_gpu();
  if (!api) return;
  const auto stream = api->make_stream();
  const bool large = api->properties().memory > 8 * kGiB;
  const size_t bytes = large ? kGiB : 64 * kKiB;
  const auto count = static_cast<int64_t>(bytes / sizeof(float));
  const DeviceBuffer x(*api, MemoryKind::device, bytes), y(*api, MemoryKind::device, bytes);
  const DeviceBuffer host(*api, MemoryKind::pinned, bytes);
  const auto rate = [&](const char* what, double moved, const std::function<void()>& f) {
    f();
    stream->synchronise();
    const double s = shortest(5, [&] {
      f();
      stream->synchronise();
    });
    say(fmt::format("bandwidth: {} {:.0f} GB/s", what, moved / s * 1e-9));
  };
  const auto all = static_cast<double>(bytes);
  rate("fill", all, [&] { launch(*stream, Fill<float>{floats(x), 1}, count); });
  rate("copy", 2 * all, [&] { stream->copy(y.data(), x.data(), bytes); });
  rate("relu", 2 * all, [&] {
    launch(*stream, Map<Relu, float>{{}, floats(x), floats(y)}, count);
  });
  rate("to the host", all, [&] { stream->copy(host.data(), x.data(), bytes); });
  rate("from the host", all, [&] { stream->copy(x.data(), host.data(), bytes); });
}

// Random values for input i of an operator, in the range of the operator's samples: real numbers
// whose products neither vanish nor overflow, and valid indices. Zeros would draw less power, so
// clocks and times would be those of no real step. At most `kMost` values, which repeat.
HostTensor random_values(const KernelQuery& q, size_t i) {
  constexpr int64_t kMost = 1 << 13;
  const TensorDesc& d = q.in[i];
  Sample sample{q};
  for (const Sample& s : samples_of(q.op))
    if (s.query.in.size() == q.in.size()) {
      sample.ranges = s.ranges;
      break;
    }
  // Indices of max_pool's gradients: the first element of each window.
  if (is_indices_gradient(q) && i == 1) sample.ranges.assign(2, {.low = 0, .high = 1});
  sample.query.in[i] = {is_half(d.dtype) ? DType::f32 : d.dtype,
                        {std::min(kMost, d.shape.elements())}};
  std::mt19937 random(static_cast<uint32_t>(i));
  HostTensor values = sample_input(sample, i, DType::f32, random);
  HostTensor out({d.dtype, sample.query.in[i].shape});
  for (size_t e = 0; e < values.size(); ++e) out.set(e, values.get(e));
  return out;
}

// The nodes of a program on random inputs, each captured some times and replayed.
class NodeTimes {
 public:
  NodeTimes(DeviceApi& api, bool tf32) : api_(api), stream_(api.make_stream()), tf32_(tf32) {}

  void add(const KernelQuery& q, const KernelType& row) {
    std::string key = fmt::format("{} {}", q.op, row.name);
    for (const auto* side : {&q.in, &q.out})
      for (const TensorDesc& d : *side)
        key += fmt::format(" {}{}", name_of(d.dtype), d.shape.str());
    Row& r = rows_[key];
    if (r.count++ > 0) return;
    r.text =
        fmt::format("{} {} {} {}", q.op, row.name, name_of(q.in[0].dtype), q.in[0].shape.str());
    try {
      time(q, row, r);
    } catch (const Error& e) {
      r.text += std::string(": ") + e.what();
    }
  }
  void print() const {
    std::vector<Row> all;
    double sum = 0;
    for (const auto& [key, row] : rows_) {
      all.push_back(row);
      sum += row.seconds * row.count;
    }
    std::ranges::sort(
        all, [](const Row& a, const Row& b) { return a.seconds * a.count > b.seconds * b.count; });
    for (const Row& r : all)
      say(fmt::format("{:9.2f} us x {:3} {:5.1f} % {:6.0f} GB/s  {}", r.seconds * 1e6, r.count,
                      100 * r.seconds * r.count / sum,
                      r.seconds > 0 ? r.bytes / r.seconds * 1e-9 : 0.0, r.text));
    say(fmt::format("sum of {} nodes: {:.1f} us", all.size(), sum * 1e6));
  }

 private:
  struct Row {
    std::string text;
    int count = 0;
    double seconds = 0, bytes = 0;
  };

  void time(const KernelQuery& q, const KernelType& row, Row& r) {
    std::vector<DeviceBuffer> memory;
    std::vector<TensorView> views;
    for (const auto* side : {&q.in, &q.out})
      for (const TensorDesc& d : *side) {
        const size_t bytes = std::max<size_t>(1, d.bytes());
        memory.emplace_back(api_, MemoryKind::device, bytes);
        views.push_back({d, memory.back().data()});
        stream_->fill(memory.back().data(), 0, bytes);
        r.bytes += static_cast<double>(d.bytes());
      }
    for (size_t i = 0; i < q.in.size(); ++i)
      if (q.in[i].bytes() > 0) fill(memory[i], q.in[i].bytes(), random_values(q, i));
    const DeviceBuffer state(api_, MemoryKind::device, sizeof(StepState));
    stream_->fill(state.data(), 0, sizeof(StepState));
    DeviceContext context(api_, *stream_, reinterpret_cast<StepState*>(state.data()));
    context.tf32 = tf32_;
    const DeviceContext::Use use(context);
    const auto kernel = row.prepare(q);
    for (const std::string& answer : context.take_answers()) r.text += ", " + answer;
    const DeviceBuffer workspace(api_, MemoryKind::device, context.workspace_bytes());
    context.workspace = workspace.data();
    const StepContext step;
    const std::span all(views);
    const KernelArgs args{all.first(q.in.size()), all.subspan(q.in.size()), &step};
    kernel->run(args);  // not the first time in a capture
    stream_->synchronise();
    constexpr int kTimes = 10;
    stream_->begin_capture();
    for (int i = 0; i < kTimes; ++i) kernel->run(args);
    const auto graph = stream_->end_capture();
    stream_->launch(*graph);
    stream_->synchronise();
    r.seconds = shortest(3,
                         [&] {
                           stream_->launch(*graph);
                           stream_->synchronise();
                         }) /
                kTimes;
  }

  void fill(const DeviceBuffer& memory, size_t bytes, HostTensor values) {
    const size_t piece = values.desc.bytes();
    const DeviceBuffer pinned(api_, MemoryKind::pinned, piece);
    std::memcpy(pinned.data(), values.view().data, piece);
    stream_->copy(memory.data(), pinned.data(), piece);
    for (size_t at = piece; at < bytes; at *= 2)
      stream_->copy(memory.data() + at, memory.data(), std::min(at, bytes - at));
    stream_->synchronise();
  }

  DeviceApi& api_;
  std::unique_ptr<Stream> stream_;
  bool tf32_;
  std::map<std::string, Row> rows_;
};

TEST_CASE("the time of every kernel of a step on a GPU") {
  const char* const asked = std::getenv("DPT_TIME_SPEC");
  if (asked == nullptr) {
    MESSAGE("skipped: DPT_TIME_SPEC names no spec");
    return;
  }
  const auto api = open_gpu();
  if (!api) return;
  std::istringstream words(asked);
  SpecArgument argument;
  words >> argument.path;
  // A value may have spaces: each override is a word with =.
  for (std::string word; words >> word;)
    if (word.find('=') != std::string::npos || argument.overrides.empty())
      argument.overrides.push_back(word);
    else
      argument.overrides.back() += " " + word;
  argument.overrides.emplace_back("device=cuda");
  std::unique_ptr<const Session> session;
  try {
    session =
        open_session(load(argument), {.runs = false, .gpus = GpuSurvey{}, .sizes_only = true});
  } catch (const BadSpec& e) {
    FAIL(e.text);
  }
  NodeTimes times(*api, session->precision.tf32);
  const Program& program = session->model.programs.rbegin()->second;  // of a full batch
  for (const Part part : {Part::prologue, Part::forward, Part::loss, Part::backward})
    for (const Instruction& i : program.part(part)) {
      const GraphNode& n = program.graph.nodes[i.node];
      if (n.op->is(Trait::view) || n.op->name == "copy") continue;
      times.add(query_of(program.graph, i.node, program.rows), *i.kernel);
    }
  times.print();
}

}  // namespace
}  // namespace dpt::cuda
