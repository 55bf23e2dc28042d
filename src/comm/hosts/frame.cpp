#include "comm/hosts/frame.h"

#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "comm/hosts/bytes.h"

namespace dpt {
namespace {

constexpr std::array kMagic = {std::byte{'D'}, std::byte{'P'}, std::byte{'T'}, std::byte{'C'}};
constexpr uint8_t kVersion = 2;
constexpr size_t kMacBytes = sizeof(Digest);

Digest mac_of(const Digest& key, bool keyed, uint64_t number, std::span<const std::byte> header,
              const Digest& payload) {
  ByteWriter count;
  count.number(number);
  const std::span<const std::byte> used =
      keyed ? std::span<const std::byte>(key) : std::span<const std::byte>();
  return hmac_sha256(used, {count.bytes(), header, payload});
}

}  // namespace

std::vector<std::byte> FrameWriter::frame(FrameType type, std::span<const std::byte> payload,
                                          const Digest& payload_digest) {
  ByteWriter header;
  header.raw(kMagic);
  header.number(kVersion);
  header.number(static_cast<uint8_t>(type));
  header.number(uint16_t{0});
  header.number(static_cast<uint32_t>(payload.size()));
  header.number(uint32_t{0});
  std::vector<std::byte> out(header.bytes().begin(), header.bytes().end());
  out.reserve(out.size() + payload.size() + kMacBytes);
  const Digest mac = mac_of(key_, keyed_, number_++, header.bytes(), payload_digest);
  out.insert(out.end(), payload.begin(), payload.end());
  out.insert(out.end(), mac.begin(), mac.end());
  return out;
}

void FrameReader::accept(FrameType type, size_t bytes) {
  most_[static_cast<size_t>(type)] = static_cast<int64_t>(bytes);
}

void FrameReader::refuse(FrameType type) { most_[static_cast<size_t>(type)] = -1; }

std::span<std::byte> FrameReader::space() { return std::span(buffer_).subspan(filled_); }

// The buffer then has the size of the whole frame.
void FrameReader::check_header() {
  ByteReader header(std::span<const std::byte>(buffer_).first(kFrameHeader));
  const bool ours = std::ranges::equal(header.raw(kMagic.size()), kMagic);
  const auto version = header.number<uint8_t>(), type = header.number<uint8_t>();
  const auto zero = header.number<uint16_t>();
  const auto length = header.number<uint32_t>(), reserved = header.number<uint32_t>();
  if (!ours || zero != 0 || reserved != 0)
    fail(Fault::rank, "what was received is not a message of dptrain");
  if (version != kVersion)
    fail(Fault::rank,
         "the protocol has version {} there and {} here; install the same version of "
         "dptrain on all hosts",
         version, kVersion);
  if (type >= kFrameTypes || most_[type] < 0)
    fail(Fault::rank, "a message of type {} was not expected", type);
  if (length > most_[type])
    fail(Fault::rank, "a message of type {} has {} bytes; at most {} were expected", type, length,
         most_[type]);
  buffer_.resize(kFrameHeader + length + kMacBytes);
}

std::optional<Frame> FrameReader::take(size_t bytes) {
  filled_ += bytes;
  if (filled_ < buffer_.size()) return std::nullopt;
  if (buffer_.size() == kFrameHeader) {
    check_header();
    return std::nullopt;
  }
  const std::span<const std::byte> all(buffer_);
  const std::span<const std::byte> payload =
      all.subspan(kFrameHeader, all.size() - kFrameHeader - kMacBytes);
  Digest mac{};
  std::ranges::copy(all.last(kMacBytes), mac.begin());
  const Digest expected =
      mac_of(key_, keyed_, number_++, all.first(kFrameHeader), Sha256().update(payload).digest());
  if (!equal_in_constant_time(mac, expected)) fail(Fault::rank, "a message was damaged or forged");
  Frame out{.type = static_cast<FrameType>(all[5]), .payload = {payload.begin(), payload.end()}};
  buffer_.assign(kFrameHeader, std::byte{0});
  buffer_.shrink_to_fit();
  filled_ = 0;
  return out;
}

}  // namespace dpt
