#include "engine/gpu/host_exchange.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/fail.h"
#include "engine/host_messages.h"
#include "session/gradient_buckets.h"

namespace dpt {
namespace {

// Calls f(begin, end) for each range of the flat buffers whose optimizer states the GPUs of a host
// keep: everything, or with `shard: optimizer` the pieces of its replicas, which are adjacent in
// each bucket.
template <class F>
void each_state_range(const Session& s, const GpuShare& share, int host, F f) {
  const Rows replicas = s.devices.topology.shards_of_host(host);  // each has one shard
  const auto each = [&](size_t begin, size_t end) {
    share.each(begin, end, [&](size_t flat, size_t, size_t count) { f(flat, flat + count); });
  };
  if (!s.devices.exchange.shard_states) return each(0, share.trained());
  for (const Bucket& bucket : gradient_buckets(s.devices, s.model, share))
    each(own_piece(s.devices, bucket, static_cast<int>(replicas.begin)).begin,
         own_piece(s.devices, bucket, static_cast<int>(replicas.end) - 1).end);
}

size_t state_bytes(const Session& s, const GpuShare& share, int host) {
  size_t elements = 0;
  each_state_range(s, share, host, [&](size_t begin, size_t end) { elements += end - begin; });
  return elements * sizeof(float) * static_cast<size_t>(s.settings.states());
}

std::span<std::byte> bytes_of(float* begin, size_t count) {
  return std::as_writable_bytes(std::span(begin, count));
}

// Differs for any two arrays that differ in one element, since each round can be inverted.
uint64_t digest_of(std::span<const float> values) {
  uint64_t out = values.size();
  for (const float v : values)
    out = std::rotl((out ^ std::bit_cast<uint32_t>(v)) * 0x9e3779b97f4a7c15, 29);
  return out;
}

}  // namespace

GpuHostExchange::GpuHostExchange(const Session& session, const Buffers& buffers,
                                 const GpuShare& share, Link& link)
    : session_(session),
      buffers_(buffers),
      share_(share),
      link_(link),
      results_(session, buffers, link) {}

size_t GpuHostExchange::start_bytes(const Session& session, const GpuShare& share, int host) {
  return session.model.layout.total * sizeof(float) + state_bytes(session, share, host);
}

size_t GpuHostExchange::checkpoint_bytes(const Session& session, const GpuShare& share, int host) {
  return session.devices.exchange.shard_states ? state_bytes(session, share, host) : 0;
}

void GpuHostExchange::send_start() {
  broadcast(link_, HostTag::weights, bytes_of(buffers_.weights(), session_.model.layout.total));
  exchange_states(false);
}

void GpuHostExchange::gather_states() {
  if (session_.devices.exchange.shard_states) exchange_states(true);
}

// Between the first host and each other one, one state after another.
void GpuHostExchange::exchange_states(bool to_first) {
  std::vector<Link::Request> requests;
  for (int i = 0; i < buffers_.sizes().states; ++i) {
    const auto exchange = [&](int with, int owner) {
      each_state_range(session_, share_, owner, [&](size_t begin, size_t end) {
        const auto bytes = bytes_of(buffers_.state(i) + begin, end - begin);
        requests.push_back(to_first == (link_.host() == 0)
                               ? link_.receive(with, HostTag::states, bytes)
                               : link_.send(with, HostTag::states, bytes));
      });
    };
    if (link_.host() > 0) exchange(0, link_.host());
    for (int h = 1; link_.host() == 0 && h < link_.hosts(); ++h) exchange(h, h);
    for (const Link::Request r : requests) link_.wait(r);
    requests.clear();
  }
}

void GpuHostExchange::compare_weights() {
  const auto hosts = static_cast<size_t>(link_.hosts());
  std::vector<uint64_t> digests(hosts);
  digests[static_cast<size_t>(link_.host())] =
      digest_of({buffers_.weights(), session_.model.layout.trainable});
  std::vector<std::span<std::byte>> frames;
  for (uint64_t& d : digests) frames.push_back(std::as_writable_bytes(std::span(&d, 1)));
  all_gather(link_, HostTag::weights, frames);
  const auto other = std::ranges::find_if(digests, [&](uint64_t d) { return d != digests[0]; });
  if (other != digests.end() && link_.host() == 0)
    fail(Fault::device,
         "after the last step, the weights on the GPUs of host {} differ from those of host 0, so "
         "a sum over GPUs was wrong; nothing is saved",
         other - digests.begin());
}

}  // namespace dpt
