#include "comm/links/conformance.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "base/error.h"

namespace dpt {
namespace {

using Bytes = std::vector<std::byte>;

// Differs between hosts, tags and places. After a first part only what begins each further part is
// of its own, since unoptimized code is slow.
Bytes pattern(int from, int to, uint32_t tag, size_t bytes) {
  constexpr size_t kPart = 65521;
  Bytes out(bytes);
  uint32_t x = 2654435761u * static_cast<uint32_t>(from * 64 + to + 1) + tag;
  for (size_t i = 0; i < std::min(bytes, kPart); ++i) {
    x = x * 1664525 + 1013904223;
    out[i] = static_cast<std::byte>(x >> 24);
  }
  for (size_t at = kPart; at < bytes; at += kPart) {
    std::copy_n(out.begin(), std::min(kPart, bytes - at), out.begin() + at);
    out[at] = static_cast<std::byte>(at / kPart);
  }
  return out;
}

bool starts_with(const std::string& text, const std::string& start) {
  return text.rfind(start, 0) == 0;
}

void poll_until_done(Link& link, Link::Request request) {
  while (!link.done(request)) std::this_thread::yield();
}

}  // namespace

void check_that(bool good, const std::string& what) {
  if (!good) throw ConformanceError(what);
}

std::string rank_error(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    check_that(e.fault() == Fault::rank, fmt::format("'{}' is an Error{{rank}}", e.what()));
    return e.what();
  }
  throw ConformanceError("the call throws an Error{rank}");
}

void check_order(Link& link) {
  constexpr int kMessages = 20;
  constexpr uint32_t kTags = 3;
  const int next = (link.host() + 1) % link.hosts();
  const int previous = (link.host() + link.hosts() - 1) % link.hosts();
  std::vector<int> sent(kMessages), received(kMessages * kTags, -1);
  std::vector<Link::Request> sends, receives(kMessages * kTags);
  for (int i = 0; i < kMessages; ++i) sent[i] = 100 * link.host() + i;
  // Receives of the last tag begin first.
  for (int tag = kTags - 1; tag >= 0; --tag)
    for (int i = 0; i < kMessages; ++i)
      receives[tag * kMessages + i] = link.receive(
          previous, tag, std::as_writable_bytes(std::span(&received[tag * kMessages + i], 1)));
  for (int i = 0; i < kMessages; ++i)
    for (uint32_t tag = 0; tag < kTags; ++tag)
      sends.push_back(link.send(next, tag, std::as_bytes(std::span(&sent[i], 1))));
  for (size_t i = receives.size(); i-- > 0;) {
    if (i % 2) poll_until_done(link, receives[i]);
    link.wait(receives[i]);
  }
  for (const Link::Request r : sends) link.wait(r);
  for (int i = 0; i < kMessages * static_cast<int>(kTags); ++i)
    check_that(
        received[i] == 100 * previous + i % kMessages,
        fmt::format("message {} of tag {} is {}", i % kMessages, i / kMessages, received[i]));
}

void check_all_to_all(Link& link) {
  const std::vector<size_t> lengths = {0, 1, 3, 4096, 65537, (size_t{1} << 20) + 13, 0, 7};
  std::vector<Bytes> sent, received;
  std::vector<Link::Request> requests;
  uint64_t total = 0;
  for (int peer = 0; peer < link.hosts(); ++peer) {
    if (peer == link.host()) continue;
    for (size_t i = 0; i < lengths.size(); ++i) {
      const auto tag = static_cast<uint32_t>(i);
      sent.push_back(pattern(link.host(), peer, tag, lengths[i]));
      requests.push_back(link.send(peer, tag, sent.back()));
      received.emplace_back(lengths[i]);
      requests.push_back(link.receive(peer, tag, received.back()));
      total += lengths[i];
    }
  }
  for (const Link::Request r : requests) link.wait(r);
  size_t next = 0;
  for (int peer = 0; peer < link.hosts(); ++peer) {
    if (peer == link.host()) continue;
    for (size_t i = 0; i < lengths.size(); ++i, ++next)
      check_that(received[next] == pattern(peer, link.host(), static_cast<uint32_t>(i), lengths[i]),
                 fmt::format("{} bytes of host {} are those that it sent", lengths[i], peer));
  }
  check_that(link.bytes_sent() == total && link.bytes_received() == total,
             fmt::format("{} bytes each way are counted, not {} and {}", total, link.bytes_sent(),
                         link.bytes_received()));
}

