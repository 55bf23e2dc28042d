#include "comm/hosts/frame.h"

#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "base/error.h"
#include "comm/hosts/bytes.h"
#include "comm/hosts/messages.h"

namespace dpt {
namespace {

Digest key_of(std::string_view text) { return Sha256().update(text).digest(); }

// Everything that comes out of the reader, which gets the bytes in pieces.
std::vector<Frame> read_all(FrameReader& reader, std::span<const std::byte> bytes, size_t piece) {
  std::vector<Frame> out;
  while (!bytes.empty()) {
    const std::span<std::byte> space = reader.space();
    const size_t n = std::min({piece, space.size(), bytes.size()});
    std::ranges::copy(bytes.first(n), space.begin());
    bytes = bytes.subspan(n);
    if (auto frame = reader.take(n)) out.push_back(std::move(*frame));
  }
  return out;
}

std::string refusal(FrameReader& reader, std::span<const std::byte> bytes) {
  try {
    read_all(reader, bytes, 1000);
  } catch (const Error& e) {
    CHECK(e.fault() == Fault::rank);
    return e.what();
  }
  return "";
}

FrameReader reader_of(const char* key = "k") {
  FrameReader out;
  out.use_key(key_of(key));
  out.accept(FrameType::gather, 100);
  out.accept(FrameType::goodbye, 0);
  return out;
}

FrameWriter writer_of(const char* key = "k") {
  FrameWriter out;
  out.use_key(key_of(key));
  return out;
}

TEST_CASE("frames are read as they were written, however the bytes arrive") {
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{1000}}) {
    FrameWriter writer = writer_of();
    std::vector<std::byte> bytes;
    for (const char* text : {"one", "", "three"}) {
      const auto frame = writer.frame(FrameType::gather, encode_text(text, 100));
      bytes.insert(bytes.end(), frame.begin(), frame.end());
    }
    const auto end = writer.frame(FrameType::goodbye, {});
    bytes.insert(bytes.end(), end.begin(), end.end());
    FrameReader reader = reader_of();
    const std::vector<Frame> frames = read_all(reader, bytes, piece);
    REQUIRE(frames.size() == 4);
    CHECK(decode_text(frames[0].payload) == "one");
    CHECK(decode_text(frames[1].payload).empty());
    CHECK(decode_text(frames[2].payload) == "three");
    CHECK(frames[3].type == FrameType::goodbye);
  }
}

TEST_CASE("a frame that was changed, repeated, left out or made without the key is refused") {
  FrameWriter writer = writer_of();
  const auto first = writer.frame(FrameType::gather, encode_text("one", 100));
  const auto second = writer.frame(FrameType::gather, encode_text("two", 100));
  for (size_t at = 0; at < first.size(); ++at) {
    std::vector<std::byte> changed = first;
    changed[at] ^= std::byte{1};
    FrameReader reader = reader_of();
    // A length that is too great waits for bytes that never come.
    const auto more = std::vector<std::byte>(200);
    changed.insert(changed.end(), more.begin(), more.end());
    CHECK(!refusal(reader, changed).empty());
  }
  FrameReader twice = reader_of();
  CHECK(refusal(twice, first).empty());
  CHECK(refusal(twice, first) == "a message was damaged or forged");
  FrameReader without_first = reader_of();
  CHECK(refusal(without_first, second) == "a message was damaged or forged");
  FrameReader other_key = reader_of("other");
  CHECK(refusal(other_key, first) == "a message was damaged or forged");
}

