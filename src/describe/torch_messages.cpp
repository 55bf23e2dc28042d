#include "describe/torch_messages.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "base/count.h"
#include "base/units.h"
#include "describe/message_units.h"
#include "describe/traffic.h"
#include "graph/attrs.h"
#include "layers/model.h"
#include "session/placement.h"

namespace dpt {
namespace {

using Kind = Message::Kind;

// A parameter or a running statistic, as PyTorch stores it.
struct StoredTensor {
  std::string name;
  Shape shape;
  uint64_t bytes;
  bool trainable;
};

uint64_t sum_of(const std::vector<StoredTensor>& tensors, bool trainable_only = false) {
  uint64_t out = 0;
  for (const StoredTensor& t : tensors) out += trainable_only && !t.trainable ? 0 : t.bytes;
  return out;
}

// "fc.bias", or "fc.bias to layer4.1.bn2.bias (7 tensors)"
std::string from_to(const std::string& first, const std::string& last, size_t count) {
  return count == 1 ? first : fmt::format("{} to {} ({} tensors)", first, last, count);
}

class MessageLists {
 public:
  explicit MessageLists(const Session& s)
      : s_(s),
        ranks_(s.devices.topology.ranks * s.devices.topology.devices_per_rank),
        samples_(s.batches.global_batch),
        micro_(s.devices.pipeline ? 1 : s.batches.train->accumulate()) {
    const Graph& graph = s.model.graph;
    const auto level = s.precision.policy.level;
    const bool half =
        level == PrecisionPolicy::Level::model || level == PrecisionPolicy::Level::pure;
    const uint64_t size = half ? sizeof(uint16_t) : sizeof(float);
    for (size_t i = 0; i < graph.parameters.size(); ++i) {
      const Value& v = graph[graph.parameters[i]];
      parameters_.push_back({v.name, v.desc.shape,
                             static_cast<uint64_t>(v.desc.shape.elements()) * size,
                             graph.gradients[i] != kNoValue});
    }
    for (const ValueId b : graph.buffers)
      if (graph[b].saved) buffers_ += graph[b].desc.bytes();
  }

  std::vector<MessageList> lists() const {
    std::vector<MessageList> out = {data_parallel(), ddp(), zero1(), zero2(), zero3(), pipeline()};
    for (MessageList& list : out) count(list);
    out.push_back(own());
    return out;
  }

 private:
  void count(MessageList& list) const {
    list.ranks.resize(static_cast<size_t>(ranks_));
    for (const Message& m : list.messages)
      for (int r = 0; r < ranks_; ++r) {
        const RankBytes bytes = bytes_of_rank(m, r, ranks_);
        list.ranks[static_cast<size_t>(r)].sends += bytes.sends;
        list.ranks[static_cast<size_t>(r)].receives += bytes.receives;
      }
  }

  // Bytes of so many samples of this form. PyTorch's tokens are int64.
  static uint64_t bytes_of_samples(const TensorDesc& sample, int64_t samples) {
    const uint64_t size = sample.dtype == DType::i32 ? sizeof(int64_t) : size_of(sample.dtype);
    return static_cast<uint64_t>(sample.shape.batch(samples).elements()) * size;
  }

  MessageList data_parallel() const {
    MessageList out{.name = "DataParallel", .note = "device 0 has the batch and the loss"};
    // Messages of equal micro-batches are one entry.
    std::vector<Message> all;
    const auto add = [&](Message m) {
      const auto same = std::ranges::find_if(all, [&](const Message& o) {
        return o.kind == m.kind && o.from == m.from && o.to == m.to && o.what == m.what &&
               o.bytes == m.bytes;
      });
      if (same != all.end())
        ++same->times;
      else if (m.bytes > 0)
        all.push_back(std::move(m));
    };
    const TensorDesc input = s_.data.loader->input();
    TensorDesc output = s_.model.graph[s_.model.graph.output].desc;
    output.shape = output.shape.tail(1);
    for (const Rows& micro : chunk(samples_, static_cast<int>(micro_))) {
      const std::vector<Rows> parts = chunk(micro.count(), ranks_);
      const auto each = [&](auto&& f) {
        for (int r = 1; r < ranks_; ++r) f(r, parts[static_cast<size_t>(r)].count());
      };
      each([&](int r, int64_t n) {
        add({.kind = Kind::send,
             .from = 0,
             .to = r,
             .what = "input",
             .bytes = bytes_of_samples(input, n)});
      });
      add({.kind = Kind::broadcast,
           .from = 0,
           .what = all_parameters(),
           .bytes = sum_of(parameters_)});
      add({.kind = Kind::broadcast, .from = 0, .what = "buffers", .bytes = buffers_});
      each([&](int r, int64_t n) {
        add({.kind = Kind::send,
             .from = r,
             .to = 0,
             .what = "output",
             .bytes = bytes_of_samples(output, n)});
      });
      each([&](int r, int64_t n) {
        add({.kind = Kind::send,
             .from = 0,
             .to = r,
             .what = "gradient of the output",
             .bytes = bytes_of_samples(output, n)});
      });
      add({.kind = Kind::reduce,
           .to = 0,
           .what = "gradients of " + all_parameters(true),
           .bytes = sum_of(parameters_, true)});
    }
    out.messages = std::move(all);
    return out;
  }

