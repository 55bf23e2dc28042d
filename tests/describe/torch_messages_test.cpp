// Messages of PyTorch's ways to train: formulas by hand, and the text that `dptrain plan --bytes`
// prints. tests/describe/ddp_buckets.py compares the buckets with those of PyTorch.
#include "describe/torch_messages.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "describe/message_text.h"
#include "describe/message_units.h"
#include "describe/traffic.h"
#include "golden_text.h"
#include "layers/lowered.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

using Kind = Message::Kind;

// Batch norm has buffers, a block is repeated, and the entry `skip` is read by a later stage.
constexpr const char* kNet = R"(
name: net
data:
  dataset: {synthetic_images: {samples: 64, shape: [1, 8, 8]}}
  transforms: [to_tensor]
  batch_size: 20
blocks:
  wide: {layers: [{linear: 64}, relu]}
model:
  - {conv2d: {out_channels: 4, kernel_size: 3}, name: conv}
  - {batch_norm2d: null, name: bn}
  - flatten
  - {linear: 64, name: skip}
  - {wide: null, repeat: 3, name: layers}
  - {add: null, from: [layers, skip]}
  - {linear: 10, name: head}
loss: cross_entropy
optimizer: {adam: 0.1}
epochs: 1
cores: 1
parallel: ddp
devices: 4
)";

std::unique_ptr<const Session> session_of(const std::vector<std::string>& overrides = {}) {
  std::unique_ptr<const Session> out;
  const std::string errors =
      errors_of_session(kNet, overrides, {.runs = false, .sizes_only = true}, out);
  REQUIRE_MESSAGE(out, errors);
  return out;
}

MessageList list_of(const Session& s, std::string_view name) {
  for (MessageList& list : message_lists(s))
    if (list.name.starts_with(name)) return list;
  FAIL("no list ", std::string(name));
  return {};
}

uint64_t bytes_of(const MessageList& list, Kind kind) {
  uint64_t out = 0;
  for (const Message& m : list.messages)
    if (m.kind == kind) out += m.bytes * static_cast<uint64_t>(m.times);
  return out;
}

}  // namespace

TEST_CASE("bytes of a rank: rings of collectives, chains of broadcasts and reduces") {
  const auto of = [](const Message& m, int n) {
    std::vector<std::pair<uint64_t, uint64_t>> out;
    for (int r = 0; r < n; ++r) {
      const RankBytes bytes = bytes_of_rank(m, r, n);
      out.emplace_back(bytes.sends, bytes.receives);
    }
    return fmt::format("{}", out);
  };
  CHECK(of({.kind = Kind::all_reduce, .bytes = 400}, 4) ==
        "[(600, 600), (600, 600), (600, 600), (600, 600)]");
  CHECK(of({.kind = Kind::all_gather, .bytes = 400, .times = 2}, 2) == "[(400, 400), (400, 400)]");
  CHECK(of({.kind = Kind::reduce_scatter, .bytes = 400}, 2) == "[(200, 200), (200, 200)]");
  CHECK(of({.kind = Kind::broadcast, .from = 1, .bytes = 10}, 3) == "[(0, 10), (10, 0), (10, 10)]");
  CHECK(of({.kind = Kind::reduce, .to = 0, .bytes = 10}, 3) == "[(0, 10), (10, 0), (10, 10)]");
  CHECK(of({.kind = Kind::send, .from = 2, .to = 0, .bytes = 10, .times = 3}, 3) ==
        "[(0, 30), (0, 0), (30, 0)]");
}

TEST_CASE("buckets of DDP end with the gradient that fills them") {
  CHECK(ddp_buckets({4, 4, 4, 4, 4}, 8, 12) == std::vector<size_t>{2, 5});
  CHECK(ddp_buckets({4, 5, 4, 4, 5, 1}, 8, 12) == std::vector<size_t>{2, 5, 6});
  CHECK(ddp_buckets({100}, 8, 12) == std::vector<size_t>{1});
  CHECK(ddp_buckets({1, 1}, 8, 12) == std::vector<size_t>{2});
  CHECK(ddp_buckets({}, 8, 12).empty());
}

