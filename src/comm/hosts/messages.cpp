#include "comm/hosts/messages.h"

#include "base/fail.h"
#include "comm/hosts/bytes.h"

namespace dpt {
namespace {

constexpr size_t kLongestWord = 128, kLongestFailure = 400, kLongestName = 64, kLongestAddress = 64;
constexpr size_t kWelcomeBytesAHost = 8 + 4 + kLongestName + 4 + kLongestAddress;

HostHello read_start_of_hello(ByteReader& in) {
  HostHello out;
  for (int* number : {&out.first_rank, &out.ranks, &out.world, &out.host})
    *number = in.number<int>();
  out.name = in.text(kLongestName);
  out.address = in.text(kLongestAddress);
  out.identity.version = in.text(kLongestWord);
  return out;
}

}  // namespace

size_t longest_welcome(int hosts) { return 4 + kWelcomeBytesAHost * static_cast<size_t>(hosts); }
size_t longest_gathered(int hosts) { return (4 + kLongestGathered) * static_cast<size_t>(hosts); }

std::vector<std::byte> encode(const HostHello& hello) {
  ByteWriter out;
  for (const int number : {hello.first_rank, hello.ranks, hello.world, hello.host})
    out.number(number);
  out.text(hello.name, kLongestName);
  out.text(hello.address, kLongestAddress);
  const HostIdentity& i = hello.identity;
  for (const std::string* word : {&i.version, &i.spec, &i.instructions, &i.onednn})
    out.text(*word, kLongestWord);
  out.number(static_cast<uint8_t>(i.reproducible));
  out.text(i.failure, kLongestFailure);
  return out.bytes();
}

HostHello decode_hello(std::span<const std::byte> payload) {
  ByteReader in(payload);
  HostHello out = read_start_of_hello(in);
  HostIdentity& i = out.identity;
  for (std::string* word : {&i.spec, &i.instructions, &i.onednn}) *word = in.text(kLongestWord);
  const auto flag = in.number<uint8_t>();
  if (flag > 1) fail(Fault::rank, "a hello has a flag {}", flag);
  i.reproducible = flag == 1;
  i.failure = in.text(kLongestFailure);
  in.end();
  return out;
}

HostHello decode_start_of_hello(std::span<const std::byte> payload) {
  ByteReader in(payload);
  return read_start_of_hello(in);
}

std::vector<std::byte> encode(const HostMap& map) {
  ByteWriter out;
  out.number(map.hosts());
  for (int h = 0; h < map.hosts(); ++h) {
    const HostMap::Host& host = map.host(h);
    out.number(host.first_rank);
    out.number(host.ranks);
    out.text(host.name, kLongestName);
    out.text(host.address, kLongestAddress);
  }
  return out.bytes();
}

HostMap decode_welcome(std::span<const std::byte> payload, int most) {
  ByteReader in(payload);
  const int hosts = in.number<int>();
  if (hosts < 1 || hosts > most)
    fail(Fault::rank, "the run has {} hosts and {} ranks", hosts, most);
  std::vector<HostMap::Host> out;
  int left = most;
  for (int h = 0; h < hosts; ++h) {
    HostMap::Host host{.first_rank = in.number<int>(), .ranks = in.number<int>()};
    host.name = in.text(kLongestName);
    host.address = in.text(kLongestAddress);
    if (host.ranks < 1 || host.ranks > left)
      fail(Fault::rank, "host {} has {} of {} ranks", h, host.ranks, most);
    left -= host.ranks;
    out.push_back(std::move(host));
  }
  in.end();
  return HostMap(std::move(out));
}

std::vector<std::byte> encode(const Beat& beat) {
  ByteWriter out;
  out.number(beat.progress.epoch);
  out.number(beat.progress.step);
  out.number(static_cast<uint32_t>(beat.progress.phase));
  out.number(beat.waits_for);
  out.number(beat.moved);
  return out.bytes();
}

Beat decode_beat(std::span<const std::byte> payload) {
  ByteReader in(payload);
  Beat out{.progress = {.epoch = in.number<int64_t>(), .step = in.number<int64_t>()}};
  const auto phase = in.number<uint32_t>();
  out.waits_for = in.number<int>();
  out.moved = in.number<uint64_t>();
  in.end();
  if (phase > static_cast<uint32_t>(Phase::connecting))
    fail(Fault::rank, "there is no phase {}", phase);
  out.progress.phase = static_cast<Phase>(phase);
  return out;
}

std::vector<std::byte> encode(std::span<const std::string> strings) {
  ByteWriter out;
  for (const std::string& s : strings) out.text(s, kLongestGathered);
  return out.bytes();
}

std::vector<std::string> decode_gathered(std::span<const std::byte> payload, int hosts) {
  ByteReader in(payload);
  std::vector<std::string> out;
  for (int h = 0; h < hosts; ++h) out.push_back(in.text(kLongestGathered));
  in.end();
  return out;
}

std::vector<std::byte> encode_text(std::string_view text, size_t most) {
  const auto bytes = std::as_bytes(std::span(text.substr(0, most)));
  return {bytes.begin(), bytes.end()};
}

std::string decode_text(std::span<const std::byte> payload) {
  return {reinterpret_cast<const char*>(payload.data()), payload.size()};
}

}  // namespace dpt
