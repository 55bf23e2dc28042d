#include "layers/parameter_pattern.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "layers/layer.h"

namespace dpt {
namespace {

constexpr std::string_view kWildcards = "*?[";

// Whether the set at glob[at], which begins with '[', has the character; moves `at` behind the set.
// A '[' that is never closed stands for itself.
bool set_has(std::string_view glob, size_t& at, char c) {
  const bool inverted = at + 1 < glob.size() && glob[at + 1] == '!';
  const size_t first = at + (inverted ? 2 : 1);
  const size_t end = first < glob.size() ? glob.find(']', first + 1) : glob.npos;
  if (end == glob.npos) return glob[at++] == c;
  bool has = false;
  for (size_t i = first; i < end; ++i) {
    const bool range = i + 2 < end && glob[i + 1] == '-';
    has = has || (range ? glob[i] <= c && c <= glob[i + 2] : glob[i] == c);
    if (range) i += 2;
  }
  at = end + 1;
  return has != inverted;
}

// Adds the names of all layers that normalize.
void add_norms(const std::vector<ModelItem>& items, const std::string& prefix,
               std::set<std::string, std::less<>>& out) {
  for (size_t i = 0; i < items.size(); ++i) {
    const ModelItem& item = items[i];
    const std::string name = prefix + (item.name.empty() ? std::to_string(i) : item.name);
    const bool block = item.kind == ModelItem::Kind::sequence;
    if (item.kind == ModelItem::Kind::layer && static_cast<const LayerType*>(item.layer.what)->norm)
      out.insert(name);
    add_norms(item.body, name + (block ? "." : ".body."), out);
    add_norms(item.shortcut, name + ".shortcut.", out);
  }
}

}  // namespace

bool glob_matches(std::string_view glob, std::string_view text) {
  size_t g = 0, t = 0;
  size_t star = glob.npos, from = 0;  // the last '*', and the text behind what it stands for
  while (t < text.size()) {
    size_t next = g;
    bool same = false;
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      from = t;
      continue;
    }
    if (g < glob.size() && glob[g] == '[') {
      same = set_has(glob, next, text[t]);
    } else if (g < glob.size()) {
      same = glob[g] == '?' || glob[g] == text[t];
      ++next;
    }
    if (same) {
      g = next;
      ++t;
    } else if (star != glob.npos) {
      g = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  return glob.find_first_not_of('*', g) == glob.npos;
}

NamedParameters::NamedParameters(const Spec& spec, const Graph& graph) {
  std::set<std::string, std::less<>> norms;
  add_norms(spec.model, "", norms);
  for (const ValueId p : graph.parameters) {
    const std::string& name = graph[p].name;
    parameters_.push_back({.name = name, .norm = norms.contains(name.substr(0, name.rfind('.')))});
  }
  by_name_.resize(parameters_.size());
  std::iota(by_name_.begin(), by_name_.end(), size_t{0});
  std::ranges::sort(
      by_name_, {}, [this](size_t i) -> const auto& { return parameters_[i].name; });
}

template <class Accepts>
void NamedParameters::find(std::string_view prefix, std::vector<size_t>& out,
                           Accepts&& accepts) const {
  const auto name = [this](size_t i) { return std::string_view(parameters_[i].name); };
  for (auto at = std::ranges::lower_bound(by_name_, prefix, {}, name);
       at != by_name_.end() && name(*at).starts_with(prefix); ++at)
    if (accepts(parameters_[*at])) out.push_back(*at);
}

std::vector<size_t> NamedParameters::matching(std::string_view pattern) const {
  std::vector<size_t> out;
  const size_t wildcard = pattern.find_first_of(kWildcards);
  if (pattern.empty()) return out;
  if (pattern == "bias") {
    find("", out, [](const Parameter& p) { return p.name.ends_with("bias"); });
  } else if (pattern == "norm") {
    find("", out, [](const Parameter& p) { return p.norm; });
  } else if (wildcard != pattern.npos) {
    find(pattern.substr(0, wildcard), out,
         [&](const Parameter& p) { return glob_matches(pattern, p.name); });
  } else {
    find(pattern, out, [&](const Parameter& p) { return p.name == pattern; });
    find(std::string(pattern) + ".", out, [](const Parameter&) { return true; });
  }
  std::ranges::sort(out);
  return out;
}

std::vector<size_t> NamedParameters::matching(const Patterns& patterns) const {
  std::vector<size_t> out;
  for (const Located<std::string>& pattern : patterns) {
    const std::vector<size_t> more = matching(pattern.value);
    out.insert(out.end(), more.begin(), more.end());
  }
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::vector<bool> NamedParameters::marked(const Patterns& patterns) const {
  std::vector<bool> out(parameters_.size());
  for (const size_t i : matching(patterns)) out[i] = true;
  return out;
}

// What to write instead of a pattern that matches nothing.
std::string NamedParameters::advice(const std::string& pattern) const {
  if (parameters_.empty()) return "the model has no parameters";
  if (pattern == "norm") return "the model has no normalization layers; leave it out";
  if (pattern == "bias") return "no name ends in 'bias'; leave it out";
  std::set<std::string_view> names = {"bias", "norm"};  // of parameters and modules
  for (const Parameter& p : parameters_)
    for (size_t end = 0; end != p.name.npos;) {
      end = p.name.find('.', end + 1);
      names.insert(std::string_view(p.name).substr(0, end));
    }
  // `layr1.*` means the module `layer1`.
  const bool below = pattern.ends_with(".*");
  const std::string word = below ? pattern.substr(0, pattern.size() - 2) : pattern;
  const std::vector<std::string_view> known(names.begin(), names.end());
  if (word.find_first_of(kWildcards) == word.npos)
    if (const std::string_view near = nearest(word, known); !near.empty())
      return fmt::format("did you mean '{}{}'?", near, below ? ".*" : "");
  constexpr size_t kShown = 8;
  std::string out = "parameters have names such as ";
  for (size_t i = 0; i < std::min(kShown, parameters_.size()); ++i)
    out += fmt::format("{}'{}'", i == 0 ? "" : ", ", parameters_[i].name);
  return out + "; `dptrain plan` lists all";
}

void NamedParameters::check(const Patterns& patterns, Diagnostics& d) const {
  for (const Located<std::string>& pattern : patterns) {
    if (d.full()) return;
    if (matching(pattern.value).empty())
      d.error(pattern.where, fmt::format("no parameter matches '{:.60}'; {}", pattern.value,
                                         advice(pattern.value)));
  }
}

void check_patterns(const Spec& spec, const NamedParameters& parameters, Diagnostics& d) {
  parameters.check(spec.freeze, d);
  parameters.check(spec.no_decay, d);
  for (const ParameterGroupSpec& group : spec.parameter_groups) parameters.check(group.match, d);
}

}  // namespace dpt
