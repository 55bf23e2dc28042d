// The bytes that `dptrain plan` prints are those that are moved: on CPUs what the executors say
// that they read and write, on GPUs what fake ones are told.
#include "describe/traffic.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>

#include "base/ranges.h"
#include "engine/cpu/memory_watch.h"
#include "engine/gpu/fake_fleet.h"
#include "engine/gpu/gpu_specs.h"
#include "graph/kernel.h"
#include "session/arenas.h"
#include "session/buffers.h"
#include "session/update_partition.h"
#include "skip.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

using Words = std::vector<std::string>;

// Which worker a byte of the shared memory belongs to, by the layout of the buffers alone.
class Owners {
 public:
  Owners(const Session& s, const Buffers& b) {
    const Topology& t = s.devices.topology;
    const Program& any = s.model.programs.begin()->second;
    const auto shares = partition_update(any, s.model.layout, s.batches.global_batch, t);
    for (size_t w = 0; w < shares.size(); ++w) {
      const Buffers own = buffers_of(t, b, static_cast<int>(w));
      for (const UpdatePiece& p : shares[w]) {
        const size_t bytes = (p.end - p.begin) * sizeof(float);
        add(own.weights() + p.begin, bytes, static_cast<int>(w));
        for (int i = 0; i < b.sizes().states; ++i)
          add(own.state(i) + p.begin, bytes, static_cast<int>(w));
      }
      if (t.replicas_own_weights() && t.workers_with(static_cast<int>(w)).begin == int64_t(w))
        add_statistics(s, own, static_cast<int>(w));
    }
    const int last = s.model.graph.stage_device.back();
    for (int i = 0; i < t.shards; ++i) {
      for (int d = 0; d < t.devices_per_replica; ++d)
        for (const UpdateRange& r : stored_ranges(s.model.graph, s.model.layout, [&](int stage) {
               return s.model.graph.stage_device[static_cast<size_t>(stage)] == d;
             })) {
          add(b.gradient(i) + r.begin, r.count() * sizeof(float), t.owner(i, d));
          if (b.sizes().halved > 0)
            add(b.halves(i) + r.begin, r.count() * sizeof(uint16_t), t.owner(i, d));
        }
      const int loss = t.loss_device >= 0 ? t.loss_owner(i) : t.owner(i, last);
      for (uint64_t step = 0; step < 2; ++step) {
        add(&b.result(step, i).loss, sizeof(double), loss);
        add(&b.result(step, i).weight, sizeof(double),
            s.model.divisor == Divisor::targets ? t.owner(i, last) : loss);
      }
      if (t.devices_per_replica == 1) add(b.sums(i), b.sizes().sums, t.owner(i));
    }
    add_activations(s, b);
    const size_t chunks = b.chunks();
    for (size_t w = 0; w < shares.size(); ++w) {
      const Rows updating = t.workers_with(static_cast<int>(w));
      const size_t workers = static_cast<size_t>(updating.count()),
                   me = w - static_cast<size_t>(updating.begin);
      const size_t first = chunks * me / workers, end = chunks * (me + 1) / workers;
      const Buffers own = buffers_of(t, b, static_cast<int>(w));
      const float* const sum =
          b.gradient(static_cast<int>(t.shards_with(static_cast<int>(w)).begin));
      add(own.squares() + first, (end - first) * sizeof(double), static_cast<int>(w));
      // Of the sum over shards, which replaces the first shard's gradients.
      const size_t begin = std::min(s.model.layout.stored, first * Buffers::kChunk);
      const size_t until = std::min(s.model.layout.stored, end * Buffers::kChunk);
      sums_[w] = {address(sum + begin), address(sum + until)};
    }
  }

  // Calls f(begin, end) for what of [begin, end) belongs to others. summed: the first shard's
  // gradients hold the sum.
  template <class F>
  void each_remote(size_t begin, size_t end, int worker, bool summed, F f) const {
    if (summed) {
      Ranges own;
      own.add(sums_.at(static_cast<size_t>(worker)).first,
              sums_.at(static_cast<size_t>(worker)).second);
      for (const auto& [w, range] : sums_)
        if (overlap(begin, end, range.first, range.second) > 0) return own.each_gap(begin, end, f);
    }
    for (auto at = owners_.upper_bound(begin); at != owners_.end(); ++at) {
      const auto& [from, worker_of] = at->second;
      const size_t a = std::max(begin, from), b = std::min(end, at->first);
      if (from >= end) break;
      if (a < b && worker_of != worker) f(a, b);
    }
  }

