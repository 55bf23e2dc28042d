// Every key that a spec can have, with the values that a user or a script may write by mistake:
// none, empty ones, infinities and the largest integers.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "data/folder.h"
#include "session/session.h"
#include "spec/language.h"
#include "spec/model.h"
#include "spec/schema.h"

namespace dpt {
namespace {

// A word of the language, or keys that stand in a section or beside a layer.
struct Place {
  std::string title;
  std::vector<KeyDoc> keys;
  const RegistryEntry* word = nullptr;
};

std::vector<Place> places() {
  static const Registries words = registries();
  std::vector<Place> out;
  for (const RegistryInfo& list : registry_infos())
    for (const RegistryEntry* n : registry_of(words, list.list))
      out.push_back({fmt::format("{} {}", list.what, n->name), n->describe(), n});
  return out;
}

std::string complaints_about(const RegistryEntry& word, std::string_view key,
                             const std::string& value) {
  const SourceFile file{"t.yaml", fmt::format("{}: {}\n", key, value)};
  Diagnostics d;
  const Node settings = read_yaml(file, d);
  word.decode(settings, {std::string(word.name), {&file, 1, 1, 1}}, d);
  return d.render();
}

// Whether the value of the key is refused; others may be missed beside it.
bool about(const std::string& complaints, std::string_view key) {
  return complaints.find(fmt::format("error: '{}' ", key)) != complaints.npos;
}

constexpr const char* kSpec = R"(
data: {dataset: {random: {samples: 8, in_features: 4, out_features: 2}}, batch_size: 4}
model: [{linear: 2, name: first}]
loss: mse_loss
optimizer: {sgd: 0.1}
evaluate: true
)";

struct Outcome {
  bool accepted = false;
  std::string complaints;
};

Outcome outcome_of(const std::string& path, const std::string& argument) {
  std::vector<std::unique_ptr<SourceFile>> files;
  Diagnostics d;
  Spec spec = load_spec(path, {argument}, registries(), files, d);
  try {
    if (d.ok()) make_session(std::move(spec), {.runs = false}, d);
  } catch (const Error& e) {
    return {false, e.what()};
  }
  return {d.ok(), d.render()};
}

// For each key that names a file, a spec that has only this key: "data: {validation: {csv: {path:
// FILE}}}", and the same with the value in place of the map of keys.
class SpecsOfFiles {
 public:
  std::vector<std::string> take() {
    add("", "", top_keys(words_).describe());
    return std::move(specs_);
  }

 private:
  // `before` and `after`: the YAML around a map of `keys`.
  void add(const std::string& before, const std::string& after, const std::vector<KeyDoc>& keys) {
    for (const KeyDoc& k : keys) {
      const std::string open = fmt::format("{}{}: {}", before, k.name, k.many ? "[" : "");
      const std::string close = (k.many ? "]" : "") + after;
      if (k.type == KeyKind::path) specs_.push_back(open + "files/f.bin" + close);
      add(open + "{", "}" + close, k.keys);
      if (k.registry.empty() || k.registry == "blocks") continue;
      for (const RegistryEntry* word : registry_of(words_, k.registry)) {
        const std::string name = fmt::format("{}{{{}: ", open, word->name);
        const std::vector<KeyDoc> own = word->describe();
        if (!own.empty() && own[0].type == KeyKind::path)
          specs_.push_back(name + "files/f.bin}" + close);
        add(name + "{", "}}" + close, own);
      }
    }
  }

  const Registries words_ = registries();
  std::vector<std::string> specs_;
};

}  // namespace

TEST_CASE("every key that names a file takes a path from the folder of the spec that has it") {
  const Folder folder;
  const std::vector<std::string> specs = SpecsOfFiles().take();
  for (const std::string& spec : specs) {
    CAPTURE(spec);
    const std::string path = folder.write("base/b.yaml", spec);
    const std::string over = folder.write("o.yaml", "extends: base/b.yaml\n");
    for (const std::string& file : {path, over}) {
      std::vector<std::unique_ptr<SourceFile>> files;
      Diagnostics d;
      Node tree;
      load_spec(file, {}, registries(), files, d, &tree);
      CHECK(to_yaml(tree).find('"' + folder.file("base/files/f.bin") + '"') != std::string::npos);
    }
  }
  const auto count = [&](std::string_view begin) {
    return std::ranges::count_if(specs, [&](const auto& s) { return s.starts_with(begin); });
  };
  CHECK(count("data: {dataset:") > 10);
  CHECK(count("data: {validation:") == count("data: {dataset:"));
  CHECK(count("initial_weights:") == 2);
}

