#include "base/byte_count.h"

#include <doctest/doctest.h>

namespace dpt {
namespace {

TEST_CASE("numbers of bytes with units of 1024") {
  CHECK(parse_bytes("1048576") == 1048576.0);
  CHECK(parse_bytes("100B") == 100.0);
  CHECK(parse_bytes("1.5K") == 1536.0);
  CHECK(parse_bytes("512MiB") == 536870912.0);
  CHECK(parse_bytes("512 MiB") == 536870912.0);
  CHECK(parse_bytes("8GiB") == 8589934592.0);
  CHECK(parse_bytes("8g") == 8589934592.0);
  CHECK(parse_bytes("1T") == 1099511627776.0);
  for (const char* text :
       {"", "GiB", "-1", "0", "8GB", "8 apples", "8GiBs", "nan", "inf", "1e999"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_bytes(text));
  }
}

TEST_CASE("bytes as text, in the largest unit that they fill") {
  CHECK(bytes_text(512) == "0.50 KiB");
  CHECK(bytes_text(1048576) == "1.00 MiB");
  CHECK(bytes_text(1.5 * 1073741824) == "1.50 GiB");
}

}  // namespace
}  // namespace dpt
