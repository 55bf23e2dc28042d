#include "base/sha256.h"

#include <string>

#include <doctest/doctest.h>

namespace dpt {
namespace {

std::string sha256(std::string_view text) { return Sha256().update(text).hex(); }

TEST_CASE("SHA-256 gives the known answers of FIPS 180-4") {
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256(std::string(1000000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("SHA-256 does not depend on how the bytes arrive") {
  const std::string text(200, 'x');
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    Sha256 pieces;
    pieces.update(text.substr(0, cut)).update(text.substr(cut));
    CHECK(pieces.hex() == sha256(text));
  }
}

}  // namespace
}  // namespace dpt
