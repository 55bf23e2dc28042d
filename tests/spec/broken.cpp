#include "spec/broken.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

#include <doctest/doctest.h>

#include "paths.h"

namespace dpt::test {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> arguments_of(const std::string& spec) {
  constexpr std::string_view kBegin = "# arguments: ";
  if (!spec.starts_with(kBegin)) return {};
  std::istringstream words(spec.substr(kBegin.size(), spec.find('\n') - kBegin.size()));
  return {std::istream_iterator<std::string>(words), {}};
}

// Paths in messages are those that were given: so the tests stand in the folder.
struct InFolder {
  fs::path before = fs::current_path();
  explicit InFolder(const fs::path& folder) { fs::current_path(folder); }
  ~InFolder() { fs::current_path(before); }
  InFolder(const InFolder&) = delete;
  InFolder& operator=(const InFolder&) = delete;
};

// The text with each list of all names of a registry replaced by the registry's name.
std::string without_names(std::string text, const Registries& words) {
  for (const auto& [registry, name] : {std::pair{&words.layers, "<layers>"},
                                       {&words.losses, "<losses>"},
                                       {&words.optimizers, "<optimizers>"},
                                       {&words.schedules, "<schedules>"},
                                       {&words.datasets, "<datasets>"},
                                       {&words.transforms, "<transforms>"},
                                       {&words.target_transforms, "<target transforms>"},
                                       {&words.modes, "<modes>"},
                                       {&words.precisions, "<precisions>"},
                                       {&words.initialisations, "<initializations>"}}) {
    std::string list;
    for (const RegistryEntry* entry : *registry)
      list += (list.empty() ? "" : ", ") + std::string(entry->name);
    for (size_t at = 0; !list.empty() && (at = text.find(list, at)) != text.npos;)
      text.replace(at, list.size(), name);
  }
  return text;
}

}  // namespace

void check_broken(const std::string& folder, size_t at_least, const Registries& words,
                  const Refuse& refuse) {
  const InFolder here(test_file(folder));
  const bool rewrite =
      std::getenv("DPT_REWRITE_GOLDEN") != nullptr;  // NOLINT(concurrency-mt-unsafe)
  std::vector<fs::path> specs;
  for (const auto& entry : fs::directory_iterator("."))
    if (entry.path().extension() == ".yaml") specs.push_back(entry.path().filename());
  std::ranges::sort(specs);
  CHECK(specs.size() >= at_least);
  for (const fs::path& path : specs) {
    CAPTURE(path.string());
    std::vector<std::unique_ptr<SourceFile>> files;
    Diagnostics d;
    refuse(path.string(), arguments_of(text_of(path)), files, d);
    CHECK(!d.ok());
    const fs::path golden = fs::path(path).replace_extension(".golden");
    const std::string text = without_names(d.render(), words);
    if (rewrite) std::ofstream(golden, std::ios::binary) << text;
    CHECK(text == text_of(golden));
  }
}

}  // namespace dpt::test
