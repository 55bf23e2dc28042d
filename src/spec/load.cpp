// Files: a spec, what it extends, and the arguments over it.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "spec/spec.h"
#include "spec/tree.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;
using Files = std::vector<std::unique_ptr<SourceFile>>;

constexpr size_t kLongestChain = 32;  // files that extend each other

// Empty with the reason in `why` where it cannot be read. Reads no more than shows that it is too
// long.
std::optional<std::string> read_text(const std::string& path, std::string& why) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    why = "it is a folder";
    return {};
  }
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::string text;
  if (in) {
    text.resize(kMostBytes + 1);
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(in.gcount()));
  }
  if (!in.is_open() || in.bad()) {
    why = errno != 0 ? std::generic_category().message(errno) : "it cannot be read";
    return {};
  }
  return text;
}

class Loader {
 public:
  Loader(Files& files, const Vocabulary& vocabulary, Diagnostics& d)
      : files_(files), vocabulary_(vocabulary), d_(d) {}

  // `named`: where another file names it; no file: the command line does.
  Node load(const std::string& path, const Span& named) {
    std::string why;
    std::optional<std::string> text = read_text(path, why);
    const std::string folder = fs::path(path).parent_path().string();
    files_.push_back(std::make_unique<SourceFile>(SourceFile{path, text.value_or(""), folder}));
    const SourceFile& file = *files_.back();
    if (!text) {
      const Span here{&file, 1, 1, 1};
      d_.error(named.file ? named : here, fmt::format("'{}' cannot be read: {}", path, why));
      return {};
    }
    Node root = read_yaml(file, d_);
    const Node* extends = root.find("extends");
    if (!extends) return root;
    const Node value = *extends;
    erase_key(root, "extends");
    std::optional<Node> base = load_base(path, value);
    return base && base->kind == Node::Kind::map
               ? merge(*std::move(base), std::move(root), vocabulary_)
               : root;
  }

 private:
  std::optional<Node> load_base(const std::string& path, const Node& value) {
    if (value.kind != Node::Kind::scalar || value.text.empty()) {
      d_.error(value.where, "'extends' must be the path of one file");
      return {};
    }
    std::error_code ignored;
    open_.push_back(fs::weakly_canonical(path, ignored));
    const fs::path base = (fs::path(path).parent_path() / value.text).lexically_normal();
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
  const Vocabulary& vocabulary_;
  Diagnostics& d_;
  std::vector<fs::path> open_;  // the files that wait for what they extend
};

// For the run's copy of the spec, whose file has another name.
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

Node load_spec_file(const std::string& path, Files& files, const Vocabulary& vocabulary,
                    Diagnostics& d) {
  return Loader(files, vocabulary, d).load(path, {});
}

Spec load_spec(const std::string& path, const std::vector<std::string>& overrides,
               const Vocabulary& vocabulary, Files& files, Diagnostics& d, Node* tree) {
  Node root = load_spec_file(path, files, vocabulary, d);
  for (const std::string& text : overrides) {
    files.push_back(std::make_unique<SourceFile>(SourceFile{text, text}));
    apply_override(root, *files.back(), vocabulary, d);
  }
  anchor_paths(root, vocabulary);
  Spec spec = read_spec(root, vocabulary, d);
  spec.path = path;
  if (spec.name.empty()) {
    spec.name = fs::path(path).stem().string();
    add_name(root, spec.name);
  }
  if (tree) *tree = std::move(root);
  return spec;
}

}  // namespace dpt
