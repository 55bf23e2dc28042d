#include "formats/protobuf_writer.h"

#include <bit>

namespace dpt {
namespace {

constexpr int kVarint = 0, kLength = 2, kFixed32 = 5;  // wire types

}  // namespace

void ProtobufWriter::varint(uint64_t value) {
  constexpr uint64_t kMore = 0x80;
  for (; value >= kMore; value >>= 7) bytes_ += static_cast<char>((value & (kMore - 1)) | kMore);
  bytes_ += static_cast<char>(value);
}

ProtobufWriter& ProtobufWriter::integer(int field, int64_t value) {
  key(field, kVarint);
  varint(static_cast<uint64_t>(value));
  return *this;
}

ProtobufWriter& ProtobufWriter::number(int field, float value) {
  key(field, kFixed32);
  const auto bits = std::bit_cast<uint32_t>(value);
  for (int i = 0; i < 4; ++i) bytes_ += static_cast<char>(bits >> (8 * i) & 0xff);
  return *this;
}

ProtobufWriter& ProtobufWriter::text(int field, std::string_view value) {
  key(field, kLength);
  varint(value.size());
  bytes_ += value;
  return *this;
}

}  // namespace dpt