  std::string all_parameters(bool trainable = false) const {
    const auto n = static_cast<size_t>(std::ranges::count_if(
        parameters_, [&](const StoredTensor& t) { return t.trainable || !trainable; }));
    return n == 1 ? "1 parameter" : fmt::format("{} parameters", n);
  }

  MessageList ddp() const {
    MessageList out{.name = "DistributedDataParallel",
                    .note = micro_ > 1 ? "with no_sync in all micro-batches but the last" : ""};
    if (buffers_ > 0)
      out.messages.push_back(
          {.kind = Kind::broadcast, .from = 0, .what = "buffers", .bytes = buffers_});
    add_statistics(out.messages);
    add_buckets(out.messages);
    return out;
  }

  // SyncBatchNorm: each rank sends mean, 1 / deviation and number of elements; the gradient needs
  // two sums per channel.
  void add_statistics(std::vector<Message>& out) const {
    if (!s_.settings.spec.sync_batch_norm) return;
    Diagnostics d;
    const int64_t rows = chunk(samples_, static_cast<int>(micro_)).front().count();
    const Graph graph = graph_of(rows, {}, d);
    for (const GraphNode& n : graph.nodes) {
      if (!n.op->is(Trait::over_shards)) continue;
      const bool forward = n.part == Part::forward;
      const auto ranks = static_cast<uint64_t>(ranks_);
      const auto channels = static_cast<uint64_t>(graph[n.out[0]].desc.shape[0]) / 2;
      out.push_back({.kind = forward ? Kind::all_gather : Kind::all_reduce,
                     .what = (forward ? "statistics of " : "gradients of statistics of ") + n.layer,
                     .bytes = (forward ? ranks * (2 * channels + 1) : 2 * channels) * sizeof(float),
                     .times = micro_});
    }
  }

  void add_buckets(std::vector<Message>& out) const {
    constexpr uint64_t kFirst = 1 << 20, kOther = 25 << 20;  // 1 MiB, bucket_cap_mb=25
    std::vector<const StoredTensor*> order;
    std::vector<uint64_t> sizes;
    for (size_t i = parameters_.size(); i-- > 0;)
      if (parameters_[i].trainable) {
        order.push_back(&parameters_[i]);
        sizes.push_back(parameters_[i].bytes);
      }
    size_t begin = 0;
    for (const size_t end : ddp_buckets(sizes, kFirst, kOther)) {
      out.push_back(
          {.kind = Kind::all_reduce,
           .what = "gradients of " + from_to(order[begin]->name, order[end - 1]->name, end - begin),
           .bytes = std::accumulate(sizes.begin() + static_cast<ptrdiff_t>(begin),
                                    sizes.begin() + static_cast<ptrdiff_t>(end), uint64_t{0})});
      begin = end;
    }
  }

  // As ZeroRedundancyOptimizer: largest parameters first, each to the rank with the fewest
  // elements.
  MessageList zero1() const {
    MessageList out = ddp();
    out.name = "ZeRO 1: ZeroRedundancyOptimizer and DDP";
    std::vector<const StoredTensor*> largest;
    for (const StoredTensor& t : parameters_)
      if (t.trainable) largest.push_back(&t);
    std::ranges::stable_sort(largest, std::greater<>(),
                             [](const StoredTensor* t) { return t->shape.elements(); });
    std::vector<uint64_t> bytes(static_cast<size_t>(ranks_));
    std::vector<size_t> tensors(bytes.size());
    for (const StoredTensor* t : largest) {
      const auto least = static_cast<size_t>(std::ranges::min_element(bytes) - bytes.begin());
      bytes[least] += t->bytes;
      ++tensors[least];
    }
    for (int r = 0; r < ranks_; ++r)
      if (const auto i = static_cast<size_t>(r); tensors[i] > 0)
        out.messages.push_back({.kind = Kind::broadcast,
                                .from = r,
                                .what = fmt::format("the {} that rank {} updates",
                                                    counted(tensors[i], "parameter"), r),
                                .bytes = bytes[i]});
    return out;
  }

