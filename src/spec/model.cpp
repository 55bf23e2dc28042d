#include "spec/model.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "spec/choice.h"

namespace dpt {
namespace {

constexpr std::string_view kResidual = "residual";

bool is_word(std::string_view s, bool dots) {
  return !s.empty() && std::ranges::all_of(s, [&](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || (dots && c == '.');
  });
}

// The keys of `init`. The values are decoded later, with the registries.
struct InitKeys {
  std::vector<std::pair<std::string_view, const Node*>> given;

  static KeyTable<InitKeys> keys() {
    KeyTable<InitKeys> out;
    const auto add = [&](size_t i, std::string_view doc, std::string_view example) {
      out.optional_section(kInitKeys[i], doc,
                           [name = kInitKeys[i]](InitKeys& keys, const Node& n, Diagnostics&) {
                             keys.given.emplace_back(name, &n);
                           },
                           {.kind = "an initialization", .registry = "initialisations"})
          .usage("", example);
    };
    add(0, "initialization of the weight, or of all weights of the layer",
        "init: {weight: xavier_uniform}");
    add(1, "initialization of the bias, or of all biases of the layer", "init: {bias: zeros}");
    add(2, "initialization of this parameter of multihead_attention, instead of `weight`",
        "init: {in_proj_weight: {normal: 0.02}}");
    add(3, "the same, instead of `bias`", "init: {in_proj_bias: {normal: 0.02}}");
    add(4, "the same, instead of `weight`", "init: {out_proj.weight: {normal: 0.005}}");
    add(5, "the same, instead of `bias`", "init: {out_proj.bias: {normal: 0.02}}");
    return out;
  }
};

Json from_schema() {
  const Json item = {{"type", Json::array({"string", "number", "boolean"})},
                     {"pattern", R"(^[A-Za-z0-9_.-]+$|\$\{.*\})"}};
  return {{"type", Json::array({"string", "number", "boolean", "array"})},
          {"pattern", "^[A-Za-z0-9_.-]+$"},
          {"minItems", 1},
          {"items", item}};
}

// The keys beside a layer's name.
struct Beside {
  std::string name;
  std::vector<Located<std::string>> from;
  const Node* init = nullptr;
  bool freeze = false, checkpoint = false;
  std::optional<int64_t> repeat, device;

  static KeyTable<Beside> keys() {
    return KeyTable<Beside>()
        .optional("name", &Beside::name,
                  "name of the entry, for `from` and for its parameters; none: parameters are "
                  "named by its position in the list")
        .usage("torch.nn.Module.add_module(name)", "{linear: 200, name: hidden}")
        .optional_section(
            "from",
            "entry, or list of entries, whose output is the input; none: the previous entry",
            read_from,
            {.kind = "a name or a list of names", .type = KeyKind::texts, .schema = from_schema()})
        .usage("", "{add: null, from: [left, right]}")
        .optional_section(
            "init",
            "initial weight, or {weight: ..., bias: ...}. It replaces PyTorch's default "
            "after the whole model is initialized, as calls of torch.nn.init do; none: "
            "PyTorch's default",
            [](Beside& b, const Node& n, Diagnostics&) { b.init = &n; },
            {.kind = "an initialization, or a map of parameters",
             .keys = InitKeys::keys().describe(),
             .main = true})
        .usage("torch.nn.init", "{linear: 200, init: xavier_uniform}")
        .optional("freeze", &Beside::freeze, "whether its parameters are not trained")
        .usage("requires_grad_(False)", "{linear: 200, freeze: true}")
        .optional("checkpoint", &Beside::checkpoint,
                  "whether its activations are recomputed in the backward pass instead of "
                  "stored; consecutive layers form one range")
        .usage("torch.utils.checkpoint", "{linear: 200, checkpoint: true}")
        .optional(
            "device", &Beside::device,
            "device of the replica that computes it, from 0; none: the previous entry's device",
            Range{.text = "must be between 0 and 1023", .low = 0, .high = 1023})
        .usage("Module.to(device)", "{linear: 200, device: 1}")
        .optional(
            "repeat", &Beside::repeat, "number of consecutive copies, named 0, 1, ...",
            Range{.text = "must be between 1 and 20000", .low = 1, .high = kMostExpanded.layers})
        .usage("", "{linear: 200, repeat: 3}");
  }