TEST_CASE("an infinity is refused by every key that does not ask for one") {
  std::set<std::string> infinite;
  for (const Place& p : places())
    for (const KeyDoc& k : p.keys) {
      const bool list = k.type == KeyKind::numbers;
      if (k.type != KeyKind::number && !list) continue;
      for (const char* value : {".inf", "-.inf", "[.inf, .inf]"}) {
        if ((value[0] == '[') != list || (k.range.infinite && value[0] == '.')) continue;
        CAPTURE(p.title);
        CAPTURE(k.name);
        CHECK(about(complaints_about(*p.word, k.name, value), k.name));
      }
      if (k.range.infinite) infinite.insert(std::string(k.name));
    }
  // triplet_margin_loss's; clip_grad_norm's is no word.
  CHECK(infinite == std::set<std::string>{"p"});
}

TEST_CASE("null unsets a key that may be left out; an empty value is refused where one is needed") {
  size_t needed = 0, none = 0, with_default = 0;
  for (const Place& p : places())
    for (const KeyDoc& k : p.keys) {
      CAPTURE(p.title);
      CAPTURE(k.name);
      const bool can_be_none = k.fallback == "none" || k.fallback == "[]" ||
                               k.doc.find("none: ") != k.doc.npos;  // momentum has a default, too
      CHECK(about(complaints_about(*p.word, k.name, "null"), k.name) == k.required());
      CHECK(about(complaints_about(*p.word, k.name, ""), k.name) != can_be_none);
      ++(k.required() ? needed : can_be_none ? none : with_default);
      // The word that the reference prints for it.
      const bool text =
          k.type == KeyKind::text || k.type == KeyKind::path || k.type == KeyKind::texts;
      if (can_be_none && !text) CHECK(!about(complaints_about(*p.word, k.name, "none"), k.name));
    }
  CHECK(needed > 10);
  CHECK(none > 10);
  CHECK(with_default > 100);
}

TEST_CASE("key=null on the command line unsets every key that may be left out") {
  const Folder folder;
  const std::string path = folder.write("t.yaml", kSpec);
  for (const KeyDoc& top : top_keys(registries()).describe()) {
    if (!top.required()) {
      CAPTURE(top.name);
      const Outcome o = outcome_of(path, fmt::format("{}=null", top.name));
      CHECK_MESSAGE(o.accepted, o.complaints);
    }
    for (const KeyDoc& k : top.keys) {
      const std::string key = fmt::format("{}.{}", top.name, k.name);
      // Sections that do not stand in this spec and need another key.
      const bool alone = top.name == "clip_grad_norm" || top.name == "initial_weights" ||
                         top.name == "early_stop" || top.name == "parameter_groups" ||
                         top.name == "reproducible";
      if (k.required() || alone || key == "data.batch_size") continue;
      CAPTURE(key);
      const Outcome o = outcome_of(path, key + "=null");
      CHECK_MESSAGE(o.accepted, o.complaints);
    }
  }
  const auto loaded = [&](const std::string& text, const std::vector<std::string>& arguments) {
    folder.write("u.yaml", kSpec + text);
    std::vector<std::unique_ptr<SourceFile>> files;
    Diagnostics d;
    Spec spec = load_spec(folder.file("u.yaml"), arguments, registries(), files, d);
    CHECK_MESSAGE(d.ok(), d.render());
    return spec;
  };
  const Spec spec =
      loaded("seed: 7\ndevices: 2\nparallel: ddp\nprecision: bf16\nlog: {every: 5, loss: rank0}\n",
             {"seed=null", "devices=null", "parallel=null", "precision=~", "log.every=null",
              "log.loss=null", "evaluate=null", "data.shuffle=null", "optimizer.lr=null"});
  CHECK(spec.seed == 0);
  CHECK(!spec.devices.count);
  CHECK(spec.parallel.what->name == "single");
  CHECK(spec.precision.what->name == "fp32");
  CHECK(spec.log.every == 0);
  CHECK(spec.log.loss == "global");
  CHECK(!spec.evaluate.on);
  CHECK(spec.data.shuffle);
  // What no key is called is an error all the same.
  CHECK(has(outcome_of(path, "devicez=null").complaints, "unknown key 'devicez'"));
  CHECK(has(outcome_of(path, "evaluate.evry=null").complaints, "unknown key 'evry'"));
}

