#include "base/wrap.h"

#include <doctest/doctest.h>

namespace dpt {

using Lines = std::vector<std::string>;

TEST_CASE("text is broken at spaces, and long words stay whole") {
  CHECK(wrap_lines("a bc def", 4) == Lines{"a bc", "def"});
  CHECK(wrap_lines("a bc def", 3) == Lines{"a", "bc", "def"});
  CHECK(wrap_lines("abcdef g", 3) == Lines{"abcdef", "g"});
  CHECK(wrap_lines("a  b", 80) == Lines{"a  b"});
  CHECK(wrap_lines("a b\nc\n", 80) == Lines{"a b", "c", ""});
  CHECK(wrap_lines("", 80) == Lines{""});
  CHECK(wrap_lines("a bc def", 0) == Lines{"a bc def"});
  CHECK(wrap_lines("\xC3\xA4\xC3\xB6 \xC3\xBC b", 4) ==
        Lines{"\xC3\xA4\xC3\xB6 \xC3\xBC", "b"});  // characters, not bytes
}

TEST_CASE("the indent of wrapped text counts") {
  CHECK(wrapped("a bc def", 6, 2) == "  a bc\n  def\n");
  CHECK(wrapped("a\n\nb", 6, 2) == "  a\n\n  b\n");
}

}  // namespace dpt
