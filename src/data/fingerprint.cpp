#include "data/fingerprint.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/hash.h"
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