  static void read_from(Beside& b, const Node& n, Diagnostics& d) {
    const bool many = n.kind == Node::Kind::list;
    const size_t count = many ? n.items.size() : 1;
    if (count == 0) d.error(n.where, "'from' must name an entry");
    for (size_t i = 0; i < count; ++i) {
      const Node& word = many ? n.items[i] : n;
      if (word.kind != Node::Kind::scalar || !is_word(word.text, true))
        d.error(word.where, "'from' must be the name of an entry, or a list of names");
      else
        b.from.push_back({word.text, word.where});
    }
  }

  static void check(const Beside& b, const Owner& owner, Diagnostics& d) {
    if (owner.given("name") && !is_word(b.name, false))
      d.error(owner.at("name"), "a name may contain only letters, digits, '_' and '-'");
  }
};

// The keys of `residual`. Its lists are read later, when the blocks are known.
struct Residual {
  const Node* body = nullptr;
  const Node* shortcut = nullptr;

  static KeyTable<Residual> keys() {
    const KeyDoc items{.kind = "a list of layers", .registry = "layers", .many = true};
    return KeyTable<Residual>()
        .section(
            "body", "layers whose output is added to the shortcut's",
            [](Residual& r, const Node& n, Diagnostics&) { r.body = &n; }, items)
        .usage("", "residual: {body: [linear: 64, relu]}")
        .optional_section(
            "shortcut", "layers of the shortcut; none: the input itself",
            [](Residual& r, const Node& n, Diagnostics&) { r.shortcut = &n; }, items)
        .usage("", "residual: {body: [relu], shortcut: [linear: 64]}");
  }
};

struct BlockKeys {
  const Node* parameters = nullptr;
  const Node* layers = nullptr;