 private:
  static Buffers buffers_of(const Topology& t, const Buffers& b, int worker) {
    return t.replicas_own_weights() ? b.of_replica(t.replica(worker)) : b;
  }
  void add_statistics(const Session& s, const Buffers& own, int worker) {
    if (s.model.layout.buffer_offset.empty()) return;
    const size_t first = std::ranges::min(s.model.layout.buffer_offset);
    add(own.weights() + first, (s.model.layout.total - first) * sizeof(float), worker);
  }
  static size_t address(const void* p) { return reinterpret_cast<size_t>(p); }
  void add(const void* data, size_t bytes, int worker) {
    if (bytes > 0) owners_[address(data) + bytes] = {address(data), worker};
  }
  void add_activations(const Session& s, const Buffers& b) {
    const Arenas arenas(s, b.activations());
    for (size_t g = 0; g < s.model.shard_groups.size(); ++g)
      for (int stage = 0; stage < s.model.graph.stages(); ++stage) {
        const int device = s.model.graph.stage_device[static_cast<size_t>(stage)];
        const int owner =
            s.devices.topology.owner(static_cast<int>(s.model.shard_groups[g].begin), device);
        size_t kept = 0, scratch = 0;
        for (const auto* programs : {&s.model.programs, &s.model.last_programs})
          for (const auto& [rows, p] : *programs) {
            kept = std::max(kept, p.arena[static_cast<size_t>(stage)].kept);
            scratch = std::max(scratch, p.arena[static_cast<size_t>(stage)].scratch);
          }
        const auto group = static_cast<int>(g);
        for (int chunk = 0; chunk < s.model.slots[static_cast<size_t>(stage)]; ++chunk)
          add(arenas.kept(group, stage, chunk), kept, owner);
        add(arenas.scratch(group, stage), scratch, owner);
        if (!s.model.last_programs.empty())
          add(arenas.kept(group, stage, 0, true),
              s.model.last_programs.begin()->second.arena[static_cast<size_t>(stage)].kept, owner);
      }
  }

  std::map<size_t, std::pair<size_t, int>> owners_;   // by end: begin and worker
  std::map<size_t, std::pair<size_t, size_t>> sums_;  // by worker
};

// Adds up what executors report, also those of other processes.
class Counter : public MemoryWatch {
 public:
  static constexpr std::array<const char*, 10> kNames = {
      "weights",  "forward",     "loss",   "backward", "sum_divisor",
      "sum_loss", "sum_squares", "decide", "update",   "all_reduce weights"};
  static constexpr size_t kWorkers = 8;
  struct Counts {
    std::atomic<uint64_t> read, written;
  };

  Counter() {
    void* const memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    shared_ = new (memory) Shared{};
    memory_watch = this;
  }
  ~Counter() override {
    memory_watch = nullptr;
    munmap(shared_, sizeof(Shared));
  }

  Traffic of(size_t worker, size_t name) const {
    const Counts& c = (*shared_)[worker][name];
    return {.read = c.read, .written = c.written};
  }

  void opened(const Session& s, const Buffers& b, int worker) override {
    const std::lock_guard lock(mutex_);
    if (owners_) return;
    owners_ = std::make_unique<Owners>(s, b);
    for (const PlanStep& step : s.plan.update)
      sums_first_ = sums_first_ || step.quantity == Quantity::squares;
    const Topology& t = s.devices.topology;
    const float* const weights =
        (t.replicas_own_weights() ? b.of_replica(t.replica(worker)) : b).weights();
    weights_ = {reinterpret_cast<size_t>(weights),
                reinterpret_cast<size_t>(weights + s.model.layout.total)};
  }
  void begin(int worker, const PlanStep& step) override {
    if (step.op == PlanOp::barrier) return;  // also within a step, at sync points
    const std::string name = name_of(step);
    now_.worker = worker;
    now_.name = kNames.size();
    for (size_t i = 0; i < kNames.size(); ++i)
      if (name == kNames[i]) now_.name = i;
    now_.averages = step.op == PlanOp::all_reduce;
    now_.summed = sums_first_ && (step.op == PlanOp::update || step.op == PlanOp::decide);
    now_.read = {}, now_.written = {}, now_.rows.clear();
    if (step.op == PlanOp::update) now_.weights = {};
  }
  void read(const void* data, size_t bytes) override {
    const auto begin = reinterpret_cast<size_t>(data);
    add_read(begin, begin + bytes, now_.read);
  }
  void write(const void* data, size_t bytes) override {
    const auto begin = reinterpret_cast<size_t>(data);
    owners_->each_remote(begin, begin + bytes, now_.worker, false, [&](size_t from, size_t to) {
      counts().written += now_.written.add(from, to);
    });
  }
  void kernel(const KernelArgs& args) override {
    for (const TensorView& v : args.in)
      if (v.data) read(v.data, v.desc.bytes());
    for (const TensorView& v : args.out)
      if (v.data) write(v.data, v.desc.bytes());
  }
  void rows(const KernelArgs& args, size_t instruction, int64_t begin, int64_t end) override {
    Ranges& read = now_.rows[instruction];
    const size_t left = args.out[0].desc.layout == Layout::transposed ? 1 : 0;
    const TensorView &columns = args.in[left], &all = args.in[1 - left];
    const auto width = static_cast<size_t>(columns.desc.shape.back());
    const size_t size = size_of(columns.desc.dtype), row = width * size;
    for (size_t at = 0; at < columns.desc.bytes(); at += row) {
      const size_t from = reinterpret_cast<size_t>(columns.data) + at;
      add_read(from + static_cast<size_t>(begin) * size, from + static_cast<size_t>(end) * size,
               read);
    }
    const auto from = reinterpret_cast<size_t>(all.data);
    add_read(from, from + all.desc.bytes(), read);
  }