namespace {

// 130 MiB, which take several pieces with every engine.
void check_pieces(Link& link) {
  constexpr size_t kLength = (size_t{130} << 20) + 1;
  if (link.host() == 0) {
    const Bytes message = pattern(0, 1, 9, kLength);
    link.wait(link.send(1, 9, message));
    check_that(link.bytes_sent() == kLength, "a long message is counted once");
  } else {
    Bytes message(kLength);
    link.wait(link.receive(0, 9, message));
    check_that(message == pattern(0, 1, 9, kLength), "a long message arrives as it was sent");
  }
}

// Host 0 does not wait for its message, so that host 1 notices it itself.
void unequal(Link& link, size_t sends, size_t expects) {
  Bytes sent(sends), received(expects), never(8);
  if (link.host() == 0) {
    link.send(1, 4, sent);
    rank_error([&] { link.wait(link.receive(1, 5, never)); });
  } else {
    const std::string text = rank_error([&] { link.wait(link.receive(0, 4, received)); });
    check_that(starts_with(text, "host 0: sends "), "host 1 names host 0 and lengths: " + text);
    check_that(text.find(fmt::format("{} bytes", expects)) != std::string::npos ||
                   text.find(fmt::format("expects {} (tag 4)", expects)) != std::string::npos,
               "host 1 says what it expects: " + text);
  }
  link.abort();
}

}  // namespace

void check_unequal_lengths(Link& link) { unequal(link, 4095, 4096); }
void check_longer_message(Link& link) { unequal(link, 100001, 100000); }

void check_sender_notices(Link& link) {
  Bytes bytes(16), never(8);
  if (link.host() == 0) {
    const std::string text = rank_error([&] { link.wait(link.send(1, 4, bytes)); });
    check_that(text == "host 1: expects 8 bytes where this host sends 16 (tag 4)", text);
  } else {
    link.receive(0, 4, std::span(bytes).first(8));
    rank_error([&] { link.wait(link.receive(0, 5, never)); });
  }
  link.abort();
}

void check_abort(Link& link) {
  Bytes never(16);
  const Link::Request request = link.receive((link.host() + 1) % link.hosts(), 1, never);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    link.abort();
    link.abort();
  });
  const std::string waiting = rank_error([&] { link.wait(request); });
  other.join();
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { link.wait(request); }, [&] { link.done(request); },
           [&] { link.send((link.host() + 1) % link.hosts(), 1, never); },
           [&] { link.receive((link.host() + 1) % link.hosts(), 1, never); }}) {
    const std::string text = rank_error(call);
    check_that(text == "the exchange between hosts was aborted", "calls after abort(): " + text);
  }
}

void check_silence(Link& link) {
  Bytes never(16);
  const int peer = (link.host() + 1) % link.hosts();
  const std::string text = rank_error([&] { link.wait(link.receive(peer, 1, never)); });
  // A host that has given up before this one may have closed its connections.
  check_that(starts_with(text, fmt::format("host {}: ", peer)),
             "the silent host is named: " + text);
  if (link.host() == 0)
    check_that(text == fmt::format("host {}: no data for 1 s", peer) ||
                   text.find("peer") != std::string::npos,
               "the time limit is named: " + text);
  link.abort();
}

const std::vector<LinkCase>& link_cases() {
  static const std::vector<LinkCase> cases = {
      {.name = "order", .body = check_order},
      {.name = "all to all", .body = check_all_to_all},
      {.name = "pieces", .body = check_pieces, .hosts = 2},
      {.name = "a shorter message", .body = check_unequal_lengths, .timeout_s = 2, .hosts = 2},
      {.name = "a longer message", .body = check_longer_message, .timeout_s = 2, .hosts = 2},
      {.name = "abort", .body = check_abort},
      {.name = "silence", .body = check_silence, .timeout_s = 1, .hosts = 2},
  };
  return cases;
}

}  // namespace dpt
