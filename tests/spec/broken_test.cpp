// What can't be read, or is not in the language, is refused with the golden text.
#include "spec/broken.h"

#include <doctest/doctest.h>

#include "session/session.h"

namespace dpt {

TEST_CASE("broken specs are refused with the golden text") {
  const Registries words = registries();
  test::check_broken("spec/broken", 60, words,
                     [&](const std::string& path, const std::vector<std::string>& overrides,
                         std::vector<std::unique_ptr<SourceFile>>& files,
                         Diagnostics& d) { load_spec(path, overrides, words, files, d); });
}

}  // namespace dpt
