// Prints the reference page and explanations from the same tables that decode a spec.
#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/lower_case.h"
#include "spec/language.h"
#include "spec/metric_name.h"
#include "spec/model.h"
#include "spec/pytorch_words.h"
#include "spec/schema.h"

namespace dpt {
namespace {

constexpr std::string_view kIntroduction =
    "# Spec reference\n\n"
    "On this page you can look up every key of a spec: its type and range, default, meaning,\n"
    "PyTorch's name for it, and an example. [specs.md](specs.md) explains how to write a spec;\n"
    "`dptrain explain WORD` prints one entry of this page.\n\n"
    "The program writes this page: `dptrain schema --markdown > docs/spec-reference.md`.\n\n";

constexpr std::string_view kRules =
    "## Notation\n\n"
    "- A choice by name is written as `name`, `name: main value` or `name: {key: value}`. The\n"
    "  main value is the value of the first key in the table of that name.\n"
    "- Numbers have decimal digits: `010`, `0x10` and `1_000` are refused. Booleans are `true`\n"
    "  and `false`. A path may begin with `~` or `$HOME`.\n"
    "- A list may be replaced by its only element: `mean: 0.5`.\n"
    "- `null` is `none` for keys that can be none, such as `momentum` of batch_norm2d, and so is\n"
    "  the word `none`, unless the key takes text. It gives other keys their default again.\n"
    "- Layers, losses, optimizers, schedules, transforms and data sets have PyTorch's arguments\n"
    "  as keys, with PyTorch's defaults, unless the table says otherwise.\n"
    "- Every key can be set on the command line: `data.batch_size=256`, `optimizer.lr=0.1`,\n"
    "  `model.conv1.out_channels=64`, `model[2].p=0.1`.\n\n";

constexpr std::string_view kBlocks =
    "```yaml\n"
    "blocks:\n"
    "  mlp_block:\n"
    "    parameters: {width: 64, p: 0.1}    # width: null makes a parameter required\n"
    "    layers:\n"
    "      - linear: ${width * 2}           # + - * / // % and parentheses\n"
    "      - dropout: ${p}\n"
    "model:\n"
    "  - mlp_block: {width: 128}\n"
    "    name: layer1\n"
    "    repeat: 3                          # layer1.0, layer1.1, layer1.2\n"
    "```\n\n";

std::string takes(const KeyDoc& k) {
  if (!k.choices.empty()) return fmt::format("{}", fmt::join(k.choices, ", "));
  std::string text(k.kind);
  std::string_view rule = k.rule;
  for (std::string_view prefix : {"must be ", "must "})
    if (rule.starts_with(prefix)) rule.remove_prefix(prefix.size());
  if (rule.starts_with(k.kind))  // "a number that fits in a float"
    text = rule;
  else if (rule.starts_with("not be "))
    text += fmt::format(", not {}", rule.substr(7));
  else if (!rule.empty())
    text += fmt::format(", {}", rule);
  return text;
}

std::string_view default_of(const KeyDoc& k) {
  return k.required() ? std::string_view("required") : std::string_view(k.fallback);
}

// Escapes '|', which would end the table cell.
std::string in_cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

// Names and examples, each in quotes of code.
std::string code(std::string_view text) {
  return text.empty() ? std::string() : fmt::format("`{}`", in_cell(text));
}

// "integer, positive": a table needs no article, and no hint for those who broke the rule.
std::string type_cell(const KeyDoc& k) {
  std::string text;
  for (const std::string_view choice : k.choices) text += (text.empty() ? "" : ", ") + code(choice);
  if (!text.empty()) return text;
  text = takes(k);
  text = text.substr(0, text.find(" ("));
  for (const std::string_view article : {"an ", "a "})
    if (text.starts_with(article)) return in_cell(text.substr(article.size()));
  return in_cell(text);
}

std::string code_list(std::string_view names) {
  std::string out;
  while (!names.empty()) {
    const size_t comma = names.find(", ");
    out += (out.empty() ? "" : ", ") + code(names.substr(0, comma));
    names.remove_prefix(comma == names.npos ? names.size() : comma + 2);
  }
  return out;
}

// The keys of a layer, optimizer, ...: PyTorch has the same names, and one example shows all.
std::string table(const std::vector<KeyDoc>& keys) {
  if (keys.empty()) return "No keys.\n\n";
  std::string out = "| key | type and range | default | meaning |\n|---|---|---|---|\n";
  for (const KeyDoc& k : keys)
    out += fmt::format("| `{}` | {} | {} | {} |\n", k.name, type_cell(k), default_of(k),
                       in_cell(k.doc));
  return out + "\n";
}

// Where the choices of a key are: "[losses](#losses)".
std::string link_to(const KeyDoc& k) {
  const auto list = std::ranges::find(registry_infos(), k.registry, &RegistryInfo::list);
  if (list == registry_infos().end()) return "";
  std::string title, anchor;
  for (const char c : list->title) {
    title += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    anchor += c == ' ' ? '-' : title.back();
  }
  return fmt::format("[{}](#{})", title, anchor);
}

std::string section_table(const std::vector<KeyDoc>& keys) {
  std::string out =
      "| key | type and range | default | meaning | example |\n"
      "|---|---|---|---|---|\n";
  for (const KeyDoc& k : keys) {
    std::string meaning = in_cell(k.doc);
    if (const std::string link = link_to(k); !link.empty()) meaning += "; see " + link;
    if (!k.torch.empty()) meaning += "; in PyTorch " + code_list(k.torch);
    out += fmt::format("| `{}` | {} | {} | {} | {} |\n", k.name, type_cell(k), default_of(k),
                       meaning, code(k.example));
  }
  return out + "\n";
}

// Breaks a paragraph into lines of at most 100 columns, but not within `code`.
std::string wrapped(std::string_view paragraph) {
  constexpr size_t kColumns = 100;
  std::string out;
  size_t line = 0;  // where the last line begins
  bool in_code = false;
  size_t space = std::string::npos;  // the last one on this line where it may break
  for (const char c : paragraph) {
    if (c == '`') in_code = !in_code;
    if (c == ' ' && !in_code) space = out.size();
    out += c;
    if (out.size() - line <= kColumns || space == std::string::npos) continue;
    out[space] = '\n';
    line = space + 1;
    space = std::string::npos;
  }
  return out;
}

std::string entry(const RegistryEntry& n) {
  const std::string torch =
      n.usage.torch.empty() ? "" : fmt::format(" PyTorch: {}.", code_list(n.usage.torch));
  const std::string example =
      n.usage.example.empty() ? "" : fmt::format("```yaml\n{}\n```\n\n", n.usage.example);
  return fmt::format("### `{}`\n\n{}\n\n{}{}", n.name, wrapped(std::string(n.summary) + torch),
                     table(n.describe()), example);
}

// The headings of the page as links. Where a heading comes again, GitHub and Pandoc name the
// second one "linear-1".
class Links {
 public:
  std::string operator()(std::string_view name) {
    const int before = seen_[std::string(name)]++;
    return before == 0 ? fmt::format(" [{0}](#{0})", name)
                       : fmt::format(" [{0}](#{0}-{1})", name, before);
  }

