// Every NAME.yaml in broken/ is refused with exactly the text of NAME.golden. A first line
// "# arguments: a=1 b=2" gives overrides. DPT_REWRITE_GOLDEN=1 writes the goldens anew.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "words.h"

namespace dpt {
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

TEST_CASE("broken specs are refused with the golden text") {
  const InFolder here(fs::path(DPT_TEST_DIR) / "spec" / "broken");
  const bool rewrite =
      std::getenv("DPT_REWRITE_GOLDEN") != nullptr;  // NOLINT(concurrency-mt-unsafe)
  std::vector<fs::path> specs;
  for (const auto& entry : fs::directory_iterator("."))
    if (entry.path().extension() == ".yaml") specs.push_back(entry.path().filename());
  std::ranges::sort(specs);
  CHECK(specs.size() >= 60);
  for (const fs::path& path : specs) {
    CAPTURE(path.string());
    std::vector<std::unique_ptr<SourceFile>> files;
    Diagnostics d;
    load_spec(path.string(), arguments_of(text_of(path)), test::words(), files, d);
    CHECK(!d.ok());
    const fs::path golden = fs::path(path).replace_extension(".golden");
    if (rewrite) std::ofstream(golden, std::ios::binary) << d.render();
    CHECK(d.render() == text_of(golden));
  }
}

}  // namespace dpt
