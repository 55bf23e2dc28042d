// Writes messages of Protocol Buffers (protobuf.dev/programming-guides/encoding) field by field.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dpt {

// The fields of one message. Fields are numbered as in the message's .proto file; a repeated field
// is written once for each value.
class ProtobufWriter {
 public:
  ProtobufWriter& integer(int field, int64_t value);        // int32, int64, an enum
  ProtobufWriter& number(int field, float value);           // float
  ProtobufWriter& text(int field, std::string_view value);  // string, bytes
  ProtobufWriter& message(int field, const ProtobufWriter& value) {
    return text(field, value.bytes_);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t value);
  void key(int field, int type) {
    varint(static_cast<uint64_t>(field) << 3 | static_cast<unsigned>(type));
  }

  std::string bytes_;
};

}  // namespace dpt
