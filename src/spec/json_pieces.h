// Builds JSON texts from parts, for the JSON Schema.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/json_text.h"

namespace dpt {

std::string json_list(const std::vector<std::string>& items);
std::string json_object(const std::vector<std::string>& members);
std::string json_member(std::string_view key, const std::string& value);

// A JSON list of strings; Texts holds std::string or std::string_view.
template <class Texts>
std::string json_texts(const Texts& texts) {
  std::vector<std::string> items;
  for (const auto& t : texts) items.push_back(json_text(t));
  return json_list(items);
}

// The same JSON with line breaks and two spaces of indentation per level. Values that fit into 100
// columns stay on one line.
std::string json_lines(std::string_view json);

}  // namespace dpt