 private:
  using Shared = std::array<std::array<Counts, kNames.size() + 1>, kWorkers>;
  Counts& counts() { return (*shared_)[static_cast<size_t>(now_.worker)][now_.name]; }
  void add_read(size_t begin, size_t end, Ranges& read) {
    if (begin >= weights_.first && end <= weights_.second && !now_.averages)
      return owners_->each_remote(begin, end, now_.worker, false, [&](size_t from, size_t to) {
        (*shared_)[static_cast<size_t>(now_.worker)][0].read += now_.weights.add(from, to);
      });
    owners_->each_remote(begin, end, now_.worker, now_.summed, [&](size_t a, size_t b) {
      now_.written.each_gap(a, b,
                            [&](size_t from, size_t to) { counts().read += read.add(from, to); });
    });
  }

  struct Now {
    int worker = 0;
    size_t name = 0;
    bool summed = false, averages = false;
    Ranges read, written, weights;
    std::map<size_t, Ranges> rows;
  };
  static thread_local Now now_;
  std::mutex mutex_;
  std::unique_ptr<Owners> owners_;
  bool sums_first_ = false;
  std::pair<size_t, size_t> weights_;
  Shared* shared_;
};
thread_local Counter::Now Counter::now_;

constexpr int kSteps = 2;

void check_workers(const std::string& yaml, Words how) {
  CAPTURE(fmt::format("{}", fmt::join(how, " ")));
  how.insert(how.end(), {fmt::format("steps={}", kSteps), "evaluate=false"});
  Counter counter;
  const Ran ran = run_spec(yaml, how);
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  const std::vector<WorkerTraffic> predicted = traffic_of(*session_of(yaml, how));
  REQUIRE(predicted.size() > 1);
  Traffic all;
  for (size_t w = 0; w < predicted.size(); ++w) {
    CAPTURE(w);
    std::set<std::string> names;
    for (size_t n = 0; n < Counter::kNames.size(); ++n) {
      CAPTURE(std::string(Counter::kNames[n]));
      Traffic expected;
      for (const TrafficLine& line : predicted[w])
        if (line.name == Counter::kNames[n]) expected += line.bytes;
      const Traffic counted = counter.of(w, n);
      CHECK(counted.read == kSteps * expected.read);
      CHECK(counted.written == kSteps * expected.written);
      names.insert(Counter::kNames[n]);
    }
    for (const TrafficLine& line : predicted[w]) CHECK(names.contains(line.name));
    all += total(predicted[w]);
  }
  CHECK(all.read > 0);
}

TEST_CASE("workers of one process read and write what the plan says, to the byte") {
  check_workers(kMlp, {"parallel=single", "cores=2"});
  check_workers(kMlp, {"parallel=single", "cores=3", "clip_grad_norm=0.5"});
  check_workers(kMlp, {"parallel=single", "cores=2", "reproducible.shards=5"});
  check_workers(kMlp, {"parallel=dp", "devices=2", "cores=1"});
  check_workers(kMlp, {"parallel={dp: {devices: 3, loss: distributed}}", "cores=1"});
  check_workers(kMlp, {"parallel=dp", "devices=2", "cores=2", "accumulate=2"});
  check_workers(kMlp, {"parallel=dp", "devices=2", "cores=1",
                       "loss={cross_entropy: {weight: [1, 2, 1, 1, 3, 1, 1, 1, 0.5, 1]}}"});
  check_workers(kMlp, {"parallel={pipeline: {stages: 2, chunks: 4}}", "cores=1"});
  check_workers(kMlp, {"parallel={pipeline: {stages: 3, chunks: 3, schedule: gpipe}}", "cores=1"});
  check_workers(kMlp, {"parallel={pipeline: {stages: 2, chunks: 4, checkpoint: always}}", "cores=2",
                       "clip_grad_norm=1"});
  check_workers(kImages, {"parallel=single", "cores=2"});
  check_workers(kImages, {"parallel=dp", "devices=2", "cores=1", "sync_batch_norm=true"});
  check_workers(kAttention, {"parallel=dp", "devices=2", "cores=1"});
}

