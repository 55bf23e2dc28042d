// ControlLoop's all-gather and broadcast.
#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "comm/hosts/bytes.h"
#include "comm/hosts/control_loop.h"

namespace dpt {
namespace {

constexpr size_t kChunk = size_t{256} << 10;
constexpr size_t kMostQueued = size_t{1} << 20;  // of a broadcast, so that an abort is not far back

}  // namespace

void ControlLoop::handle_collective(PeerHost& p, const Frame& frame) {
  switch (frame.type) {
    case FrameType::gather:
      if (p.gathered) fail(Fault::rank, "it sent two strings for one all-gather");
      ++moved_;
      p.gathered = decode_text(frame.payload);
      return;
    case FrameType::gathered:
      if (!gather_ || gather_done_) return;  // the caller has given up
      gather_->all = decode_gathered(frame.payload, map.hosts());
      p.connection.reader().refuse(FrameType::gathered);
      gather_done_ = true;
      changed_.notify_all();
      return;
    case FrameType::ready:
      if (p.ready) fail(Fault::rank, "it asked for two broadcasts at once");
      p.ready = ByteReader(frame.payload).number<uint64_t>();
      p.sent = 0;
      return;
    case FrameType::chunk: {
      if (!broadcast_ || broadcast_done_) return;  // the caller has given up
      BroadcastInProgress& b = *broadcast_;
      const size_t expected = std::min(kChunk, b.bytes.size() - b.received);
      if (frame.payload.size() != expected)
        fail(Fault::rank, "it sent {} bytes of a broadcast in place of {}", frame.payload.size(),
             expected);
      std::ranges::copy(frame.payload, b.bytes.begin() + static_cast<ptrdiff_t>(b.received));
      b.received += expected;
      ++moved_;
      if (b.received < b.bytes.size()) return;
      p.connection.reader().refuse(FrameType::chunk);
      broadcast_done_ = true;
      changed_.notify_all();
      return;
    }
    default:
      fail(Fault::rank, "a message of type {} was not expected", static_cast<int>(frame.type));
  }
}

void ControlLoop::begin_gather() {
  gather_begun_ = true;
  if (host == 0) return;
  Connection& connection = peers_[0].connection;
  connection.reader().accept(FrameType::gathered, longest_gathered(map.hosts()));
  connection.send(FrameType::gather, encode_text(gather_->own, kLongestGathered));
}

void ControlLoop::advance_gather() {
  if (!gather_ || gather_done_) return;
  if (lacks_host([](const PeerHost& p) { return p.gathered.has_value(); })) return;
  if (!gather_begun_) begin_gather();
  if (host != 0 ||
      !std::ranges::all_of(peers_, [](const PeerHost& p) { return p.gathered.has_value(); }))
    return;
  gather_->all = {gather_->own};
  for (PeerHost& p : peers_) gather_->all.push_back(*std::exchange(p.gathered, std::nullopt));
  send_to_all(FrameType::gathered, encode(gather_->all));
  gather_done_ = true;
  changed_.notify_all();
}

void ControlLoop::begin_broadcast() {
  broadcast_begun_ = true;
  if (host == 0) return;
  const BroadcastInProgress& b = *broadcast_;
  Connection& connection = peers_[0].connection;
  ByteWriter payload;
  payload.number(uint64_t{b.bytes.size()});
  connection.reader().accept(FrameType::chunk, std::min(kChunk, b.bytes.size()));
  connection.send(FrameType::ready, payload.bytes());
}

void ControlLoop::advance_broadcast() {
  if (!broadcast_ || broadcast_done_) return;
  if (lacks_host([](const PeerHost& p) { return p.served; })) return;
  if (!broadcast_begun_) begin_broadcast();
  if (host != 0) return;
  bool all_sent = true;
  for (PeerHost& p : peers_) {
    if (p.ready && !p.served) send_chunks(p);
    all_sent &= p.served && (p.gone || p.connection.queued() == 0);
  }
  if (!all_sent || !failure_.empty()) return;
  for (PeerHost& p : peers_) p.served = false;
  broadcast_done_ = true;
  changed_.notify_all();
}

// No bytes at all are one empty chunk.
void ControlLoop::send_chunks(PeerHost& p) {
  BroadcastInProgress& b = *broadcast_;
  if (*p.ready != b.bytes.size()) {
    fail_run(fmt::format("{} expects {} bytes, {} has {}", map.name_of(p.host), *p.ready,
                         map.name_of(host), b.bytes.size()),
             nullptr);
    return;
  }
  while (!p.served && p.connection && p.connection.queued() < kMostQueued) {
    const size_t size = std::min(kChunk, b.bytes.size() - p.sent);
    const std::span<const std::byte> chunk = b.bytes.subspan(p.sent, size);
    if (p.sent / kChunk == b.digests.size()) b.digests.push_back(Sha256().update(chunk).digest());
    p.connection.send(FrameType::chunk, chunk, b.digests[p.sent / kChunk]);
    p.sent += size;
    ++moved_;
    p.served = p.sent == b.bytes.size();
  }
  if (p.served) p.ready.reset();
}

// A collective operation cannot end without a host that said goodbye before it did its part.
bool ControlLoop::lacks_host(bool (*did_its_part)(const PeerHost&)) {
  for (const PeerHost& p : peers_)
    if (p.gone && (host != 0 || !did_its_part(p)))
      fail_run(fmt::format("{} ended {}, but another host waits for it", map.name_of_rank(p.host),
                           position_of(p)),
               nullptr);
  return !failure_.empty();
}

void ControlLoop::throw_failure() const {
  if (team_) throw TeamBroken(failure_);
  throw Error(Fault::rank, failure_);
}

void ControlLoop::wait_until_done(std::unique_lock<std::mutex>& lock, const bool& done) {
  wake();
  changed_.wait(lock, [&] { return done || !failure_.empty() || leaving_; });
  if (done) return;
  if (failure_.empty()) fail(Fault::rank, "{} has said goodbye", map.name_of(host));
  throw_failure();
}

std::vector<std::string> ControlLoop::all_gather(const std::string& own) {
  require(own.size() <= kLongestGathered, "a gathered string is short");
  std::unique_lock lock(mutex_);
  gather_ = GatherInProgress{.own = own, .all = {}};
  gather_begun_ = gather_done_ = false;
  try {
    wait_until_done(lock, gather_done_);
  } catch (const Error&) {
    gather_.reset();
    throw;
  }
  return std::exchange(gather_, std::nullopt)->all;
}

void ControlLoop::broadcast(std::span<std::byte> bytes) {
  std::unique_lock lock(mutex_);
  broadcast_ = BroadcastInProgress{.bytes = bytes, .received = 0, .digests = {}};
  broadcast_begun_ = broadcast_done_ = false;
  try {
    wait_until_done(lock, broadcast_done_);
  } catch (const Error&) {
    broadcast_.reset();  // the caller's memory may go away now
    throw;
  }
  broadcast_.reset();
}

}  // namespace dpt