TEST_CASE("the receiver decides which frames come, and how long they are") {
  FrameWriter writer = writer_of();
  FrameReader reader = reader_of();
  CHECK(refusal(reader, writer.frame(FrameType::abort, {})).starts_with("a message of type 8 was"));
  reader = reader_of();
  CHECK(refusal(reader, writer.frame(FrameType::gather, std::vector<std::byte>(101))) ==
        "a message of type 11 has 101 bytes; at most 100 were expected");
  ByteWriter header;  // promises 4 GiB, of which nothing comes
  header.raw(std::as_bytes(std::span("DPTC", 4)));
  for (const int byte : {2, static_cast<int>(FrameType::gather)})
    header.number(static_cast<uint8_t>(byte));
  header.number(uint16_t{0});
  header.number(uint32_t{0xffffffff});
  header.number(uint32_t{0});
  reader = reader_of();
  CHECK(refusal(reader, header.bytes()).find("4294967295 bytes") != std::string::npos);
  CHECK(reader.space().empty());
  reader = reader_of();
  CHECK(refusal(reader, std::as_bytes(std::span("GET / HTTP/1.1\r\nHost: a\r\n"))) ==
        "what was received is not a message of dptrain");
}

TEST_CASE("messages are decoded as they were encoded") {
  const HostHello hello{.first_rank = 4,
                        .ranks = 2,
                        .world = 8,
                        .host = 2,
                        .name = "hostb",
                        .address = "10.0.0.2",
                        .identity = {.version = "1.4.0",
                                     .spec = "s",
                                     .reproducible = true,
                                     .instructions = "AVX2",
                                     .onednn = "3.1",
                                     .failure = "no"}};
  const HostHello again = decode_hello(encode(hello));
  CHECK(again.first_rank == 4);
  CHECK(again.ranks == 2);
  CHECK(again.world == 8);
  CHECK(again.host == 2);
  CHECK(again.name == "hostb");
  CHECK(again.address == "10.0.0.2");
  CHECK(again.identity.version == "1.4.0");
  CHECK(again.identity.spec == "s");
  CHECK(again.identity.reproducible);
  CHECK(again.identity.instructions == "AVX2");
  CHECK(again.identity.onednn == "3.1");
  CHECK(again.identity.failure == "no");
  // All that is sure to be the same in another version.
  const HostHello start = decode_start_of_hello(encode(hello));
  CHECK(start.name == "hostb");
  CHECK(start.identity.version == "1.4.0");
  CHECK(start.identity.spec.empty());
  const HostMap map({{.first_rank = 2, .ranks = 3, .name = "b", .address = "2"},
                     {.first_rank = 0, .ranks = 2, .name = "a", .address = "1"}});
  const HostMap same = decode_welcome(encode(map), 5);
  CHECK(same.hosts() == 2);
  CHECK(same.host(1) == map.host(1));
  CHECK(same.name_of(1) == "host 1 (b)");
  CHECK(same.host_of(1) == 0);
  CHECK(same.host_of(2) == 1);
  CHECK(same.ranks() == 5);
  CHECK(encode(map).size() <= longest_welcome(2));
  CHECK_THROWS_AS(decode_welcome(encode(map), 4), Error);
  const Beat beat{.progress = {.epoch = 3, .step = 812, .phase = Phase::saving},
                  .waits_for = -1,
                  .moved = uint64_t{1} << 40};
  CHECK(encode(beat).size() == kBeatBytes);
  const Beat read = decode_beat(encode(beat));
  CHECK(read.progress == beat.progress);
  CHECK(read.waits_for == -1);
  CHECK(read.moved == beat.moved);
  const std::vector<std::string> strings = {"a", "", "ccc"};
  CHECK(decode_gathered(encode(strings), 3) == strings);
  CHECK_THROWS_AS(decode_gathered(encode(strings), 2), Error);
  CHECK_THROWS_AS(decode_gathered(encode(strings), 4), Error);
}

TEST_CASE("hosts hold each rank once") {
  CHECK_THROWS_WITH_AS(HostMap({{.first_rank = 0, .ranks = 2}, {.first_rank = 1, .ranks = 1}}),
                       "the hosts of the run do not hold consecutive ranks: rank 2 is on two",
                       Error);
  CHECK_THROWS_WITH_AS(HostMap({{.first_rank = 1, .ranks = 2}}),
                       "the hosts of the run do not hold consecutive ranks: rank 0 is on none",
                       Error);
}

}  // namespace
}  // namespace dpt
