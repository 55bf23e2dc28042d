// The model of an exported program, as Python modules.

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/fail.h"
#include "export/torch_parts.h"

namespace dpt {
namespace {

using Items = std::vector<ModelItem>;

bool any_item(const Items& items, bool (*holds)(const ModelItem&)) {
  return std::ranges::any_of(items, [&](const ModelItem& item) {
    return holds(item) || any_item(item.body, holds) || any_item(item.shortcut, holds);
  });
}

// Public members of torch.nn.Sequential, whose names add_module() refuses, and of class Graph.
constexpr std::string_view kMembers[] = {"T_destination",
                                         "add_module",
                                         "append",
                                         "apply",
                                         "bfloat16",
                                         "buffers",
                                         "call_super_init",
                                         "children",
                                         "compile",
                                         "cpu",
                                         "cuda",
                                         "double",
                                         "dump_patches",
                                         "eval",
                                         "extend",
                                         "extra_repr",
                                         "float",
                                         "forward",
                                         "get_buffer",
                                         "get_extra_state",
                                         "get_parameter",
                                         "get_submodule",
                                         "half",
                                         "insert",
                                         "ipu",
                                         "load_state_dict",
                                         "modules",
                                         "mtia",
                                         "named_buffers",
                                         "named_children",
                                         "named_modules",
                                         "named_parameters",
                                         "parameters",
                                         "pop",
                                         "register_backward_hook",
                                         "register_buffer",
                                         "register_forward_hook",
                                         "register_forward_pre_hook",
                                         "register_full_backward_hook",
                                         "register_full_backward_pre_hook",
                                         "register_load_state_dict_post_hook",
                                         "register_load_state_dict_pre_hook",
                                         "register_module",
                                         "register_parameter",
                                         "register_state_dict_post_hook",
                                         "register_state_dict_pre_hook",
                                         "requires_grad_",
                                         "set_extra_state",
                                         "set_submodule",
                                         "share_memory",
                                         "state_dict",
                                         "steps",
                                         "to",
                                         "to_empty",
                                         "train",
                                         "training",
                                         "type",
                                         "xpu",
                                         "zero_grad"};

bool names_sources(const ModelItem& item) { return !item.from.empty(); }
bool is_residual(const ModelItem& item) { return item.kind == ModelItem::Kind::residual; }

class ModelText {
 public:
  ModelText(const Graph& graph, const std::vector<LoweredLayer>& layers)
      : graph_(graph), layers_(layers) {}

  std::string list(const Items& items) const {
    if (items.empty()) return "nn.Identity()";
    if (any_item(items, names_sources)) return steps(items);
    return std::ranges::any_of(items, [](const ModelItem& i) { return !i.name.empty(); })
               ? named(items)
               : numbered(items);
  }

 private:
  static std::string lines(const std::string& head, const std::vector<std::string>& arguments,
                           const std::string& tail) {
    std::string out = head + "\n";
    for (const std::string& a : arguments) out += indent(a, 4) + ",\n";
    return out + tail;
  }

  std::string numbered(const Items& items) const {
    std::vector<std::string> modules;
    for (const ModelItem& item : items) modules.push_back(module(item));
    return lines("nn.Sequential(", modules, ")");
  }

  std::string named(const Items& items) const {
    std::vector<std::string> pairs;
    for (size_t i = 0; i < items.size(); ++i)
      pairs.push_back(fmt::format("(\"{}\", {})", name_of(items, i), module(items[i])));
    return "nn.Sequential(\n" + indent(lines("OrderedDict([", pairs, "])"), 4) + "\n)";
  }

  std::string steps(const Items& items) const {
    std::vector<std::string> triples;
    for (size_t i = 0; i < items.size(); ++i) {
      std::vector<std::string> sources;
      for (const auto& from : items[i].from) sources.push_back(fmt::format("\"{}\"", from.value));
      triples.push_back(fmt::format("(\"{}\", {}, [{}])", name_of(items, i), module(items[i]),
                                    fmt::join(sources, ", ")));
    }
    return lines("Graph(", triples, ")");
  }

  static std::string name_of(const Items& items, size_t i) {
    const std::string& name = items[i].name;
    if (std::ranges::find(kMembers, name) != std::end(kMembers))
      fail(Fault::spec,
           "PyTorch cannot have a layer named '{0}', because its modules have a member of this "
           "name; rename the layer, for example `name: {0}_layer`",
           name);
    return name.empty() ? std::to_string(i) : name;
  }

  std::string module(const ModelItem& item) const {
    switch (item.kind) {
      case ModelItem::Kind::layer:
        return layer(item);
      case ModelItem::Kind::sequence:
        return list(item.body);
      case ModelItem::Kind::residual:
        return lines("Residual(", {list(item.body), list(item.shortcut)}, ")");
    }
    return "";
  }

  std::string layer(const ModelItem& item) const {
    const auto at = std::ranges::find(layers_, &item, &LoweredLayer::item);
    const auto& type = type_of<LayerType>(item.layer);
    const std::string text = type.torch(item.layer.settings, graph_[at->in.at(0)].desc.shape);
    return type.several_inputs ? "lambda *x: " + text : text;
  }

  const Graph& graph_;
  const std::vector<LoweredLayer>& layers_;
};

}  // namespace

TorchModel torch_model(const TorchFacts& facts) {
  const Items& items = facts.spec.model;
  std::vector<std::string_view> classes;
  for (const LoweredLayer& l : facts.layers)
    if (const std::string_view needed = type_of<LayerType>(l.item->layer).torch_class;
        !needed.empty() && std::ranges::find(classes, needed) == classes.end())
      classes.push_back(needed);
  const bool graph = any_item(items, names_sources);
  return {.has_graph = graph,
          .has_residual = !graph && any_item(items, is_residual),
          .classes = fmt::format("{}", fmt::join(classes, "\n\n")),
          .expression = ModelText(facts.graph, facts.layers).list(items)};
}

}  // namespace dpt