TEST_CASE("workers of several processes read what the plan says, to the byte") {
  if (skip_without(kCanFork, "a process that may fork")) return;
  check_workers(kMlp, {"parallel=ddp", "devices=2", "cores=1"});
  check_workers(kMlp,
                {"parallel={ddp: {compress: bf16}}", "devices=3", "cores=1", "data.batch_size=30"});
  check_workers(kMlp, {"parallel={ddp: {compress: fp16, shard: optimizer}}", "devices=2", "cores=2",
                       "clip_grad_norm=1"});
  check_workers(kImages, {"parallel=ddp", "devices=2", "cores=1", "sync_batch_norm=true"});
  check_workers(kMlp, {"parallel={pipeline: {stages: 2, chunks: 2, data_parallel: 2}}", "cores=1"});
  check_workers(kMlp, {"parallel={local_sgd: 1}", "devices=2", "cores=1"});
  check_workers(kMlp, {"parallel={local_sgd: 1}", "devices=2", "cores=2", "clip_grad_norm=1"});
  check_workers(kMlp, {"parallel={local_sgd: 1}", "devices=2", "cores=2", "ema=0.9",
                       "loss={cross_entropy: {weight: [1, 2, 1, 1, 3, 1, 1, 1, 0.5, 1]}}"});
  check_workers(kImages, {"parallel={local_sgd: 1}", "devices=2", "cores=1"});
}

// What a fake GPU was told, in bytes.
Traffic told(const std::string& calls, const Session& s, int gpu) {
  const auto replicas = static_cast<uint64_t>(s.devices.topology.replicas());
  const auto devices = static_cast<uint64_t>(s.devices.topology.devices_per_replica);
  Traffic out;
  const auto number = [](const std::string& text) {
    return std::strtoull(text.c_str(), nullptr, 10);
  };
  for (size_t at = 0, end = 0; at < calls.size(); at = end + 1) {
    end = calls.find('\n', at);
    std::string line = calls.substr(at, end - at);
    const size_t space = line.find(' ');
    const std::string what = line.substr(space + 1);
    const std::string verb = what.substr(0, what.find(' '));
    if (verb == "copy" && what.ends_with(" to pinned")) out.to_host += number(what.substr(5));
    if (verb == "copy" && what.ends_with("pinned to device"))
      out.from_host += number(what.substr(5));
    if (verb == "broadcast") {
      const bool root = number(what.substr(what.rfind(' ') + 1)) ==
                        static_cast<uint64_t>(s.devices.topology.device_of(gpu));
      const uint64_t bytes = number(what.substr(verb.size() + 1));
      (root ? out.sent : out.received) += root ? bytes * (devices - 1) : bytes;
    }
    if (verb != "send" && verb != "receive" && verb != "all_reduce" && verb != "all_gather" &&
        verb != "reduce_scatter")
      continue;
    uint64_t bytes = number(what.substr(verb.size() + 1));
    if (verb == "send") out.sent += bytes;
    if (verb == "receive") out.received += bytes;
    if (verb == "send" || verb == "receive") continue;
    bytes *= what.ends_with("f64") ? 8 : what.ends_with("f32") ? 4 : 2;
    // All but all_reduce name the size of a GPU's piece.
    const uint64_t moved = verb == "all_reduce"
                               ? (2 * bytes * (replicas - 1) + replicas - 1) / replicas
                               : bytes * (replicas - 1);
    out.sent += moved;
    out.received += moved;
  }
  return out;
}

