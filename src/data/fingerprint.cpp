#include "data/fingerprint.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "base/sha256.h"

namespace dpt {
namespace {

constexpr int64_t kSamplesHashed = 64;

std::span<const std::byte> sample_of(const Table& table, int64_t row) {
  const size_t element = size_of(table.desc.dtype);
  const auto step = static_cast<size_t>(table.step()) * element;
  const auto bytes = static_cast<size_t>(table.sample().elements()) * element;
  return {table.data.get() + static_cast<size_t>(row) * step, bytes};
}

std::span<const std::byte> bytes_of(const Table& table) {
  return {table.data.get(), static_cast<size_t>(table.stored()) * size_of(table.desc.dtype)};
}

uint64_t hash_of(std::string_view text, uint64_t seed) {
  return dpt::hash_of(std::as_bytes(std::span(text)), seed);
}

}  // namespace

// As XXH64 does: four lanes of 8 bytes each, which are independent multiplications.
uint64_t hash_of(std::span<const std::byte> bytes, uint64_t seed) {
  constexpr uint64_t kFirst = 0x9e3779b185ebca87, kSecond = 0xc2b2ae3d27d4eb4f;
  constexpr size_t kLanes = 4, kWord = sizeof(uint64_t);
  const auto round = [](uint64_t sum, uint64_t word) {
    return std::rotl(sum + word * kSecond, 31) * kFirst;
  };
  std::array<uint64_t, kLanes> sums = {seed + kFirst + kSecond, seed + kSecond, seed,
                                       seed - kFirst};
  std::array<uint64_t, kLanes> words{};
  size_t at = 0;
  for (; at + kLanes * kWord <= bytes.size(); at += kLanes * kWord) {
    std::memcpy(words.data(), bytes.data() + at, kLanes * kWord);
    for (size_t i = 0; i < kLanes; ++i) sums[i] = round(sums[i], words[i]);
  }
  words = {};
  if (at < bytes.size()) std::memcpy(words.data(), bytes.data() + at, bytes.size() - at);
  uint64_t out = bytes.size();
  for (size_t i = 0; i < kLanes; ++i) out = round(round(out, sums[i]), words[i]);
  out = (out ^ (out >> 33)) * kSecond;
  return out ^ (out >> 29);
}

std::string full_fingerprint(const Dataset& data) {
  if (!data.made) return "";
  uint64_t hash = hash_of(
      fmt::format("{} {} {} {}", data.inputs.desc.shape.str(), name_of(data.inputs.desc.dtype),
                  data.targets.desc.shape.str(), name_of(data.targets.desc.dtype)),
      0);
  hash = data.reader ? hash_of(fmt::format("{}", data.reader->fingerprint()), hash)
                     : hash_of(bytes_of(data.inputs), hash);
  return fmt::format("{:016x}", hash_of(bytes_of(data.targets), hash));
}

std::string fingerprint_of_rows(std::span<const uint32_t> rows) {
  return rows.empty() ? "" : fmt::format("{:016x}", hash_of(std::as_bytes(rows), 0));
}

std::string fingerprint(const Dataset& data) {
  Sha256 hash;
  hash.update(fmt::format("{} {} {} {} {} {}", data.inputs.desc.shape.str(),
                          name_of(data.inputs.desc.dtype), data.targets.desc.shape.str(),
                          name_of(data.targets.desc.dtype), data.classes, data.tokens));
  std::vector<std::byte> read;
  if (data.reader)
    read.resize(static_cast<size_t>(data.inputs.sample().elements()) *
                size_of(data.inputs.desc.dtype));
  const int64_t count = std::min(kSamplesHashed, data.size());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = i * data.size() / count;
    if (data.reader) {
      data.reader->read(static_cast<uint32_t>(row), read);
      hash.update(std::span<const std::byte>(read));
    } else {
      hash.update(sample_of(data.inputs, row));
    }
    hash.update(sample_of(data.targets, row));
  }
  return hash.hex();
}

}  // namespace dpt