  MessageList zero2() const {
    MessageList out{.name = "ZeRO 2: fully_shard(reshard_after_forward=False)"};
    add_shards(out, 1);
    return out;
  }
  MessageList zero3() const {
    MessageList out{.name = "ZeRO 3: fully_shard"};
    add_shards(out, 2);
    return out;
  }

  // fully_shard splits the first dimension of each parameter over the ranks, padded to equal parts.
  uint64_t padded(const StoredTensor& t) const {
    const int64_t rows = t.shape.rank() > 0 ? t.shape[0] : 1;
    const auto part = static_cast<uint64_t>((rows + ranks_ - 1) / ranks_);
    return part * static_cast<uint64_t>(ranks_) * (t.bytes / static_cast<uint64_t>(rows));
  }

  // gathers: all_gathers of a unit in a forward and backward pass.
  void add_shards(MessageList& out, int gathers) const {
    out.note = "fully_shard of each entry or block of `model`; the shards are padded";
    struct Unit {
      std::string name;
      uint64_t all = 0, trained = 0;
    };
    const std::vector<std::string> names = message_units(s_.settings.spec.model);
    std::vector<Unit> units;
    for (const std::string& n : names) units.push_back({.name = n});
    for (const StoredTensor& t : parameters_) {
      Unit& u = units[unit_of(names, t.name)];
      u.all += padded(t);
      u.trained += t.trainable ? padded(t) : 0;
    }
    std::erase_if(units, [](const Unit& u) { return u.all == 0; });
    for (const Unit& u : units)
      out.messages.push_back({.kind = Kind::all_gather,
                              .what = "parameters of " + u.name,
                              .bytes = u.all,
                              .times = gathers * micro_});
    for (const Unit& u : units)
      if (u.trained > 0)
        out.messages.push_back({.kind = Kind::reduce_scatter,
                                .what = "gradients of " + u.name,
                                .bytes = u.trained,
                                .times = micro_});
  }

  MessageList pipeline() const {
    const bool own = s_.devices.pipeline.has_value();
    const int stages = own ? s_.devices.topology.devices_per_replica : ranks_;
    const auto chunks = own ? static_cast<int>(s_.batches.train->accumulate())
                            : std::max(stages, static_cast<int>(micro_));
    const int64_t samples = samples_ / (own ? s_.devices.topology.replicas() : 1);
    MessageList out{.name = fmt::format("pipeline of {}, {}: GPipe or 1F1B",
                                        counted(stages, "stage"), counted(chunks, "chunk")),
                    .note = "the schedules differ in the order of messages only"};
    Diagnostics d;
    Pipeline cut;
    if (own && s_.devices.pipeline->stages_a_device == 1) cut = *s_.devices.pipeline;
    std::map<int64_t, int64_t> rows;  // samples of a chunk -> number of such chunks
    for (const Rows& r : chunk(samples, chunks))
      if (r.count() > 0) ++rows[r.count()];
    const std::vector<int> placement = place_units(
        s_.settings.spec, cut, stages,
        [&](const std::vector<int>& apart) { return graph_of(rows.rbegin()->first, apart, d); }, d);
    if (!d.ok()) {
      out.note = fmt::format("the net cannot be split into {}", counted(stages, "stage"));
      return out;
    }
    std::vector<Message> back;
    for (auto each = rows.rbegin(); each != rows.rend(); ++each)
      for (const Message& m : copies_of(graph_of(each->first, placement, d, true), each->second))
        (m.from < m.to ? out.messages : back).push_back(m);
    out.messages.insert(out.messages.end(), back.begin(), back.end());
    return out;
  }