TEST_CASE("no value of any key of a word ends the program") {
  for (const Place& p : places())
    for (const KeyDoc& k : p.keys)
      for (const char* value :
           {"\"\"", "[]", "{}", "[null]", "[[]]", "9223372036854775807", "-9223372036854775808",
            "99999999999999999999", "1e308", "-0.0", ".nan", "\"\\x7f\""}) {
        CAPTURE(p.title);
        CAPTURE(k.name);
        CHECK_NOTHROW(complaints_about(*p.word, k.name, value));
      }
}

TEST_CASE("no empty value of a section's key ends a session, and what is refused has its place") {
  const Folder folder;
  const std::string path = folder.write("t.yaml", kSpec);
  std::vector<std::string> keys = {"model.first.freeze", "model.first.init",     "model[0].repeat",
                                   "model.first.device", "optimizer.lr",         "optimizer.sgd",
                                   "loss.reduction",     "data.dataset.samples", "blocks.b"};
  for (const KeyDoc& top : top_keys(registries()).describe()) {
    keys.emplace_back(top.name);
    for (const KeyDoc& k : top.keys) keys.push_back(fmt::format("{}.{}", top.name, k.name));
  }
  CHECK(keys.size() > 60);
  for (const std::string& key : keys)
    for (const char* value : {"", "null", "{}", "[]", "\"\""}) {
      const std::string argument = fmt::format("{}={}", key, value);
      CAPTURE(argument);
      const Outcome o = outcome_of(path, argument);
      CHECK(o.accepted == o.complaints.empty());
      if (!o.accepted) CHECK(has(o.complaints, "error: "));
    }
  CHECK(has(outcome_of(path, "data.batch_size=null").complaints, "'data' needs 'batch_size'"));
  CHECK(outcome_of(path, "clip_grad_norm=null").accepted);
  CHECK(outcome_of(path, "reproducible=none").accepted);
  CHECK(has(outcome_of(path, "seed=").complaints, "seed=:1:1: error: 'seed' has no value"));
}

TEST_CASE("an infinite learning rate is refused, an infinite norm is not") {
  const Folder folder;
  const std::string path = folder.write("t.yaml", kSpec);
  CHECK(has(outcome_of(path, "optimizer.lr=.inf").complaints, "'lr' must be a finite number"));
  CHECK(has(outcome_of(path, "memory_limit=.inf").complaints, "must be a finite number"));
  CHECK(outcome_of(path, "clip_grad_norm={max_norm: .inf, norm_type: .inf}").accepted);
}

TEST_CASE("batch norm without momentum is asked for by null or none") {
  for (const char* value : {"null", "none"})
    for (const Place& p : places())
      if (p.title == "layer batch_norm1d")
        CHECK(complaints_about(*p.word, "momentum", value).empty());
}

TEST_CASE("a batch that ranks cannot share names the sizes that they can") {
  const Folder folder;
  const std::string path =
      folder.write("t.yaml", std::string(kSpec) + "parallel: ddp\ndevices: 4\n");
  CHECK(has(outcome_of(path, "data.batch_size=2").complaints, "use 4, or give"));
  CHECK(has(outcome_of(path, "data.batch_size=6").complaints, "use 4 or 8, or give"));
}

TEST_CASE("a spec for CPUs that is only looked at starts no CUDA") {
  const Folder folder;
  std::vector<std::unique_ptr<SourceFile>> files;
  Diagnostics d;
  Spec spec = load_spec(folder.write("t.yaml", kSpec), {}, registries(), files, d);
  const auto session = make_session(std::move(spec), {.runs = false}, d);
  REQUIRE_MESSAGE(session, d.render());
  CHECK(session->devices.note.empty());  // why there is no GPU: it is found by loading the driver
}

}  // namespace dpt