  static KeyTable<BlockKeys> keys() {
    return KeyTable<BlockKeys>()
        .optional_section("parameters", "parameters and their defaults; null: required at each use",
                          [](BlockKeys& b, const Node& n, Diagnostics& d) {
                            if (n.kind == Node::Kind::map)
                              b.parameters = &n;
                            else if (n.kind != Node::Kind::null)
                              d.error(n.where, "'parameters' must be a map of names and defaults");
                          },
                          {.kind = "a map of names and defaults", .schema = {{"type", "object"}}})
        .usage("", "{parameters: {width: 64, p: null}, layers: [relu]}")
        .section("layers", "layers, with ${parameter} and arithmetic in their values",
                 [](BlockKeys& b, const Node& n, Diagnostics&) { b.layers = &n; },
                 {.kind = "a list of layers", .registry = "layers", .many = true})
        .usage("", "{layers: [linear: 10, relu]}");
  }
};

}  // namespace

std::vector<KeyDoc> item_keys() { return Beside::keys().describe(); }
std::vector<KeyDoc> residual_keys() { return Residual::keys().describe(); }
std::vector<KeyDoc> block_keys() { return BlockKeys::keys().describe(); }

ModelReader::ModelReader(const Node* blocks, const Registries& registries, Diagnostics& d)
    : registries_(registries), d_(d) {
  if (!blocks || blocks->kind == Node::Kind::null) return;
  if (blocks->kind != Node::Kind::map)
    d.error(blocks->where, "'blocks' must be a map of names and blocks");
  for (const Node::Entry& e : blocks->entries) read_block(e);
}

void ModelReader::read_block(const Node::Entry& e) {
  const std::string& name = e.key.value;
  const auto beside = Beside::keys().names();
  if (!is_word(name, false))
    d_.error(e.key.where, "a name may contain only letters, digits, '_' and '-'");
  else if (name == kResidual || find_entry(registries_.layers, name))
    d_.error(e.key.where,
             fmt::format("'{}' is already the name of a layer; rename the block", name));
  else if (std::ranges::find(beside, name) != beside.end())
    d_.error(e.key.where,
             fmt::format("'{}' is already a key of layer entries; rename the block", name));
  const Owner owner{fmt::format("block '{}'", name), e.key.where};
  Block block{.name = name};
  if (e.value.kind == Node::Kind::map) {
    const BlockKeys keys = BlockKeys::keys().decode(e.value, owner, d_);
    block.parameters = keys.parameters;
    block.layers = keys.layers;
  } else {
    d_.error(e.value.where,
             owner.title + " must be a map with 'layers' and optionally 'parameters'");
  }
  block.sound = block.layers != nullptr;
  if (block.parameters && block.parameters->entries.size() > kMostParameters) {
    d_.error(block.parameters->where,
             fmt::format("a block may have at most {} parameters", kMostParameters));
    block.sound = false;
  }
  blocks_.emplace(name, block);
}

bool ModelReader::known(std::string_view name) const {
  return name == kResidual || blocks_.contains(name) || find_entry(registries_.layers, name);
}

std::vector<std::string_view> ModelReader::all_names() const {
  std::vector<std::string_view> names = names_of(registries_.layers);
  names.push_back(kResidual);
  for (const auto& [name, block] : blocks_) names.push_back(name);
  return names;
}

std::vector<ModelItem> ModelReader::read_list(std::string_view key, const Node& list) {
  std::vector<ModelItem> out;
  if (list.kind != Node::Kind::list || list.items.empty()) {
    d_.error(list.where, fmt::format("'{}' must be a list of layers", key));
    return out;
  }
  out.reserve(list.items.size());
  for (const Node& n : list.items) {
    if (model_.full() || substituted_.full()) return out;
    out.push_back(read_item(n));
  }
  check_names(out);
  return out;
}

void ModelReader::check_names(const std::vector<ModelItem>& items) {
  std::map<std::string, int> seen;
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string name = items[i].name.empty() ? std::to_string(i) : items[i].name;
    const auto [first, fresh] = seen.emplace(name, items[i].where.line);
    if (!fresh)
      d_.error(items[i].where, fmt::format("this list already has a layer named '{}', on line {}",
                                           name, first->second));
  }
}

ModelItem ModelReader::read_item(const Node& n) {
  ModelItem out;
  out.where = n.where;
  const Amount before = model_.used();
  // Its parameters' names are prefixed with the names of the enclosing entries.
  if (!model_.add({.layers = 1, .bytes = path_}, n.where, d_)) return out;
  if (n.kind == Node::Kind::scalar) {
    read_named({n.text, n.where}, Node{}, out);
    return out;
  }
  static const KeyTable<Beside> beside_table = Beside::keys();
  const auto beside = beside_table.names();
  const Node::Entry* chosen = main_entry(n, beside);
  if (!chosen) return out;
  out.where = chosen->key.where;
  Node rest;
  rest.kind = Node::Kind::map;
  for (const Node::Entry& e : n.entries)
    if (std::ranges::find(beside, e.key.value) != beside.end()) rest.entries.push_back(e);
  Beside b = beside_table.decode(rest, {"entry", n.where}, d_);
  if (!model_.add(amount_of(rest), out.where, d_)) return out;
  const int64_t name = std::ssize(b.name) + 1;
  path_ += name;
  read_named(chosen->key, chosen->value, out);
  path_ -= name;
  if (b.init) read_init(*b.init, out);
  if (b.repeat && model_.add((model_.used() - before) * (*b.repeat - 1), out.where, d_)) {
    ModelItem sequence;
    sequence.kind = ModelItem::Kind::sequence;
    sequence.where = out.where;
    sequence.body.assign(static_cast<size_t>(*b.repeat), out);
    out = std::move(sequence);
  }
  out.name = std::move(b.name);
  out.from = std::move(b.from);
  out.freeze = b.freeze;
  out.device = b.device;
  out.checkpoint = b.checkpoint;
  return out;
}