 private:
  std::map<std::string, int> seen_;
};

std::string contents(const Registries& v) {
  Links link;
  std::string out =
      "| part | entries |\n|---|---|\n"
      "| [top level](#top-level) |";
  for (const KeyDoc& k : top_keys(v).describe())
    if (!k.keys.empty()) out += link(k.name);
  out += " [entries of model](#entries-of-model)" + link("residual") + link("blocks") + " |\n";
  for (const RegistryInfo& w : registry_infos()) {
    out += fmt::format("| {} |", link_to({.registry = w.list}));
    for (const RegistryEntry* n : registry_of(v, w.list)) out += link(n->name);
    out += " |\n";
  }
  return out + "\n";
}

std::string lines(const std::vector<KeyDoc>& keys) {
  size_t width = 0;
  for (const KeyDoc& k : keys) width = std::max(width, k.name.size());
  std::string out;
  for (const KeyDoc& k : keys)
    out += fmt::format("  {:{}}  {} ({}; {})\n", k.name, width, k.doc, takes(k),
                       k.required() ? "required" : "default: " + k.fallback);
  return out;
}

std::string with_main(const RegistryEntry& n) {
  const std::vector<KeyDoc> keys = n.describe();
  std::string out = fmt::format("{}\n", n.summary);
  out += keys.empty() ? "  takes no settings\n" : lines(keys);
  if (!n.usage.torch.empty()) out += fmt::format("  in PyTorch: {}\n", n.usage.torch);
  if (!n.usage.example.empty()) {
    out += "  example:\n";
    for (size_t from = 0; from < n.usage.example.size();) {
      const size_t end = std::min(n.usage.example.find('\n', from), n.usage.example.size());
      out += fmt::format("    {}\n", n.usage.example.substr(from, end - from));
      from = end + 1;
    }
  }
  return out;
}

std::string meaning(const KeyDoc& k) {
  return fmt::format("{} ({}; {})\n", k.doc, takes(k),
                     k.required() ? "required" : "default: " + k.fallback);
}

// Everything that a key can name, with summaries.
std::string choices(const Registries& v, const KeyDoc& k) {
  if (std::ranges::find(registry_infos(), k.registry, &RegistryInfo::list) ==
      registry_infos().end())
    return "";
  const Registry& registry = registry_of(v, k.registry);
  size_t width = 0;
  for (const RegistryEntry* n : registry) width = std::max(width, n->name.size());
  std::string out = "one of:\n";
  for (const RegistryEntry* n : registry)
    out += fmt::format("  {:{}}  {}\n", n->name, width, n->summary);
  return out;
}

void explain_key(const Registries& v, const KeyDoc& k, std::string_view in, std::string& out) {
  out += fmt::format("key '{}' of {}: {}", k.name, in, meaning(k));
  if (!k.keys.empty()) out += lines(k.keys);
  out += choices(v, k);
}

// All keys of the top level, of its sections, and of model entries, each with its owner and its
// path.
struct KeyLocation {
  KeyDoc key;
  std::string in, path;
};
std::vector<KeyLocation> all_keys(const Registries& v) {
  std::vector<KeyLocation> out;
  for (const KeyDoc& top : top_keys(v).describe()) {
    out.push_back({top, "the spec", std::string(top.name)});
    for (const KeyDoc& k : top.keys)
      out.push_back({k, fmt::format("'{}'", top.name), fmt::format("{}.{}", top.name, k.name)});
  }
  for (const KeyDoc& k : item_keys())
    out.push_back({k, "an entry of 'model'", fmt::format("model.{}", k.name)});
  for (const KeyDoc& k : residual_keys())
    out.push_back({k, "'residual'", fmt::format("residual.{}", k.name)});
  for (const KeyDoc& k : block_keys())
    out.push_back({k, "a block", fmt::format("blocks.{}", k.name)});
  return out;
}

// What may precede the keys of a list's entries: "optimizer" in optimizer.lr.
std::vector<std::string> paths_to(const RegistryInfo& list, const Registries& v) {
  std::vector<std::string> out;
  for (const KeyLocation& p : all_keys(v))
    if (p.key.registry == list.list) out.insert(out.end(), {p.path, std::string(p.key.name)});
  return out;
}

bool is_path_of(std::string_view word, std::string_view owner, std::string_view key,
                const std::vector<std::string>& in_front) {
  if (!word.ends_with(key)) return false;
  word.remove_suffix(key.size());
  if (word.empty()) return true;
  if (!word.ends_with('.')) return false;
  word.remove_suffix(1);
  return word == owner || std::ranges::find(in_front, word) != in_front.end();
}

// Explains the key `word` of layers, optimizers, ...: one line for all owners for which it means
// the same.
void explain_settings(const Registries& v, std::string_view word, std::string& out) {
  const std::string_view key = word.substr(word.rfind('.') + 1);
  for (const RegistryInfo& w : registry_infos()) {
    const std::vector<std::string> in_front = paths_to(w, v);
    std::vector<std::pair<std::string, std::string>> found;  // a meaning, and its owners
    for (const RegistryEntry* n : registry_of(v, w.list))
      for (const KeyDoc& k : n->describe()) {
        if (k.name != key || !is_path_of(word, n->name, key, in_front)) continue;
        const std::string text = meaning(k);
        const auto same = std::ranges::find(found, text, &decltype(found)::value_type::first);
        if (same == found.end())
          found.emplace_back(text, fmt::format("'{}'", n->name));
        else
          same->second += fmt::format(", '{}'", n->name);
      }
    for (const auto& [text, owners] : found)
      out += fmt::format("key '{}' of {} {}: {}", key, w.what, owners, text);
  }
}

// Whether a text such as "torch.optim.SGD, DataLoader(shuffle)" has the name, in the form of
// plain_name(), as one of its words.
bool has_word(std::string_view text, std::string_view name) {
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find_first_of(".,() =", from), text.size());
    if (end > from && plain_name(text.substr(from, end - from)) == name) return true;
    from = end + 1;
  }
  return false;
}

