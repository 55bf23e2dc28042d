// Specs whose words are right, but whose shapes or settings do not fit together.
#include "spec/broken.h"

#include <doctest/doctest.h>

#include "session/session.h"

namespace dpt {

TEST_CASE("specs that do not fit together are refused with the golden text") {
  const Registries words = registries();
  test::check_broken("session/broken", 22, words,
                     [&](const std::string& path, const std::vector<std::string>& overrides,
                         std::vector<std::unique_ptr<SourceFile>>& files, Diagnostics& d) {
                       Spec spec = load_spec(path, overrides, words, files, d);
                       REQUIRE_MESSAGE(d.ok(), d.render());  // this folder is for what comes later
                       CHECK(make_session(std::move(spec), {}, d) == nullptr);
                     });
}

}  // namespace dpt
