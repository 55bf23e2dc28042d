#include "base/sha256.h"

#include <span>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

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

std::string hmac(std::string_view key, std::string_view text) {
  std::string out;
  for (const std::byte b : hmac_sha256(
           std::as_bytes(std::span(key)),
           {std::as_bytes(std::span(text.substr(0, 5))), std::as_bytes(std::span(text.substr(5)))}))
    out += fmt::format("{:02x}", std::to_integer<unsigned>(b));
  return out;
}

TEST_CASE("HMAC-SHA256 gives the known answers of RFC 4231") {
  CHECK(hmac("Jefe", "what do ya want for nothing?") ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(hmac(std::string(20, '\x0b'), "Hi There") ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(hmac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First") ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("digests are compared byte by byte") {
  const Digest a = Sha256().update("a").digest();
  CHECK(equal_in_constant_time(a, a));
  for (const size_t at : {size_t{0}, size_t{15}, size_t{31}}) {
    Digest b = a;
    b[at] ^= std::byte{0x10};
    CHECK(!equal_in_constant_time(a, b));
  }
}

}  // namespace
}  // namespace dpt
