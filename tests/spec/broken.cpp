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

}  // namespace

void check_broken(const std::string& folder, size_t at_least, const Refuse& refuse) {
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
    if (rewrite) std::ofstream(golden, std::ios::binary) << d.render();
    CHECK(d.render() == text_of(golden));
  }
}

}  // namespace dpt::test
