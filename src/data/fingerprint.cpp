#include "data/fingerprint.h"

#include <algorithm>

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

}  // namespace

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