// What each of `gpus` GPUs was told for one more step: the difference between runs of 4 and of 3.
std::vector<Traffic> told_in_a_step(const std::string& yaml, const Words& how, const Session& s) {
  const int count = s.devices.topology.total_workers();
  std::vector<Traffic> out(static_cast<size_t>(count));
  for (const int steps : {4, 3}) {
    Fleet gpus;
    Words words = how;
    words.push_back(fmt::format("steps={}", steps));
    const Ran ran = run_spec(yaml, words, gpus.opener());
    REQUIRE_MESSAGE(ran.code == 0, ran.err);
    for (int g = 0; g < count; ++g) {
      Traffic& t = out[static_cast<size_t>(g)];
      const Traffic all = told(gpus.calls(g), s, g);
      if (steps == 4)
        t = all;
      else
        t = {.sent = t.sent - all.sent,
             .received = t.received - all.received,
             .to_host = t.to_host - all.to_host,
             .from_host = t.from_host - all.from_host};
    }
  }
  return out;
}

void check_gpus(const std::string& yaml, Words how) {
  CAPTURE(fmt::format("{}", fmt::join(how, " ")));
  const Words common = {"device=cuda", "graphs=false", "evaluate=false", "data.drop_last=true"};
  how.insert(how.end(), common.begin(), common.end());
  const auto s = session_of(yaml, how, true);
  const std::vector<WorkerTraffic> predicted = traffic_of(*s);
  const std::vector<Traffic> counted = told_in_a_step(yaml, how, *s);
  // The host's numbers of a step, which a single GPU gets and returns, too.
  const Traffic alone = told_in_a_step(yaml, common, *session_of(yaml, common, true))[0];
  for (size_t g = 0; g < predicted.size(); ++g) {
    CAPTURE(g);
    const Traffic expected = total(predicted[g]);
    CHECK(counted[g].sent == expected.sent);
    CHECK(counted[g].received == expected.received);
    CHECK(counted[g].to_host - alone.to_host == expected.to_host);
    CHECK(counted[g].from_host - alone.from_host == expected.from_host);
    CHECK(expected.sent + expected.received + expected.to_host + expected.from_host > 0);
  }
}

TEST_CASE("GPUs of several processes send and receive what the plan says, to the byte") {
  if (skip_without(kCanFork, "a process that may fork")) return;
  check_gpus(kMlp, {"parallel=ddp", "devices=2"});
  check_gpus(kMlp, {"parallel={ddp: {bucket_cap_mb: 0.001}}", "devices=3", "data.batch_size=30",
                    "accumulate=2"});
  check_gpus(kMlp, {"parallel={ddp: {compress: fp16, shard: optimizer}}", "devices=2",
                    "clip_grad_norm=1"});
  check_gpus(kImages, {"parallel=ddp", "devices=2", "sync_batch_norm=true"});
  for (const char* keys : {"", ", shard: optimizer", ", compress: bf16, shard: optimizer"})
    check_gpus(kMlp, {fmt::format("parallel={{ddp: {{backend: gloo{}}}}}", keys), "devices=2",
                      "clip_grad_norm=1"});
  const std::string stages = "parallel={pipeline: {stages: 2, chunks: 4, processes: true";
  check_gpus(kMlp, {stages + "}}"});
  check_gpus(kMlp, {stages + ", data_parallel: 2}}", "clip_grad_norm=1"});
}

TEST_CASE("GPUs of one process send and receive what the plan says, to the byte") {
  check_gpus(kMlp, {"parallel=dp", "devices=2"});
  check_gpus(kMlp, {"parallel={dp: {devices: 3, output_device: 1}}"});
  check_gpus(kMlp, {"parallel={dp: {devices: 2, loss: distributed}}",
                    "loss={cross_entropy: {weight: [1, 2, 1, 1, 3, 1, 1, 1, 0.5, 1]}}"});
}

TEST_CASE("stages exchange the same bytes in threads and in processes, by NCCL and by hosts") {
  const auto of = [](const std::string& keys) {
    return traffic_of(*session_of(kMlp,
                                  {"device=cuda", "clip_grad_norm=1",
                                   "parallel={pipeline: {stages: 3, chunks: 4" + keys + "}}"},
                                  true));
  };
  const auto threads = of(""), processes = of(", processes: true"),
             hosts = of(", processes: true, backend: gloo");
  REQUIRE(threads.size() == 3);
  uint64_t sent = 0, received = 0;
  for (size_t g = 0; g < threads.size(); ++g) {
    CAPTURE(g);
    CHECK(total(threads[g]) == total(processes[g]));
    CHECK(total(processes[g]).sent == total(hosts[g]).to_host);
    CHECK(total(processes[g]).received == total(hosts[g]).from_host);
    sent += total(threads[g]).sent;
    received += total(threads[g]).received;
  }
  CHECK(sent == received);
  CHECK(sent > 0);
}

}  // namespace
}  // namespace dpt