  Graph graph_of(int64_t rows, const std::vector<int>& placement, Diagnostics& d,
                 bool copies = false) const {
    const auto batch_of = [&](const TensorDesc& sample) {
      return TensorDesc{sample.dtype, sample.shape.batch(rows)};
    };
    return build_graph(s_.settings.spec,
                       {.input = batch_of(s_.data.loader->input()),
                        .target = batch_of(s_.data.loader->target()),
                        .classes = s_.data.train.classes,
                        .tokens = s_.data.train.tokens,
                        .precision = s_.precision.policy,
                        .ignores = s_.data.ignores(),
                        .placement = placement,
                        .copies = copies},
                       d);
  }

  // The values that stages send to later ones, and their gradients.
  static std::vector<Message> copies_of(const Graph& graph, int64_t times) {
    std::vector<Message> out;
    for (const GraphNode& n : graph.nodes) {
      if (!is_stage_copy(n)) continue;
      const auto& way = std::any_cast<const Copy&>(n.attrs);
      const auto device = [&](int stage) { return graph.stage_device[static_cast<size_t>(stage)]; };
      const bool backward = n.part == Part::backward;
      const Value& v = graph[n.in[0]];
      out.push_back({.kind = Kind::send,
                     .from = device(way.from),
                     .to = device(way.to),
                     .what = backward ? "gradient of an activation" : "activation of " + v.name,
                     .bytes = v.desc.bytes(),
                     .times = times});
    }
    return out;
  }

  MessageList own() const {
    const Topology& t = s_.devices.topology;
    MessageList out{.name = "dptrain, parallel: " + s_.plan.mode,
                    .note = s_.devices.on_gpu() ? "by all GPUs together"
                                                : "reads and writes of shared memory that other "
                                                  "workers compute, by all workers together"};
    out.ranks.resize(static_cast<size_t>(ranks_));
    const std::vector<WorkerTraffic> all = traffic_of(s_);
    for (size_t w = 0; w < all.size(); ++w)
      for (const TrafficLine& line : all[w]) {
        const uint64_t sends = line.bytes.written + line.bytes.sent + line.bytes.to_host;
        const uint64_t receives = line.bytes.read + line.bytes.received + line.bytes.from_host;
        RankBytes& rank = out.ranks[w / static_cast<size_t>(t.workers_per_device)];
        rank.sends += sends;
        rank.receives += receives;
        const auto same = std::ranges::find(out.messages, line.name, &Message::own);
        Message& m = same != out.messages.end()
                         ? *same
                         : out.messages.emplace_back(Message{.kind = Kind::own, .own = line.name});
        m.bytes += sends + receives;
      }
    return out;
  }

  const Session& s_;
  int ranks_;
  int64_t samples_, micro_;
  std::vector<StoredTensor> parameters_;  // in PyTorch's order
  uint64_t buffers_ = 0;
};

}  // namespace

RankBytes bytes_of_rank(const Message& m, int rank, int n) {
  const auto size = static_cast<uint64_t>(n);
  const uint64_t all = m.bytes * static_cast<uint64_t>(m.times);
  const uint64_t ring = all * (size - 1) / size;
  switch (m.kind) {
    case Kind::send:
      return {.sends = rank == m.from ? all : 0, .receives = rank == m.to ? all : 0};
    case Kind::broadcast:  // from, from + 1, ..., which is the last one before `from`
      return {.sends = (rank + 1) % n == m.from ? 0 : all, .receives = rank == m.from ? 0 : all};
    case Kind::reduce:  // to + 1, ..., to
      return {.sends = rank == m.to ? 0 : all, .receives = rank == (m.to + 1) % n ? 0 : all};
    case Kind::all_reduce:
      return {.sends = 2 * all * (size - 1) / size, .receives = 2 * all * (size - 1) / size};
    case Kind::all_gather:
    case Kind::reduce_scatter:
      return {.sends = ring, .receives = ring};
    case Kind::own:
      break;
  }
  return {};
}

std::vector<size_t> ddp_buckets(const std::vector<uint64_t>& sizes, uint64_t first,
                                uint64_t other) {
  std::vector<size_t> out;
  uint64_t bucket = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    bucket += sizes[i];
    if (bucket < (out.empty() ? first : other)) continue;
    out.push_back(i + 1);
    bucket = 0;
  }
  if (!sizes.empty() && (out.empty() || out.back() != sizes.size())) out.push_back(sizes.size());
  return out;
}

std::vector<MessageList> message_lists(const Session& session) {
  return MessageLists(session).lists();
}

}  // namespace dpt
