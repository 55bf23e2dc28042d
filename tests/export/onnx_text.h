// An ONNX model as text, decoded from its bytes: one line for each operator, constant, input and
// output. A reader of Protocol Buffers of its own, so that the writer is not its own judge.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dpt {

struct ProtobufField {
  int number = 0, type = 0;
  uint64_t value = 0;     // of a varint, or the bits of a float
  std::string_view text;  // of a string or message
};

inline std::vector<ProtobufField> protobuf_fields(std::string_view bytes) {
  size_t at = 0;
  const auto varint = [&] {
    uint64_t out = 0;
    for (int shift = 0;; shift += 7) {
      REQUIRE(at < bytes.size());
      const auto b = static_cast<unsigned char>(bytes[at++]);
      out |= uint64_t{b & 0x7fU} << shift;
      if (b < 0x80) return out;
    }
  };
  std::vector<ProtobufField> out;
  while (at < bytes.size()) {
    const uint64_t key = varint();
    ProtobufField f{.number = static_cast<int>(key >> 3), .type = static_cast<int>(key & 7)};
    if (f.type == 5) {
      uint32_t bits = 0;
      std::memcpy(&bits, bytes.data() + at, sizeof bits);
      f.value = bits;
      at += sizeof bits;
    } else {
      f.value = varint();
    }
    if (f.type == 2) {
      REQUIRE(f.value <= bytes.size() - at);
      f.text = bytes.substr(at, f.value);
      at += f.value;
    }
    out.push_back(f);
  }
  return out;
}

inline std::string onnx_attribute(std::string_view bytes) {
  std::string name, value;
  std::vector<std::string> list;
  for (const ProtobufField& f : protobuf_fields(bytes)) {
    if (f.number == 1) name = f.text;
    if (f.number == 2)
      value = fmt::format("{:g}", std::bit_cast<float>(static_cast<uint32_t>(f.value)));
    if (f.number == 3) value = std::to_string(static_cast<int64_t>(f.value));
    if (f.number == 4) value = f.text;
    if (f.number == 8) list.push_back(std::to_string(static_cast<int64_t>(f.value)));
  }
  return list.empty() ? fmt::format("{}={}", name, value)
                      : fmt::format("{}=[{}]", name, fmt::join(list, " "));
}

inline std::string onnx_node(std::string_view bytes) {
  std::vector<std::string> in, out, attributes;
  std::string op;
  for (const ProtobufField& f : protobuf_fields(bytes)) {
    if (f.number == 1) in.emplace_back(f.text);
    if (f.number == 2) out.emplace_back(f.text);
    if (f.number == 4) op = f.text;
    if (f.number == 5) attributes.push_back(onnx_attribute(f.text));
  }
  return fmt::format("{} = {}({}){}{}\n", fmt::join(out, ", "), op, fmt::join(in, ", "),
                     attributes.empty() ? "" : " ", fmt::join(attributes, " "));
}

inline std::string onnx_tensor(std::string_view bytes) {
  constexpr size_t kShown = 6;  // elements
  std::vector<uint64_t> extents;
  std::string name, values;
  uint64_t type = 0;
  for (const ProtobufField& f : protobuf_fields(bytes)) {
    if (f.number == 1) extents.push_back(f.value);
    if (f.number == 2) type = f.value;
    if (f.number == 8) name = f.text;
    if (f.number != 9) continue;
    const size_t size = type == 1 ? 4 : 8;
    for (size_t i = 0; i < std::min(f.text.size() / size, kShown); ++i) {
      float real = 0;
      int64_t whole = 0;
      std::memcpy(type == 1 ? static_cast<void*>(&real) : static_cast<void*>(&whole),
                  f.text.data() + i * size, size);
      values += type == 1 ? fmt::format(" {:g}", real) : fmt::format(" {}", whole);
    }
    if (f.text.size() / size > kShown) values += " ...";
  }
  return fmt::format("{} [{}] {} ={}\n", name, fmt::join(extents, ", "),
                     type == 1 ? "float" : "int64", values);
}

inline std::string onnx_value(std::string_view kind, std::string_view bytes) {
  std::string name, shape;
  uint64_t type = 0;
  for (const ProtobufField& f : protobuf_fields(bytes)) {
    if (f.number == 1) name = f.text;
    if (f.number != 2) continue;
    for (const ProtobufField& t : protobuf_fields(protobuf_fields(f.text)[0].text)) {
      if (t.number == 1) type = t.value;
      if (t.number != 2) continue;
      for (const ProtobufField& d : protobuf_fields(t.text)) {
        const ProtobufField extent = protobuf_fields(d.text)[0];
        shape += (shape.empty() ? "" : ", ") +
                 (extent.number == 2 ? std::string(extent.text) : std::to_string(extent.value));
      }
    }
  }
  return fmt::format("{} {} [{}] {}\n", kind, name, shape,
                     type == 1   ? "float"
                     : type == 2 ? "uint8"
                                 : "int64");
}

inline std::string onnx_text(std::string_view model) {
  std::string graph, out, nodes;
  for (const ProtobufField& f : protobuf_fields(model)) {
    if (f.number == 1) out += fmt::format("ir_version {}\n", f.value);
    if (f.number == 8) {
      const std::vector<ProtobufField> set = protobuf_fields(f.text);
      out += fmt::format("operator set '{}' {}\n", set[0].text, set[1].value);
    }
    if (f.number == 7) graph = f.text;
    if (f.number == 14) {
      const std::vector<ProtobufField> entry = protobuf_fields(f.text);
      out += fmt::format("metadata {} = {}\n", entry[0].text, entry[1].text);
    }
  }
  for (const ProtobufField& f : protobuf_fields(graph)) {
    if (f.number == 1) nodes += onnx_node(f.text);
    if (f.number == 2) out += fmt::format("graph {}\n", f.text);
    if (f.number == 5) out += onnx_tensor(f.text);
    if (f.number == 11) out += onnx_value("input", f.text);
    if (f.number == 12) out += onnx_value("output", f.text);
  }
  return out + nodes;
}

}  // namespace dpt