// `init: zeros` and `init: {normal: 0.02}` apply to weights only; {weight: ..., bias: ...} to each.
void ModelReader::read_init(const Node& n, ModelItem& out) {
  if (out.kind != ModelItem::Kind::layer) {
    d_.error(n.where, "'init' applies to a single layer; set it on the layers inside");
    return;
  }
  InitKeys keys{.given = {{"weight", &n}}};
  if (std::ranges::any_of(kInitKeys, [&](std::string_view key) { return n.find(key); }))
    keys = InitKeys::keys().decode(n, {"'init'", n.where}, d_);
  for (const auto& [parameter, by] : keys.given)
    out.init.emplace_back(parameter,
                          read_choice("initialization", *by, registries_.initialisations, d_));
}

const Choice* ModelItem::init_of(std::string_view parameter) const {
  const Choice* out = nullptr;
  for (const auto& [key, by] : init)
    if (key == parameter ||
        (!out && (key == "weight" || key == "bias") && parameter.ends_with(key)))
      out = &by;
  return out;
}

// The map's entry that names the layer. Reports the other entries that are not keys beside it.
const Node::Entry* ModelReader::main_entry(const Node& n,
                                           const std::vector<std::string_view>& beside) {
  const auto is_beside = [&](const Node::Entry& e) {
    return std::ranges::find(beside, e.key.value) != beside.end();
  };
  const Node::Entry* chosen = nullptr;
  for (const Node::Entry& e : n.entries)
    if (!chosen && !is_beside(e) && known(e.key.value)) chosen = &e;
  for (const Node::Entry& e : n.entries)
    if (!chosen && !is_beside(e)) chosen = &e;
  if (!chosen) {
    d_.error(n.where, "expected the name of one layer");
    return nullptr;
  }
  for (const Node::Entry& e : n.entries)
    if (&e != chosen && !is_beside(e) && !d_.full()) complain_beside(*chosen, e, beside);
  return chosen;
}

void ModelReader::complain_beside(const Node::Entry& chosen, const Node::Entry& other,
                                  const std::vector<std::string_view>& beside) {
  const std::string& key = other.key.value;
  if (known(key)) {
    d_.error(other.key.where,
             fmt::format(
                 "an entry names only one layer; move '{}' out of the entry of '{}' into its own",
                 key, chosen.key.value));
    return;
  }
  if (const RegistryEntry* layer = find_entry(registries_.layers, chosen.key.value)) {
    const std::vector<KeyDoc> keys = layer->describe();
    if (std::ranges::find(keys, key, &KeyDoc::name) != keys.end()) {
      d_.error(
          other.key.where,
          fmt::format("'{0}' is a key of the layer '{1}' and belongs inside it: {1}: {{{0}: ...}}",
                      key, chosen.key.value));
      return;
    }
  }
  d_.unknown("key", other.key, fmt::format(" next to layer '{}'", chosen.key.value), beside);
}

// "batch_norm2d" of "batch_norm", which is nearest to "batch_norm1d"; empty: there is no such pair.
std::string ModelReader::of_images(std::string_view name) const {
  const std::string_view near = nearest(name, all_names());
  if (!near.ends_with("1d") || name.find('1') != name.npos) return "";
  std::string twin = std::string(near.substr(0, near.size() - 2)) + "2d";
  return find_entry(registries_.layers, twin) ? twin : "";
}

void ModelReader::read_named(const Located<std::string>& name, const Node& settings,
                             ModelItem& out) {
  const auto block = blocks_.find(name.value);
  if (name.value == kResidual) {
    read_residual(settings, {"'residual'", name.where}, out);
  } else if (block != blocks_.end()) {
    read_instance(block->second, name, settings, out);
  } else if (find_entry(registries_.layers, name.value)) {
    if (name.value.ends_with("2d")) images_ = true;
    if (name.value == "flatten" || name.value == "linear") images_ = false;
    if (model_.add(amount_of(settings), name.where, d_))
      out.layer = decode_choice("layer", name, settings, registries_.layers, d_);
  } else if (d_.full()) {
    d_.error(name.where, "unknown layer");
  } else if (const std::string twin = images_ ? of_images(name.value) : ""; !twin.empty()) {
    d_.error(name.where,
             fmt::format("unknown layer '{:.60}'; did you mean '{}'?", name.value, twin));
  } else {
    d_.unknown("layer", name, "", all_names());
  }
}

