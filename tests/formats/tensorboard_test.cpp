#include "formats/tensorboard.h"

#include <string>

#include <doctest/doctest.h>

namespace dpt {
namespace {

std::string hex(const std::string& bytes) {
  std::string out;
  for (const char c : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    (out += kDigits[byte >> 4]) += kDigits[byte & 15];
  }
  return out;
}

TEST_CASE("CRC-32C has the values of RFC 3720, B.4") {
  CHECK(tensorboard::crc32c("") == 0);
  CHECK(tensorboard::crc32c("123456789") == 0xe3069283);
  CHECK(tensorboard::crc32c(std::string(32, '\0')) == 0x8a9136aa);
  CHECK(tensorboard::crc32c(std::string(32, '\xff')) == 0x62a8ab43);
  std::string ascending;
  for (int i = 0; i < 32; ++i) ascending += static_cast<char>(i);
  CHECK(tensorboard::crc32c(ascending) == 0x46dd794e);
  CHECK(tensorboard::masked_crc32c("123456789") == 0xc78ab0e5);
}

// Written with tensorboard 2.21's EventFileWriter, with the same events and times.
TEST_CASE("records are the bytes that TensorBoard's own writer makes") {
  CHECK(hex(tensorboard::file_version(1.5)) ==
        "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c");
  CHECK(hex(tensorboard::session_start(1.5, 300)) ==
        "100000000000000095fbfe1809000000000000f83f10ac023a020801713b788a");
  const tensorboard::Scalar values[] = {{"loss/train", 0.25}, {"lr", 0.1}};
  CHECK(hex(tensorboard::scalars(1.5, 300, values)) ==
        "2c00000000000000f4aecc4509000000000000f83f10ac022a1e0a110a0a6c6f73732f747261696e"
        "150000803e0a090a026c7215cdcccc3db0e846cc");
  CHECK(hex(tensorboard::text(1.5, "spec", "a: 1\nb: 2\n")) ==
        "3b000000000000001a23ac5c09000000000000f83f2a300a2e0a0473706563421c08071204120208"
        "01421220202020613a20310a20202020623a20320a4a080a060a0474657874c06ece0e");
  CHECK(hex(tensorboard::settings(1.5, {{"a", "1"}, {"b", "x"}, {"c", "true"}})) ==
        "6800000000000000fe9c7ad409000000000000f83f2a5d0a5b0a1c5f68706172616d735f2f736573"
        "73696f6e5f73746172745f696e666f4a3b0a390a0768706172616d73122e1a2c0a0e0a0161120911"
        "000000000000f03f0a080a016212031a01780a070a01631202200129000000000000f83f937d33a4");
}

}  // namespace
}  // namespace dpt
