#include "describe/message_units.h"

#include <algorithm>

#include "base/fail.h"

namespace dpt {
namespace {

bool is_block(const ModelItem& item) { return item.kind == ModelItem::Kind::sequence; }

std::string name_of_item(const std::vector<ModelItem>& items, size_t i, const std::string& prefix) {
  return prefix + (items[i].name.empty() ? std::to_string(i) : items[i].name);
}

void add_blocks(const ModelItem& item, const std::string& name, std::vector<std::string>& out) {
  if (!is_block(item)) return;
  const bool blocks = item.body.size() > 1 && std::ranges::all_of(item.body, is_block);
  for (size_t i = 0; i < item.body.size(); ++i) {
    const std::string inner = name_of_item(item.body, i, name + ".");
    if (blocks) out.push_back(inner);
    add_blocks(item.body[i], inner, out);
  }
}

}  // namespace

std::vector<std::string> message_units(const std::vector<ModelItem>& model) {
  std::vector<std::string> out;
  for (size_t i = 0; i < model.size(); ++i) {
    const std::string name = name_of_item(model, i, "");
    out.push_back(name);
    add_blocks(model[i], name, out);
  }
  return out;
}

size_t unit_of(const std::vector<std::string>& units, const std::string& parameter) {
  size_t out = units.size();
  for (size_t i = 0; i < units.size(); ++i)
    if (parameter.starts_with(units[i] + ".") &&
        (out == units.size() || units[i].size() > units[out].size()))
      out = i;
  require(out < units.size(), "each parameter belongs to an entry of the model");
  return out;
}

}  // namespace dpt
