#include "export/onnx_metadata.h"

#include <cstddef>
#include <vector>

#include <fmt/format.h>

#include "data/column_encoding.h"
#include "formats/json.h"

namespace dpt {

std::map<std::string, std::string> onnx_metadata(const SampleForm& form, const Node& spec) {
  std::map<std::string, std::string> out = {{"data", to_json(form)}};
  if (!form.class_names.empty()) {
    std::string& names = out["names"];
    for (size_t i = 0; i < form.class_names.size(); ++i)
      names += fmt::format("{}{}: {}", i == 0 ? "{" : ", ", i, Json(form.class_names[i]).dump());
    names += "}";
  }
  if (const TableColumns& columns = form.columns; !columns.names.empty()) {
    out["input_columns"] = Json::array_of(input_names(columns)).dump();
    Json targets = Json::array();
    for (const size_t i : columns.targets) targets.push(columns.names[i]);
    out["target_columns"] = targets.dump();
  }
  if (const Node* data = spec.find("data"))
    for (const char* key : {"transforms", "target_transforms"})
      if (const Node* list = data->find(key)) out[key] = to_yaml(*list);
  return out;
}

}  // namespace dpt
