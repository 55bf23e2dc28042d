#include "engine/cpu/host_exchange.h"

#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "engine/host_messages.h"
#include "session/host_traffic.h"

namespace dpt {
namespace {

// What a host sends with the results of its shards.
struct Decisions {
  int64_t stop = 0;    // the signal at which the host's team agreed to stop; 0: none
  int64_t pause = -1;  // Team::agreed_pause()
};

// What a shard brought in a step.
struct Brought {
  double loss = 0, weight = 0;
};
static_assert(sizeof(Decisions) == kHostResultBytes && sizeof(Brought) == kShardResultBytes);

template <class T>
std::span<const std::byte> bytes_of(const T* first, size_t count) {
  return std::as_bytes(std::span(first, count));
}

template <class T>
std::span<std::byte> bytes_of(T* first, size_t count) {
  return std::as_writable_bytes(std::span(first, count));
}

}  // namespace

HostExchange::HostExchange(const Session& session, const Buffers& buffers, Team team, Link& link)
    : session_(session),
      buffers_(buffers),
      team_(team),
      link_(link),
      layout_(session.shares.hosts.value()),
      shared_(session, buffers, link),
      gradients_(layout_.slots()) {
  results_.begin.push_back(0);
  squares_.begin.push_back(0);
  for (int h = 0; h < hosts(); ++h) {
    const auto shards = static_cast<size_t>(session.devices.topology.shards_of_host(h).count());
    results_.begin.push_back(results_.begin.back() + sizeof(Decisions) + shards * sizeof(Brought));
    size_t chunks = 0;
    each_own_chunk(h, [&](size_t) { ++chunks; });
    squares_.begin.push_back(squares_.begin.back() + chunks * sizeof(double));
  }
  results_.bytes.resize(results_.begin.back());
  squares_.bytes.resize(squares_.begin.back());
  size_t parts = 0;  // that a host sends at most
  for (const GradientPart& p : layout_.parts()) parts += p.host == host() ? 1 : 0;
  const auto others = static_cast<size_t>(hosts() - 1), buckets = layout_.owners().buckets();
  frames_.reserve(2 * others);
  sends_.reserve(others * buckets * (parts + 1));
  weights_.reserve(others * buckets);
  for (Requests& r : gradients_) r.reserve(layout_.parts().size());
}

void HostExchange::send(Requests& to, int peer, uint32_t tag, std::span<const std::byte> bytes) {
  if (!bytes.empty()) to.push_back(link_.send(peer, tag, bytes));
}

void HostExchange::receive(Requests& to, int peer, uint32_t tag, std::span<std::byte> bytes) {
  if (!bytes.empty()) to.push_back(link_.receive(peer, tag, bytes));
}

void HostExchange::wait(Requests& requests) {
  for (const Link::Request r : requests) link_.wait(r);
  requests.clear();
}

// Begins to send this host's frame to all others, and to receive theirs.
void HostExchange::begin(Frames& frames, uint32_t tag) {
  for (int k = 1; k < hosts(); ++k) receive(frames_, peer(k), tag, frames.of(peer(k)));
  for (int k = 1; k < hosts(); ++k) send(frames_, peer(k), tag, frames.of(host()));
}

void HostExchange::run(const PlanStep& s, uint64_t number) {
  const auto bucket = static_cast<size_t>(s.bucket);
  const bool waits = s.op == PlanOp::wait;
  switch (s.quantity) {
    case Quantity::results:
      return waits ? end_results(number) : begin_results(number);
    case Quantity::gradients:
      return waits ? wait(gradients_[bucket % layout_.slots()]) : begin_gradients(bucket);
    case Quantity::squares:
      return waits ? end_squares() : begin_squares();
    case Quantity::weights:
      // Sends, too: the next step overwrites what was sent.
      return waits ? wait_for_all() : begin_weights(bucket);
    default:
      fail(Fault::failed, "a step of leaders without a quantity that hosts exchange");
  }
}

void HostExchange::begin_results(uint64_t step) {
  std::byte* at = results_.of(host()).data();
  const Decisions own{.stop = team_.agreed_stop(), .pause = team_.agreed_pause()};
  std::memcpy(at, &own, sizeof own);
  at += sizeof own;
  const Rows shards = session_.devices.topology.shards_of_host(host());
  for (int64_t s = shards.begin; s < shards.end; ++s, at += sizeof(Brought)) {
    const ShardResult& from = buffers_.result(step, static_cast<int>(s));
    const Brought brought{from.loss, from.weight};
    std::memcpy(at, &brought, sizeof brought);
  }
  begin(results_, HostTag::results);
}

void HostExchange::end_results(uint64_t step) {
  wait(frames_);
  int stop = 0;
  for (int h = 0; h < hosts(); ++h) {
    const std::byte* at = results_.of(h).data();
    Decisions theirs;
    std::memcpy(&theirs, at, sizeof theirs);
    at += sizeof theirs;
    if (stop == 0) stop = static_cast<int>(theirs.stop);
    // The first host decides by its clock when checkpoints are written.
    if (h == 0 && host() != 0 && theirs.pause != team_.agreed_pause())
      team_.publish_pause(theirs.pause);
    if (h == host()) continue;
    const Rows shards = session_.devices.topology.shards_of_host(h);
    for (int64_t s = shards.begin; s < shards.end; ++s, at += sizeof(Brought)) {
      Brought brought;
      std::memcpy(&brought, at, sizeof brought);
      ShardResult& to = buffers_.result(step, static_cast<int>(s));
      to.loss = brought.loss;
      to.weight = brought.weight;
    }
  }
  if (stop != 0) team_.stop_like_other_host(stop);
}

void HostExchange::begin_gradients(size_t bucket) {
  const ElementOwners& owners = layout_.owners();
  const Bucket own = owners.piece(bucket, host());
  Requests& arriving = gradients_[bucket % layout_.slots()];
  const std::vector<GradientPart>& parts = layout_.parts();
  for (int k = 1; k < hosts(); ++k)
    for (size_t p = 0; p < parts.size(); ++p)
      if (parts[p].host == peer(k))
        receive(arriving, peer(k), HostTag::gradients,
                {buffers_.staging() + layout_.staged(p, bucket),
                 own.count() * parts[p].element_bytes()});
  for (int k = 1; k < hosts(); ++k) {
    const Bucket piece = owners.piece(bucket, peer(k));
    for (const GradientPart& p : parts) {
      if (p.host != host()) continue;
      const int shard = static_cast<int>(p.shards.begin);
      send(sends_, peer(k), HostTag::gradients,
           p.halves ? bytes_of<uint16_t>(buffers_.halves(shard) + piece.begin, piece.count())
                    : bytes_of<float>(buffers_.gradient(shard) + piece.begin, piece.count()));
    }
  }
}

void HostExchange::begin_weights(size_t bucket) {
  const auto piece = [&](int h) {
    const Bucket own = layout_.owners().piece(bucket, h);
    return bytes_of(buffers_.weights() + own.begin, own.count());
  };
  for (int k = 1; k < hosts(); ++k) receive(weights_, peer(k), HostTag::weights, piece(peer(k)));
  for (int k = 1; k < hosts(); ++k) send(sends_, peer(k), HostTag::weights, piece(host()));
}

// Calls f(chunk) for each chunk of norm partials whose elements the host owns.
template <class F>
void HostExchange::each_own_chunk(int of, F f) const {
  for (size_t b = 0; b < layout_.owners().buckets(); ++b) {
    const Bucket piece = layout_.owners().piece(b, of);
    for (size_t at = piece.begin; at < piece.end; at += Buffers::kChunk) f(at / Buffers::kChunk);
  }
}

void HostExchange::begin_squares() {
  auto* to = reinterpret_cast<double*>(squares_.of(host()).data());
  each_own_chunk(host(), [&](size_t chunk) { *to++ = buffers_.squares()[chunk]; });
  begin(squares_, HostTag::squares);
}

void HostExchange::end_squares() {
  wait(frames_);
  for (int k = 1; k < hosts(); ++k) {
    const auto* from = reinterpret_cast<const double*>(squares_.of(peer(k)).data());
    each_own_chunk(peer(k), [&](size_t chunk) { buffers_.squares()[chunk] = *from++; });
  }
}

// For all that has begun with weights_ and sends_.
void HostExchange::wait_for_all() {
  wait(weights_);
  wait(sends_);
}

void HostExchange::gather_weights() {
  for (size_t b = 0; b < layout_.owners().buckets(); ++b) begin_weights(b);
  wait_for_all();
}

// Between the first host and the owners of each element, one state after another.
void HostExchange::exchange_states(bool to_first) {
  const ElementOwners& owners = layout_.owners();
  for (int i = 0; i < buffers_.sizes().states; ++i) {
    const auto exchange = [&](int with, int owner) {
      for (size_t b = 0; b < owners.buckets(); ++b) {
        const Bucket piece = owners.piece(b, owner);
        const auto bytes = bytes_of(buffers_.state(i) + piece.begin, piece.count());
        if (to_first == (host() == 0))
          receive(weights_, with, HostTag::states, bytes);
        else
          send(sends_, with, HostTag::states, bytes);
      }
    };
    if (host() > 0) exchange(0, host());
    for (int h = 1; host() == 0 && h < hosts(); ++h) exchange(h, h);
    wait_for_all();
  }
}

void HostExchange::gather_states() { exchange_states(true); }

void HostExchange::send_start() {
  broadcast(link_, HostTag::weights, bytes_of(buffers_.weights(), session_.model.layout.total));
  exchange_states(false);
}

}  // namespace dpt
