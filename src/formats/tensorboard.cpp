#include "formats/tensorboard.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>

namespace dpt::tensorboard {
namespace {

constexpr std::array<uint32_t, 256> make_crc_table() {
  constexpr uint32_t kPolynomial = 0x82f63b78;  // 0x1edc6f41 with its bits reversed
  std::array<uint32_t, 256> out{};
  for (uint32_t i = 0; i < out.size(); ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    out[i] = value;
  }
  return out;
}

template <class T>
std::string little_endian(T value) {
  std::string out;
  for (size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>((value >> (8 * i)) & 0xff);
  return out;
}

// Protobuf's encoding: a field is its number and wire type, then its value.
enum class Wire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  return out + static_cast<char>(value);
}

std::string head(int field, Wire wire) {
  return varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire));
}

std::string integer(int field, int64_t value) {
  return head(field, Wire::varint) + varint(static_cast<uint64_t>(value));
}

std::string number64(int field, double value) {
  return head(field, Wire::fixed64) + little_endian(std::bit_cast<uint64_t>(value));
}

std::string number32(int field, float value) {
  return head(field, Wire::fixed32) + little_endian(std::bit_cast<uint32_t>(value));
}

std::string bytes(int field, std::string_view value) {
  return (head(field, Wire::bytes) + varint(value.size())).append(value);
}

// Event: wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7.
std::string event(double time, int64_t step, const std::string& what) {
  return record(number64(1, time) + (step == 0 ? "" : integer(2, step)) + what);
}

// SummaryMetadata: plugin_data = 1 {plugin_name = 1, content = 2}.
std::string metadata_of(std::string_view plugin, std::string_view content) {
  return bytes(1, bytes(1, plugin) + (content.empty() ? "" : bytes(2, content)));
}

// TensorProto: dtype = 1, tensor_shape = 2 {dim = 2 {size = 1}}, string_val = 8.
std::string text_tensor(std::string_view content) {
  constexpr int kString = 7;  // DT_STRING
  return integer(1, kString) + bytes(2, bytes(2, integer(1, 1))) + bytes(8, content);
}

// Summary.Value: tag = 1, simple_value = 2, tensor = 8, metadata = 9; Summary: value = 1.
std::string value_of(std::string_view tag, const std::string& rest) {
  return bytes(1, bytes(1, tag) + rest);
}

std::optional<double> number_in(std::string_view text) {
  double x = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, x);
  return error == std::errc() && at == end && std::isfinite(x) ? std::optional(x) : std::nullopt;
}

// google.protobuf.Value: number_value = 2, string_value = 3, bool_value = 4.
std::string setting_value(std::string_view text) {
  if (text == "true" || text == "false") return integer(4, text == "true" ? 1 : 0);
  const auto x = number_in(text);
  return x ? number64(2, *x) : bytes(3, text);
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = make_crc_table();
  uint32_t out = 0xffffffff;
  for (const char c : bytes)
    out = (out >> 8) ^ kTable[(out ^ static_cast<unsigned char>(c)) & 0xff];
  return ~out;
}

uint32_t masked_crc32c(std::string_view bytes) {
  constexpr uint32_t kMask = 0xa282ead8;
  return std::rotr(crc32c(bytes), 15) + kMask;
}

std::string record(std::string_view bytes) {
  const std::string length = little_endian(static_cast<uint64_t>(bytes.size()));
  return (length + little_endian(masked_crc32c(length))).append(bytes) +
         little_endian(masked_crc32c(bytes));
}

std::string file_version(double time) { return event(time, 0, bytes(3, "brain.Event:2")); }

std::string session_start(double time, int64_t step) {
  constexpr int kStart = 1;  // SessionLog.START; SessionLog: status = 1
  return event(time, step, bytes(7, integer(1, kStart)));
}

std::string scalars(double time, int64_t step, std::span<const Scalar> values) {
  std::string summary;
  for (const Scalar& s : values)
    summary += value_of(s.tag, number32(2, static_cast<float>(s.value)));
  return event(time, step, bytes(5, summary));
}

// The page shows Markdown, in which indented lines are shown as they are.
std::string text(double time, std::string_view tag, std::string_view content) {
  std::string indented;
  for (size_t at = 0; at < content.size();) {
    const size_t end = std::min(content.find('\n', at), content.size());
    ((indented += "    ") += content.substr(at, end - at)) += '\n';
    at = end + 1;
  }
  return event(
      time, 0,
      bytes(5, value_of(tag, bytes(8, text_tensor(indented)) + bytes(9, metadata_of("text", "")))));
}

// HParamsPluginData: version = 1, session_start_info = 3 {hparams = 1 (a map), start_time_secs =
// 5}.
std::string settings(double time, const Settings& settings) {
  std::string info;
  for (const auto& [name, value] : settings)
    info += bytes(1, bytes(1, name) + bytes(2, setting_value(value)));
  info += number64(5, time);
  return event(time, 0,
               bytes(5, value_of("_hparams_/session_start_info",
                                 bytes(9, metadata_of("hparams", bytes(3, info))))));
}

}  // namespace dpt::tensorboard