TEST_CASE("units of fully_shard: entries, and blocks in lists of blocks") {
  const ModelText text(R"(
blocks:
  wide: {layers: [{linear: 4}, relu]}
  inner: {layers: [{wide: null, name: a}, {wide: null, name: b}]}
  mixed: {layers: [{linear: 4, name: first}, {inner: null, name: layers}, {wide: null, name: last}]}
model: [{linear: 4}, {wide: null, repeat: 2, name: twice}, {mixed: null, name: m}, {wide: null}])");
  REQUIRE_MESSAGE(text.diagnostics.ok(), text.diagnostics.render());
  const std::vector<std::string> units = message_units(text.spec.model);
  CHECK(fmt::format("{}", fmt::join(units, " ")) ==
        "0 twice twice.0 twice.1 m m.layers.a m.layers.b 3");
  CHECK(units[unit_of(units, "m.layers.a.0.weight")] == "m.layers.a");
  CHECK(units[unit_of(units, "m.last.0.weight")] == "m");
  CHECK(units[unit_of(units, "twice.1.0.bias")] == "twice.1");
}

TEST_CASE("messages of one step: volumes of DDP, ZeRO and pipelines") {
  const auto s = session_of();
  // conv 40, bn 8, skip 9280, three times 4160, head 650 parameters of 4 bytes.
  const uint64_t parameters = 4 * (40 + 8 + 9280 + 3 * 4160 + 650);
  CHECK(bytes_of(list_of(*s, "Distributed"), Kind::all_reduce) == parameters);
  // Mean and variance of 4 channels, and num_batches_tracked.
  CHECK(bytes_of(list_of(*s, "Distributed"), Kind::broadcast) == 4 * 8 + 8);
  // Each parameter is broadcast by the rank that updates it.
  const MessageList zero1 = list_of(*s, "ZeRO 1");
  CHECK(bytes_of(zero1, Kind::all_reduce) == parameters);
  CHECK(bytes_of(zero1, Kind::broadcast) == parameters + 4 * 8 + 8);
  // 10 rows of the head become 12, and so does its bias.
  const uint64_t padded = parameters + 4 * 2 * 65;
  const MessageList zero2 = list_of(*s, "ZeRO 2"), zero3 = list_of(*s, "ZeRO 3");
  CHECK(bytes_of(zero2, Kind::all_gather) == padded);
  CHECK(bytes_of(zero3, Kind::all_gather) == 2 * padded);
  CHECK(bytes_of(zero2, Kind::reduce_scatter) == padded);
  CHECK(bytes_of(zero3, Kind::reduce_scatter) == padded);
  // Whatever one rank sends, another one receives.
  for (const MessageList& list : message_lists(*s)) {
    if (list.name.starts_with("dptrain")) continue;
    RankBytes sum;
    for (const RankBytes& r : list.ranks) {
      sum.sends += r.sends;
      sum.receives += r.receives;
    }
    CHECK_MESSAGE(sum.sends == sum.receives, list.name);
  }
}

TEST_CASE(
    "messages: frozen parameters have no gradients, and micro-batches repeat what they need") {
  const auto frozen = session_of({"freeze=[skip]"});
  CHECK(bytes_of(list_of(*frozen, "Distributed"), Kind::all_reduce) ==
        4 * (40 + 8 + 3 * 4160 + 650));
  CHECK(bytes_of(list_of(*frozen, "ZeRO 2"), Kind::all_gather) ==
        bytes_of(list_of(*session_of(), "ZeRO 2"), Kind::all_gather));
  const auto once = session_of(), often = session_of({"accumulate=5"});
  CHECK(list_of(*once, "Distributed").ranks == list_of(*often, "Distributed").ranks);  // no_sync
  CHECK(bytes_of(list_of(*often, "ZeRO 3"), Kind::all_gather) ==
        5 * bytes_of(list_of(*once, "ZeRO 3"), Kind::all_gather));
  // DataParallel replicates the model in every forward pass; the samples are the same.
  CHECK(bytes_of(list_of(*often, "DataParallel"), Kind::broadcast) ==
        5 * bytes_of(list_of(*once, "DataParallel"), Kind::broadcast));
  // Of 20 samples of 64 numbers, 15 go to other devices; their outputs have 10 numbers.
  CHECK(bytes_of(list_of(*once, "DataParallel"), Kind::send) == 15 * (64 + 10 + 10) * 4);
  CHECK(bytes_of(list_of(*often, "DataParallel"), Kind::send) ==
        bytes_of(list_of(*once, "DataParallel"), Kind::send));
}

