#include "spec/spec.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "spec/language.h"
#include "spec/model.h"

namespace dpt {
namespace {

// Whether the map has a value for the key other than none.
bool given(const Node& map, std::string_view key) {
  const Node* value = map.find(key);
  return value && !is_none(*value, KeyKind::any);
}

// Reports two keys that exclude each other, at the one that comes second in the file.
void refuse_both(const Node& map, std::string_view a, std::string_view b, Diagnostics& d) {
  const Node::Entry* first = nullptr;
  for (const Node::Entry& e : map.entries) {
    if ((e.key.value != a && e.key.value != b) || !given(map, e.key.value)) continue;
    if (first)
      d.error(e.key.where,
              fmt::format("'{}' and '{}' cannot be used together", first->key.value, e.key.value));
    first = &e;
  }
}

void check_batch(const Node& data, Diagnostics& d) {
  refuse_both(data, "batch_size", "batch_size_per_replica", d);
  if (given(data, "batch_size") || given(data, "batch_size_per_replica")) return;
  const Node* empty = data.find("batch_size");
  if (!empty) empty = data.find("batch_size_per_replica");
  d.error(empty ? empty->where : data.where,
          "'data' needs 'batch_size', the samples of a step over all replicas, or "
          "'batch_size_per_replica'");
}

// Expressions are valid only in blocks; elsewhere there are no parameters to insert.
void refuse_expressions(const Node& n, Diagnostics& d) {
  if (n.kind == Node::Kind::scalar && has_expression(n))
    d.error(n.where, "'${...}' can be used only inside a block");
  for (const Node& i : n.items) refuse_expressions(i, d);
  for (const Node::Entry& e : n.entries) refuse_expressions(e.value, d);
}

// Records where values are given. Names in `blocks` are the user's. REQUIRES: all keys are known
// ones, so there are few.
void find_places(const Node& map, const std::string& prefix, Spec& spec) {
  for (const Node::Entry& e : map.entries) {
    if (prefix.empty() && e.key.value == "blocks") continue;
    spec.locations[prefix + e.key.value] = e.value.where;
    find_places(e.value, prefix + e.key.value + ".", spec);
  }
}

void read_model(const Node& root, const Registries& registries, Spec& spec, Diagnostics& d) {
  ModelReader reader(root.find("blocks"), registries, d);
  if (const Node* model = root.find("model")) spec.model = reader.read_list("model", *model);
  reader.check_unused();
}

void set_devices(const Node& root, const TopKeys& top, Spec& spec, Diagnostics& d) {
  const Node* devices = root.find("devices");
  const Node* device = root.find("device");
  DeviceSpec& out = spec.devices;
  out.cores = top.cores;
  if (out.device == "auto")
    out.device = top.device;
  else if (device && devices && top.device != "auto" && top.device != out.device)
    d.error(devices->where, fmt::format("'devices' lists '{}' devices, but 'device' is '{}'",
                                        out.device, top.device));
  if (!given(root, "devices")) out.where = device ? device->where : spec.where;
}

// Finds keys that belong to another section, or in a section instead of the top level. Reports
// where they belong and removes them, so that they are not also reported as unknown.
class Misplaced {
 public:
  Misplaced(const Registries& registries, Diagnostics& d) : d_(d), registries_(registries) {
    for (const KeyDoc& section : top_keys(registries).describe())
      sections_.push_back({section, keys_in(section, registries)});
  }

  // Keeps `model` and `blocks` without their contents, which ModelReader reads.
  Node without(const Node& root) {
    Node out{.kind = root.kind, .where = root.where};
    for (const Node::Entry& e : root.entries) {
      const auto s = std::ranges::find(sections_, e.key.value,
                                       [](const Section& section) { return section.doc.name; });
      if (s == sections_.end()) {
        if (!tell_home(e.key)) out.entries.push_back(e);
      } else if (e.key.value == "model" || e.key.value == "blocks") {
        out.entries.push_back({e.key, Node{.kind = e.value.kind, .where = e.value.where}});
      } else {
        out.entries.push_back(e);
        if (!s->keys.empty())
          look_in(*s, out.entries.back().value, s->doc.registry.empty() ? 1 : 2);
      }
    }
    return out;
  }