struct MetricDoc {
  std::string_view name, text;
};
constexpr MetricDoc kMetricDocs[] = {
    {"accuracy", "targets whose class has the highest score; of labels, the share predicted right"},
    {"top5", "targets among the 5 highest scores; also with another number"},
    {"precision",
     "of what is predicted to be of a class or label, the share that is; mean over all"},
    {"recall", "of what is of a class or label, the share predicted to be; mean over all"},
    {"f1", "2 precision recall / (precision + recall), mean over all classes or labels"},
    {"auc",
     "area under the ROC curve: of two classes by the probability of class 1, of more the "
     "mean over each class against the others, of labels the mean over them"},
    {"confusion_matrix", "a file: actual classes in rows, predicted ones in columns"},
    {"perplexity", "exponential of the mean cross entropy"},
    {"mae", "mean absolute error, in the units of the targets in the data"},
    {"mse",
     "mean squared error, in squared units of the targets in the data; the loss of this name is "
     "mse_loss"},
    {"rmse", "square root of the mean squared error of each target column, mean over the columns"},
    {"mape", "mean absolute error relative to the target in the data: 0.05 is 5 %"},
    {"r2", "coefficient of determination, mean over the target columns"},
};

// A metric in any capitals, or the one of a class or label: f1.cat.
std::string explain_metric(std::string_view word) {
  std::string name = lower_case(std::string(word));
  name = without_label(name);
  for (const MetricDoc& m : kMetricDocs)
    if (name == m.name || (top_k(name) > 0 && m.name == "top5"))
      return fmt::format(
          "metric '{}': {}\n  needs an evaluation; for `save.best` and `early_stop`, too: "
          "docs/validation.md\n  example:\n    evaluate: {{metrics: [{}]}}\n",
          m.name, m.text, m.name);
  return "";
}

