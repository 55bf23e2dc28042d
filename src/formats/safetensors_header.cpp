#include "formats/safetensors_header.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/fail.h"
#include "base/units.h"
#include "formats/json.h"
#include "formats/json_reader.h"

namespace dpt {
namespace {

constexpr size_t kMostTensors = 65536, kMostName = 512, kMostText = kMiB;

constexpr std::pair<std::string_view, DType> kTypes[] = {
    {"F32", DType::f32}, {"F64", DType::f64}, {"F16", DType::f16}, {"BF16", DType::bf16},
    {"I64", DType::i64}, {"I32", DType::i32}, {"U8", DType::u8}};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), reader_(text) {}

  SafeTensorsHeader parse() {
    SafeTensorsHeader out;
    bool metadata = false;
    if (!text_.starts_with('{')) refuse("the header must begin with '{'");
    reader_.members(kMostName, [&](std::string name) {
      if (name == "__metadata__") {
        if (std::exchange(metadata, true)) refuse("__metadata__ appears twice");
        reader_.members(kMostName, [&](std::string key) {
          if (!out.metadata.emplace(std::move(key), reader_.string(kMostText)).second)
            refuse("a key appears twice");
        });
        return;
      }
      if (out.rows.size() == kMostTensors) refuse("more than 65536 tensors");
      out.rows.push_back(tensor(std::move(name)));
    });
    reader_.expect_end();
    return out;
  }

 private:
  [[noreturn]] void refuse(std::string why) const { reader_.refuse(std::move(why)); }

  uint64_t number() {
    const char c = reader_.peek();
    if (c < '0' || c > '9') refuse("a whole number was expected");
    const auto number = reader_.number();
    const auto* const whole = std::get_if<int64_t>(&number);
    if (!whole) refuse("a whole number was expected");
    return static_cast<uint64_t>(*whole);
  }

  std::vector<uint64_t> numbers(size_t most) {
    std::vector<uint64_t> out;
    reader_.items([&] {
      if (out.size() == most) refuse("a list that is too long");
      out.push_back(number());
    });
    return out;
  }

  SafeTensorsHeader::Row tensor(std::string name) {
    SafeTensorsHeader::Row row;
    std::vector<uint64_t> shape, offsets;
    bool has_type = false, has_shape = false, has_offsets = false;
    reader_.members(kMostName, [&](const std::string& key) {
      if (key == "dtype" && !std::exchange(has_type, true))
        row.desc.dtype = type(name);
      else if (key == "shape" && !std::exchange(has_shape, true))
        shape = numbers(Shape::kMaxRank);
      else if (key == "data_offsets" && !std::exchange(has_offsets, true))
        offsets = numbers(2);
      else
        refuse(fmt::format("'{:.40}' of tensor '{:.80}' is unknown or appears twice", key, name));
    });
    if (!has_type || !has_shape || offsets.size() != 2)
      refuse(fmt::format("tensor '{:.80}' lacks dtype, shape or data_offsets", name));
    uint64_t bytes = size_of(row.desc.dtype);
    bool fits = true;
    for (const uint64_t d : shape) fits = fits && !__builtin_mul_overflow(bytes, d, &bytes);
    const std::vector<int64_t> dims(shape.begin(), shape.end());
    row.desc.shape = Shape(dims);
    row.begin = offsets[0];
    row.end = offsets[1];
    if (!fits || row.begin > row.end || row.end - row.begin != bytes)
      refuse(fmt::format("tensor '{:.80}' {} {} does not fit its bytes {}..{}", name,
                         row.desc.shape.str(), name_of(row.desc.dtype), row.begin, row.end));
    row.name = std::move(name);
    return row;
  }

  DType type(const std::string& name) {
    const std::string word = reader_.string(kMostName);
    for (const auto& [known, dtype] : kTypes)
      if (word == known) return dtype;
    refuse(fmt::format(
        "tensor '{:.80}' has dtype '{:.40}'; F32 F64 F16 BF16 I64 I32 U8 can be read", name, word));
  }

  std::string_view text_;
  JsonReader reader_;
};

}  // namespace

SafeTensorsHeader parse_safetensors_header(std::string_view json, const std::string& path) try {
  return Parser(json).parse();
} catch (const JsonError& e) {
  fail(Fault::data, "{} is not a valid safetensors file: {} (byte {} of its header)", path, e.what,
       e.offset);
}

std::string safetensors_header_json(const SafeTensorsHeader& header) {
  std::string out;
  const auto add = [&](const std::string& key, const Json& value) {
    out += out.empty() ? "{" : ",";
    out += Json(key).dense() + ":" + value.dense();
  };
  if (!header.metadata.empty()) {
    Json metadata;
    for (const auto& [key, value] : header.metadata) metadata.add(key, value);
    add("__metadata__", metadata);
  }
  for (const SafeTensorsHeader::Row& row : header.rows) {
    const auto type =
        std::ranges::find(kTypes, row.desc.dtype, &std::pair<std::string_view, DType>::second);
    add(row.name, {{"dtype", type->first},
                   {"shape", Json::array_of(row.desc.shape.extents())},
                   {"data_offsets", Json::array({row.begin, row.end})}});
  }
  return out.empty() ? "{}" : out + "}";
}

}  // namespace dpt