 private:
  struct Section {
    KeyDoc doc;
    std::vector<std::string_view> keys;
    bool has(std::string_view key) const { return std::ranges::find(keys, key) != keys.end(); }
  };

  bool tell_home(const Located<std::string>& key) {
    const std::vector<KeyDoc> beside = item_keys();
    if (std::ranges::find(beside, key.value, &KeyDoc::name) != beside.end()) {
      d_.error(key.where, fmt::format("unknown key '{0}' in the spec; it belongs to an entry of "
                                      "`model`, as in {{linear: 10, {0}: ...}}",
                                      key.value));
      return true;
    }
    std::vector<std::string> homes;
    for (const Section& s : sections_)
      if (s.has(key.value)) homes.push_back(home(s, key.value));
    if (!homes.empty())
      d_.error(key.where, fmt::format("unknown key '{}' in the spec; did you mean '{}'?", key.value,
                                      fmt::join(homes, "' or '")));
    return !homes.empty();
  }

  // "data.batch_size"; of a key that one choice alone has: "parallel: {pipeline: {stages: ...}}".
  std::string home(const Section& section, const std::string& key) const {
    std::vector<std::string_view> owners;
    if (!section.doc.registry.empty())
      for (const RegistryEntry* e : registry_of(registries_, section.doc.registry))
        for (const KeyDoc& k : e->describe())
          if (k.name == key) owners.push_back(e->name);
    if (owners.size() == 1)
      return fmt::format("{}: {{{}: {{{}: ...}}}}", section.doc.name, owners[0], key);
    return fmt::format("{}.{}", section.doc.name, key);
  }

  // With levels = 2 also searches the settings of a choice: ddp: {devices: 2}.
  void look_in(const Section& section, Node& map, int levels) {
    std::erase_if(map.entries, [&](Node::Entry& e) {
      if (levels > 1) look_in(section, e.value, levels - 1);
      const auto is = [&](const Section& s) { return s.doc.name == e.key.value; };
      // {name: adam} is reported as the style of another program.
      const bool names_choice = e.key.value == "name" && !section.doc.registry.empty();
      const bool of_top =
          std::ranges::any_of(sections_, is) && !section.has(e.key.value) && !names_choice;
      if (of_top)
        d_.error(e.key.where, fmt::format("unknown key '{}' in '{}'; it belongs at the top level",
                                          e.key.value, section.doc.name));
      return of_top;
    });
  }

  Diagnostics& d_;
  const Registries& registries_;
  std::vector<Section> sections_;
};

}  // namespace

Span Spec::at(std::string_view key) const {
  if (const auto p = locations.find(key); p != locations.end()) return p->second;
  const size_t dot = key.rfind('.');
  return dot == key.npos ? where : at(key.substr(0, dot));
}

Spec read_spec(const Node& root, const Registries& registries, Diagnostics& d) {
  if (root.kind != Node::Kind::map) {
    // If the tree could not be parsed, that has been reported.
    if (root.kind != Node::Kind::null || d.ok())
      d.error(root.where, "a spec must be a map of keys, such as 'epochs: 10'");
    return {};
  }
  TopKeys top = top_keys(registries)
                    .decode(Misplaced(registries, d).without(root), {"the spec", root.where}, d);
  Spec& spec = top;
  spec.where = root.where;
  if (root.where.file) spec.path = root.where.file->path;
  if (d.ok()) find_places(root, "", spec);
  spec.clip.value = top.clip_grad_value;
  read_model(root, registries, spec, d);
  if (const Node* data = root.find("data"); data && data->kind == Node::Kind::map)
    check_batch(*data, d);
  if (!spec.epochs && !spec.steps) spec.epochs = 1;
  set_devices(root, top, spec, d);
  if (!given(root, "parallel") && find_entry(registries.modes, "single"))
    spec.parallel =
        decode_choice("parallel mode", {"single", root.where}, Node{}, registries.modes, d);
  if (!given(root, "precision") && find_entry(registries.precisions, "fp32"))
    spec.precision =
        decode_choice("precision", {"fp32", root.where}, Node{}, registries.precisions, d);
  for (const Node::Entry& e : root.entries)
    if (e.key.value != "blocks") refuse_expressions(e.value, d);
  return std::move(spec);
}

}  // namespace dpt