// What a word of PyTorch is called here: advice, and all that names it as its equivalent.
std::string explain_pytorch(const Registries& v, std::string_view word) {
  const std::string_view path = word.substr(0, word.find('('));
  const std::string name = plain_name(path.substr(path.rfind('.') + 1));
  std::string out;
  if (const std::string_view advice = pytorch_advice(name); !advice.empty())
    out += fmt::format("{} of PyTorch: {}\n", word, advice);
  for (const KeyLocation& p : all_keys(v))
    if (has_word(p.key.torch, name)) out += fmt::format("key '{}': {}\n", p.path, p.key.doc);
  for (const RegistryInfo& w : registry_infos())
    for (const RegistryEntry* n : registry_of(v, w.list)) {
      if (has_word(n->usage.torch, name) || plain_name(n->name) == name)
        out += fmt::format("{} '{}': {}\n", w.what, n->name, n->summary);
      for (const KeyDoc& k : n->describe())
        if (has_word(k.torch, name))
          out += fmt::format("key '{}' of {} '{}': {}\n", k.name, w.what, n->name, k.doc);
    }
  return out;
}

}  // namespace

std::string reference_page(const Registries& v) {
  std::string out(kIntroduction);
  out += contents(v);
  out += kRules;
  const std::vector<KeyDoc> top = top_keys(v).describe();
  out += "## Top level\n\n" + section_table(top);
  for (const KeyDoc& k : top)
    if (!k.keys.empty()) out += fmt::format("### `{}`\n\n{}", k.name, section_table(k.keys));
  out += "### Entries of `model`\n\n";
  out += "Keys next to the name of a layer, a block or `residual`:\n\n";
  out += section_table(item_keys()) + "### `residual`\n\n";
  out += "Adds the output of two lists of layers with the same input.\n\n";
  out += section_table(residual_keys());
  out += fmt::format("### `blocks`\n\n{}{}", kBlocks, section_table(block_keys()));
  for (const RegistryInfo& w : registry_infos()) {
    out += fmt::format("## {}\n\n", w.title);
    for (const RegistryEntry* n : registry_of(v, w.list)) out += entry(*n);
  }
  return out.substr(0, out.size() - 1);
}

std::string explain(const Registries& v, std::string_view word) {
  std::string out;
  for (const RegistryInfo& w : registry_infos())
    if (const RegistryEntry* n = find_entry(registry_of(v, w.list), word))
      out += fmt::format("{} '{}': {}", w.what, n->name, with_main(*n));
  for (const KeyLocation& p : all_keys(v))
    if (p.key.name == word || p.path == word) explain_key(v, p.key, p.in, out);
  explain_settings(v, word, out);
  out += explain_metric(word);
  if (word == "residual")
    out += "'residual': the sum of two lists of layers\n" + lines(residual_keys());
  return out.empty() ? explain_pytorch(v, word) : out;
}

std::vector<std::string> known_words(const Registries& v) {
  const std::vector<KeyLocation> keys = all_keys(v);
  std::vector<std::string> known = {"residual"};
  for (const MetricDoc& m : kMetricDocs) known.emplace_back(m.name);
  std::set<std::string_view> settings;
  for (const RegistryInfo& w : registry_infos())
    for (const RegistryEntry* n : registry_of(v, w.list)) {
      known.emplace_back(n->name);
      for (const KeyDoc& k : n->describe()) settings.insert(k.name);
    }
  known.insert(known.end(), settings.begin(), settings.end());
  for (const KeyLocation& p : keys) known.emplace_back(p.key.name);
  for (const KeyLocation& p : keys) known.push_back(p.path);
  return known;
}

std::string nearest_word(const Registries& v, std::string_view word) {
  const std::vector<std::string> known = known_words(v);
  return std::string(nearest(word, {known.begin(), known.end()}));
}

}  // namespace dpt