void ModelReader::read_residual(const Node& settings, const Owner& owner, ModelItem& out) {
  out.kind = ModelItem::Kind::residual;
  const Residual keys = Residual::keys().decode(settings, owner, d_);
  if (keys.body) out.body = read_list("body", *keys.body);
  if (!keys.shortcut || keys.shortcut->kind == Node::Kind::null) return;
  out.has_shortcut = true;
  const bool identity = keys.shortcut->kind == Node::Kind::list && keys.shortcut->items.empty();
  if (!identity) out.shortcut = read_list("shortcut", *keys.shortcut);
}

void ModelReader::read_instance(Block& block, const Located<std::string>& name,
                                const Node& settings, ModelItem& out) {
  out.kind = ModelItem::Kind::sequence;
  block.used = true;
  if (!block.sound) return;  // reported at its definition
  if (block.open) {
    d_.error(name.where, fmt::format("block '{}' contains itself", block.name));
    return;
  }
  if (depth_ == kDeepestBlocks) {
    d_.error(name.where, fmt::format("blocks are nested more than {} deep", kDeepestBlocks));
    return;
  }
  const size_t before = d_.count();
  const Scope scope = arguments(block, name, settings);
  if (d_.count() != before) return;  // errors caused by wrong arguments would be misleading
  const Node layers = substitute(*block.layers, scope, substituted_, d_);
  if (d_.count() != before || substituted_.full()) return;
  block.open = true;
  ++depth_;
  out.body = read_list("layers", layers);
  --depth_;
  block.open = false;
}

Scope ModelReader::arguments(const Block& block, const Located<std::string>& name,
                             const Node& settings) {
  Scope scope;
  const std::string title = fmt::format("block '{}'", block.name);
  std::vector<std::string_view> names;
  if (block.parameters)
    for (const Node::Entry& p : block.parameters->entries) names.push_back(p.key.value);
  Scope given;
  if (settings.kind == Node::Kind::map) {
    for (const Node::Entry& e : settings.entries) {
      if (names.empty())
        d_.error(e.key.where,
                 fmt::format("{} takes no settings; delete '{:.60}'", title, e.key.value));
      else if (std::ranges::find(names, e.key.value) == names.end())
        d_.unknown("key", e.key, " in " + title, names);
      else
        given.emplace(e.key.value, e.value);
    }
  } else if (settings.kind != Node::Kind::null) {
    if (names.empty())
      d_.error(settings.where, title + " takes no settings");
    else
      given.emplace(names[0], settings);
  }
  if (!block.parameters) return scope;
  for (const Node::Entry& p : block.parameters->entries) {
    const auto g = given.find(p.key.value);
    const Node value = g != given.end() ? g->second : substitute(p.value, scope, substituted_, d_);
    if (value.kind == Node::Kind::null)
      d_.error(name.where, fmt::format("{} needs '{}', which has no default", title, p.key.value));
    else
      scope.emplace(p.key.value, value);
  }
  return scope;
}

void ModelReader::check_unused() {
  for (auto& [name, block] : blocks_) {
    if (model_.full() || substituted_.full()) return;
    if (block.used || !block.sound) continue;
    const auto has_default = [](const Node::Entry& p) { return p.value.kind != Node::Kind::null; };
    if (block.parameters && !std::ranges::all_of(block.parameters->entries, has_default)) continue;
    ModelItem unused;
    read_instance(block, {name, block.layers->where}, Node{}, unused);
  }
}

}  // namespace dpt
