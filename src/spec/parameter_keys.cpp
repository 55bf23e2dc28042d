#include "spec/parameter_keys.h"

#include <fmt/format.h>

namespace dpt {
namespace {

Json patterns_schema() {
  return {{"type", Json::array({"string", "array"})},
          {"minLength", 1},
          {"items", {{"type", "string"}, {"minLength", 1}}}};
}

Json lr_scale_schema() {
  const Json reference = {
      {"type", Json::array({"integer", "null"})}, {"minimum", 1}, {"maximum", 2147483648}};
  const Json map = {{"minProperties", 1},
                    {"maxProperties", 1},
                    {"propertyNames", {{"enum", Json::array({"linear", "sqrt"})}}},
                    {"additionalProperties", reference}};
  return {{"type", Json::array({"string", "object"})},
          {"if", {{"type", "object"}}},
          {"then", map},
          {"else", {{"enum", Json::array({"none", "linear", "sqrt"})}}}};
}

struct GroupKeys : ParameterGroupSpec {
  static KeyTable<GroupKeys> keys() {
    return KeyTable<GroupKeys>()
        .section(
            "match", "parameters of the group, by name or pattern; see `freeze`",
            [](GroupKeys& s, const Node& n, Diagnostics& d) {
              read_patterns("match", s.match, n, d);
            },
            patterns_doc(""))
        .usage("", "parameter_groups: [{match: fc, lr: 0.1}]")
        .optional("lr", &GroupKeys::lr, "learning rate; none: the optimizer's", kNotNegative)
        .usage("lr of a group", "parameter_groups: [{match: 'layer1.*', lr: 0.01}]")
        .optional("weight_decay", &GroupKeys::weight_decay, "weight decay; none: the optimizer's",
                  kNotNegative)
        .usage("weight_decay of a group", "parameter_groups: [{match: fc, weight_decay: 0.01}]");
  }
  static void check(const GroupKeys& s, const Owner& owner, Diagnostics& d) {
    if (s.match.empty())
      d.error(owner.at("match"), "'match' needs at least one pattern, such as 'layer1.*'");
    if (!s.lr && !s.weight_decay)
      d.error(owner.where, "a parameter group needs 'lr' or 'weight_decay'");
  }
};

void read_groups(std::vector<ParameterGroupSpec>& out, const Node& n, Diagnostics& d) {
  const auto add = [&](const Node& item) {
    if (item.kind != Node::Kind::map) {
      d.error(item.where, "a parameter group must be a map, such as {match: 'layer1.*', lr: 0.01}");
      return;
    }
    out.push_back(GroupKeys::keys().decode(item, {"a parameter group", item.where}, d));
    out.back().where = item.where;
  };
  if (n.kind == Node::Kind::list)
    for (const Node& item : n.items) add(item);
  else if (n.kind != Node::Kind::null)
    add(n);
}

void read_lr_scale(LrScaleSpec& out, const Node& n, Diagnostics& d) {
  static const std::vector<std::string_view> rules = {"linear", "sqrt"};
  static const std::vector<std::string_view> words = {"none", "linear", "sqrt"};
  out.where = n.where;
  if (n.kind == Node::Kind::null) return;
  if (n.kind == Node::Kind::map && n.entries.size() == 1) {
    const Node::Entry& e = n.entries[0];
    const Node word{.kind = Node::Kind::scalar, .where = e.key.where, .text = e.key.value};
    const std::string_view rule = read_word("lr_scale", word, rules, d);
    int64_t batch = 0;
    const Range positive{.text = "must be between 1 and 2^31", .low = 1, .high = 2147483648};
    if (e.value.kind != Node::Kind::null &&
        read_value("lr_scale", e.value, Rule<int64_t>(positive), batch, d))
      out.batch = batch;
    if (!rule.empty()) out.rule = rule;
  } else if (n.kind == Node::Kind::scalar) {
    const std::string_view rule = read_word("lr_scale", n, words, d);
    if (!rule.empty()) out.rule = rule;
  } else {
    d.error(n.where,
            "'lr_scale' must be linear, sqrt or a map with one of them, such as {linear: 256}");
  }
}

struct WeightKeys {
  std::string file;
  bool partial = false;
  static KeyTable<WeightKeys> keys() {
    return KeyTable<WeightKeys>()
        .required_path("file", &WeightKeys::file, "path of the file")
        .usage("load_state_dict", "initial_weights: {file: trained.safetensors, partial: true}")
        .optional("partial", &WeightKeys::partial,
                  "whether to take only the tensors whose names and shapes fit the model")
        .usage("load_state_dict(strict=False)",
               "initial_weights: {file: trained.safetensors, partial: true}");
  }
};

}  // namespace

KeyDoc patterns_doc(std::string fallback) {
  return {.kind = "a pattern or a list of patterns",
          .fallback = std::move(fallback),
          .type = KeyKind::texts,
          .schema = patterns_schema()};
}

void read_patterns(std::string_view key, Patterns& out, const Node& n, Diagnostics& d) {
  const auto add = [&](const Node& item) {
    if (item.kind == Node::Kind::scalar && !item.text.empty())
      out.push_back({item.text, item.where});
    else
      d.error(item.where, fmt::format("'{}' takes patterns of parameter names, such as bias, norm "
                                      "or 'layer1.*'",
                                      key));
  };
  if (n.kind == Node::Kind::list)
    for (const Node& item : n.items) add(item);
  else if (n.kind != Node::Kind::null)
    add(n);
}

void add_initial_weights(KeyTable<TopKeys>& t) {
  t.optional_section(
       "initial_weights",
       "file of safetensors or torch.save with the initial weights; none: PyTorch's initial "
       "weights",
       [](TopKeys& s, const Node& n, Diagnostics& d) {
         if (n.kind == Node::Kind::null) return;
         const WeightKeys w = WeightKeys::keys().decode(n, {"'initial_weights'", n.where}, d);
         s.initial_weights = w.file;
         s.partial_weights = w.partial;
       },
       {.kind = "a path or a map",
        .type = KeyKind::path,
        .keys = WeightKeys::keys().describe(),
        .main = true})
      .usage("load_state_dict", "initial_weights: trained.safetensors");
}

void add_parameter_keys(KeyTable<TopKeys>& t) {
  t.optional_section(
       "parameter_groups", "groups of parameters with their own learning rate or weight decay",
       [](TopKeys& s, const Node& n, Diagnostics& d) { read_groups(s.parameter_groups, n, d); },
       {.kind = "a list of groups", .keys = GroupKeys::keys().describe(), .many = true})
      .usage("torch.optim.Optimizer(param_groups)",
             "parameter_groups: [{match: 'layer1.*', lr: 0.01}, {match: fc, weight_decay: 0}]")
      .optional_section(
          "no_decay", "parameters without weight decay; patterns as in `freeze`",
          [](TopKeys& s, const Node& n, Diagnostics& d) {
            read_patterns("no_decay", s.no_decay, n, d);
          },
          patterns_doc("[]"))
      .usage("torch.optim.Optimizer(param_groups)", "no_decay: [bias, norm]")
      .optional_section(
          "freeze",
          "parameters that are not trained: names of parameters or modules, patterns such as "
          "'layer1.*', `bias` (names that end in bias) or `norm` (all of normalization layers)",
          [](TopKeys& s, const Node& n, Diagnostics& d) {
            read_patterns("freeze", s.freeze, n, d);
          },
          patterns_doc("[]"))
      .usage("requires_grad_(False)", "freeze: [conv1, 'layer1.*', norm]")
      .optional_section(
          "lr_scale",
          "linear or sqrt: multiplies learning rates by the global batch over a reference batch, "
          "or by the root of that; the reference is given, as in {linear: 256}, or "
          "batch_size_per_replica",
          [](TopKeys& s, const Node& n, Diagnostics& d) { read_lr_scale(s.lr_scale, n, d); },
          {.kind = "none, linear, sqrt or a map", .schema = lr_scale_schema()})
      .usage("", "lr_scale: {linear: 256}");
}

}  // namespace dpt
