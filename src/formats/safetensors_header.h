// The JSON header of a safetensors file: parsing untrusted text, and writing it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/tensor.h"

namespace dpt {

struct SafeTensorsHeader {
  struct Row {
    std::string name;
    TensorDesc desc;
    uint64_t begin = 0, end = 0;  // bytes from the start of the data
  };
  std::vector<Row> rows;  // in the order of the header
  std::map<std::string, std::string> metadata;
};

// Accepts only the JSON that the format allows. Throws Error{data} with `path` and the byte offset
// in the header.
SafeTensorsHeader parse_safetensors_header(std::string_view json, const std::string& path);

std::string safetensors_header_json(const SafeTensorsHeader& header);

}  // namespace dpt
