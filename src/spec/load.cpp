// Loads a spec file with the files that it extends, and applies overrides.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "base/files.h"
#include "base/utf8.h"
#include "spec/expansion.h"
#include "spec/language.h"
#include "spec/spec.h"
#include "spec/tree.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;
using Files = std::vector<std::unique_ptr<SourceFile>>;

constexpr size_t kLongestChain = 32;  // of files that extend each other

constexpr size_t kMostArguments = 1000;
constexpr size_t kMostArgumentBytes = 1 << 18;  // in total

class Loader {
 public:
  Loader(Files& files, const Registries& registries, Diagnostics& d)
      : files_(files), registries_(registries), d_(d) {}

  // `named`: where another file names this one; without a file, the command line does.
  Node load(const std::string& path, const Span& named) {
    files_.push_back(std::make_unique<SourceFile>(SourceFile{.path = path}));
    SourceFile& file = *files_.back();
    file.folder = fs::path(path).parent_path().string();
    const Span place =
        named.file ? named : Span{.file = &file, .line = 1, .column = 1, .length = 1};
    if (!read(file, !named.file, place)) return {};
    const size_t before = d_.count();
    file.shown = !named.file;
    Node root = read_yaml(file, d_);
    values_ += amount_of(root).values;
    if (values_ > static_cast<int64_t>(kMostNodes))
      d_.error(place, fmt::format("this file and the files it extends have more than {} values",
                                  kMostNodes));
    if (named.file && d_.count() == before && !is_spec(root))
      d_.error(named,
               fmt::format("'{}' is not a spec: it must be a map of keys, such as 'model'", path));
    if (named.file && !is_spec(root)) return {};
    file.shown = true;
    if (values_ > static_cast<int64_t>(kMostNodes)) return {};
    const Node* extends = root.find("extends");
    if (!extends) return root;
    const Node value = *extends;
    erase_key(root, "extends");
    if (is_none(value, KeyKind::text)) return root;
    std::optional<Node> base = load_base(path, value);
    return base && base->kind == Node::Kind::map
               ? merge(*std::move(base), std::move(root), registries_)
               : root;
  }

 private:
  // The file that the user gave may be a pipe; files that it names must be regular files.
  bool read(SourceFile& file, bool first, const Span& place) {
    try {
      file.text = first ? read_stream(file.path, kMostBytes, Fault::spec)
                        : read_file(file.path, kMostBytes, Fault::spec);
    } catch (const Error& e) {
      d_.error(place, e.what());
      return false;
    }
    bytes_ += file.text.size();
    if (bytes_ > kMostBytes)
      d_.error(place, fmt::format("this file and the files that extend it have more than {} bytes",
                                  kMostBytes));
    return bytes_ <= kMostBytes;
  }

  // Whether most keys are keys of a spec. Messages must not quote lines of other files: `extends`
  // can name any file that the user who runs this may read.
  bool is_spec(const Node& root) const {
    if (root.kind != Node::Kind::map) return false;
    const auto known = top_keys(registries_).names();
    const auto is_known = [&](const Node::Entry& e) {
      return std::ranges::find(known, e.key.value) != known.end();
    };
    return std::ranges::count_if(root.entries, is_known) * 2 > std::ssize(root.entries);
  }

  std::optional<Node> load_base(const std::string& path, const Node& value) {
    if (value.kind != Node::Kind::scalar || value.text.empty()) {
      d_.error(value.where, "'extends' must be the path of one file");
      return {};
    }
    std::error_code ignored;
    open_.push_back(fs::weakly_canonical(path, ignored));
    const fs::path base =
        (fs::path(path).parent_path() / expand_home(value.text)).lexically_normal();
    std::optional<Node> out;
    if (std::ranges::find(open_, fs::weakly_canonical(base, ignored)) != open_.end())
      d_.error(value.where, fmt::format("'{}' extends itself", base.string()));
    else if (open_.size() == kLongestChain)
      d_.error(value.where, fmt::format("more than {} files extend each other", kLongestChain));
    else
      out = load(base.string(), value.where);
    open_.pop_back();
    return out;
  }

  Files& files_;
  const Registries& registries_;
  Diagnostics& d_;
  std::vector<fs::path> open_;  // files that wait for the file that they extend
  size_t bytes_ = 0;            // of all files
  int64_t values_ = 0;
};

// Adds the spec's name, for the run directory's copy, whose file name differs.
void add_name(Node& root, const std::string& name) {
  if (root.kind != Node::Kind::map) return;
  std::erase_if(root.entries, [](const Node::Entry& e) { return e.key.value == "name"; });
  Node::Entry entry;
  entry.key.value = "name";
  entry.value.kind = Node::Kind::scalar;
  entry.value.text = name;
  entry.value.quoted = true;
  root.entries.insert(root.entries.begin(), std::move(entry));
}

}  // namespace

Node load_spec_file(const std::string& path, Files& files, const Registries& registries,
                    Diagnostics& d) {
  return Loader(files, registries, d).load(path, {});
}

Spec load_spec(const std::string& path, const std::vector<std::string>& overrides,
               const Registries& registries, Files& files, Diagnostics& d, Node* tree) {
  Node root = load_spec_file(path, files, registries, d);
  size_t bytes = 0;
  for (size_t i = 0; i < overrides.size(); ++i) {
    const std::string& text = overrides[i];
    files.push_back(std::make_unique<SourceFile>(SourceFile{text, text}));
    bytes += text.size();
    if (i == kMostArguments || bytes > kMostArgumentBytes) {
      d.error({.file = files.back().get(), .line = 1, .column = 1, .length = 1},
              fmt::format("more than {} overrides, or {} bytes of them; put them in a spec file",
                          kMostArguments, kMostArgumentBytes));
      break;
    }
    apply_override(root, *files.back(), registries, d);
  }
  anchor_paths(root, registries);
  spell_choices(root, registries);
  Spec spec = read_spec(root, registries, d);
  spec.path = path;
  if (spec.name.empty()) {
    spec.name = fs::path(path).stem().string();
    if (find_control(spec.name) != spec.name.npos || invalid_utf8(spec.name) != spec.name.npos)
      d.error({.file = files.front().get(), .line = 1, .column = 1, .length = 1},
              "the file name cannot be used as the run's name: it has control characters or is not "
              "UTF-8; set `name`");
    add_name(root, spec.name);
  }
  if (tree) *tree = std::move(root);
  return spec;
}

}  // namespace dpt
