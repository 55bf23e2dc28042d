#include "formats/protobuf_writer.h"

#include <doctest/doctest.h>

namespace dpt {

using namespace std::string_view_literals;

TEST_CASE("fields as protobuf.dev's guide to the encoding has them") {
  CHECK(ProtobufWriter().integer(1, 150).bytes() == "\x08\x96\x01");
  CHECK(ProtobufWriter().integer(1, 0).bytes() == "\x08\x00"sv);
  // Ten bytes of a negative number.
  CHECK(ProtobufWriter().integer(1, -2).bytes() == "\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  CHECK(ProtobufWriter().text(2, "testing").bytes() == "\x12\x07testing");
  CHECK(ProtobufWriter().message(3, ProtobufWriter().integer(1, 150)).bytes() ==
        "\x1a\x03\x08\x96\x01");
  CHECK(ProtobufWriter().number(2, 1.5F).bytes() == "\x15\x00\x00\xc0\x3f"sv);
  CHECK(ProtobufWriter().integer(20, 1).bytes() == "\xa0\x01\x01");  // a key of two bytes
  const std::string text(300, 'x');
  CHECK(ProtobufWriter().text(1, text).bytes() == "\x0a\xac\x02" + text);
}

}  // namespace dpt