TEST_CASE("messages of SyncBatchNorm: statistics of each rank, and two sums per channel") {
  for (const char* micro : {"accumulate=1", "accumulate=5"}) {
    const auto s = session_of({"sync_batch_norm=true", micro}), other = session_of({micro});
    const MessageList with = list_of(*s, "Distributed"), without = list_of(*other, "Distributed");
    const uint64_t times = std::string_view(micro).back() == '5' ? 5 : 1;
    // 4 ranks, each with the mean and 1 / deviation of 4 channels and a count.
    CHECK(bytes_of(with, Kind::all_gather) == times * 4 * (2 * 4 + 1) * 4);
    CHECK(bytes_of(with, Kind::all_reduce) - bytes_of(without, Kind::all_reduce) ==
          times * 2 * 4 * 4);
    CHECK(with.messages.size() == without.messages.size() + 2);
    CHECK(std::ranges::count(with.messages, "statistics of bn", &Message::what) == 1);
    CHECK(std::ranges::count(with.messages, "gradients of statistics of bn", &Message::what) == 1);
  }
}

TEST_CASE("messages of a pipeline: what a later stage reads, of each chunk, and its gradient") {
  const auto s = session_of({"parallel={pipeline: {stages: 2, chunks: 4, cut: [head]}}",
                             "devices=null", "data.batch_size=18"});
  const MessageList list = list_of(*s, "pipeline of 2 stages, 4 chunks");
  std::vector<std::string> got;
  for (const Message& m : list.messages)
    got.push_back(fmt::format("{} to {}: {} bytes, {} times", m.from, m.to, m.bytes, m.times));
  // Chunks of 5, 5, 5 and 3 samples with 64 numbers each.
  CHECK(got == std::vector<std::string>{"0 to 1: 1280 bytes, 3 times", "0 to 1: 768 bytes, 1 times",
                                        "1 to 0: 1280 bytes, 3 times",
                                        "1 to 0: 768 bytes, 1 times"});
  // What dptrain copies between these stages is the same.
  CHECK(list.ranks[0].sends == 18 * 64 * 4);
  const auto few = session_of({"devices=8", "data.batch_size=16", "model=[flatten, {linear: 10}]"});
  CHECK(list_of(*few, "pipeline").note == "the net cannot be split into 8 stages");
}

TEST_CASE("dptrain's own list has the bytes of its plan's traffic") {
  for (const char* mode : {"ddp", "dp"}) {
    const auto s = session_of({std::string("parallel=") + mode});
    const MessageList own = list_of(*s, "dptrain");
    uint64_t read = 0, receives = 0;
    for (const WorkerTraffic& lines : traffic_of(*s)) read += total(lines).read;
    for (const RankBytes& r : own.ranks) receives += r.receives;
    CHECK(receives == read);
    CHECK(receives > 0);
  }
}

TEST_CASE("the text of messages at several widths") {
  const auto s = session_of();
  for (const size_t width : {40UL, 80UL, 200UL}) {
    const std::string text = message_text(*s, width);
    check_golden(text, fmt::format("describe/golden/messages_{}.txt", width));
    size_t longest = 0;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = text.find('\n', begin);
      longest = std::max(longest, end - begin);
      begin = end + 1;
    }
    CHECK(longest <= width);
  }
  // No line is cut without a limit.
  CHECK(message_text(*s, 0).find("..") == std::string::npos);
}

}  // namespace dpt
