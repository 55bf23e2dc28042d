#include "report/compare.h"

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "data/folder.h"

namespace dpt {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
SafeTensors file_of(const Folder& folder, DType dtype, const std::vector<T>& values) {
  const NamedTensor x{.name = "x",
                      .desc = {dtype, {static_cast<int64_t>(values.size())}},
                      .data = reinterpret_cast<const std::byte*>(values.data())};
  write_safetensors(folder.file("x.safetensors"), {&x, 1});
  return SafeTensors::read(folder.file("x.safetensors"));
}

template <class T>
TensorParting part(DType dtype, const std::vector<T>& a, const std::vector<T>& b) {
  const Folder folder;
  const auto all =
      compare_weights(file_of(folder, dtype, a), file_of(folder, dtype, b), Tolerance{});
  REQUIRE(all.size() == 1);
  return all[0];
}

TEST_CASE("lines of losses are read, whoever wrote them") {
  const Folder folder;
  const RecordedLosses l =
      read_losses(folder.write("a",
                               "{\"step\": 1, \"epoch\": 1, \"loss\": 2.5, \"lr\": 0.1}\n"
                               "{\"loss\":NaN,\"step\":2}\n\n"
                               "{\"step\": 3, \"loss\": -Infinity}\r\n"
                               "{\"step\": 4, \"loss\": null}\n"
                               "{\"evaluation\": 1, \"step\": 4, \"epoch\": 1, \"test_loss\": 7}\n"
                               "{\"final\": true, \"step\": 4, \"epoch\": 1, \"test_loss\": 7}\n"
                               "{\"stopped_early\": true, \"time\": 3.5, \"run\": \"a\"}\n"
                               "{\"epoch\": 1, \"loss\": 2.25, \"steps\": 3, \"test_loss\": 7}\n"));
  REQUIRE(l.steps.size() == 4);
  CHECK(l.steps.at(1) == 2.5);
  CHECK(std::isnan(l.steps.at(2)));
  CHECK(std::isnan(l.steps.at(4)));
  CHECK(l.steps.at(3) == -kInfinity);
  CHECK(l.epochs == LossesBy{{1, 2.25}});
}

TEST_CASE("a line that is no record is named") {
  const Folder folder;
  const auto wrong = [&](const std::string& text) {
    return data_error([&] { read_losses(folder.write("a", text)); });
  };
  CHECK(has(wrong("{\"step\": 1, \"loss\": 2}\nhello\n"), "a:2: not a record"));
  CHECK(has(wrong("{\"step\": 1, \"test_loss\": 2}\n"), "a:1: not a record"));
  CHECK(has(wrong("{\"step\": 1, \"los"), "a:1: not a record"));
  CHECK(has(wrong("{\"epoch\": 4, \"loss\": 2}\n{\"epoch\": 4, \"loss\": 2}\n"),
            "a:2: epoch 4 already has a record"));
  CHECK(has(data_error([&] { read_losses(folder.file("none")); }), "cannot be opened"));
}

TEST_CASE("losses part where they first differ, and where beyond the tolerance of the second") {
  const LossesBy a = {{1, 100}, {2, 100}, {3, 100.1}, {4, NAN}, {5, 7}},
                 b = {{1, 100}, {2, 100.00013}, {3, 100}, {4, NAN}, {6, 7}};
  // At 100 the tolerance is 1e-5 + 1.3e-4.
  const LossParting p = compare_losses(a, b, {});
  CHECK(p.compared == 4);
  REQUIRE(p.first);
  CHECK(p.first->at == 2);
  REQUIRE(p.first_beyond);
  CHECK(p.first_beyond->at == 3);
  CHECK(p.largest->at == 3);
  CHECK(p.largest->distance == doctest::Approx(0.1));
  CHECK_FALSE(compare_losses(a, b, {.relative = 0, .absolute = 0.11}).first_beyond);
  CHECK(compare_losses(a, b, {.relative = 0, .absolute = 0}).first_beyond->at == 2);
  CHECK_FALSE(compare_losses(b, b, {.relative = 0, .absolute = 0}).first);
  // Of one that is no number nobody knows how far it is.
  CHECK(compare_losses({{1, NAN}}, {{1, 2}}, {.absolute = 1e9}).first_beyond->distance ==
        kInfinity);
  CHECK_FALSE(compare_losses({{1, kInfinity}}, {{1, kInfinity}}, {}).first);
}

TEST_CASE("weights: how many elements differ, by how much, and how many floats lie between") {
  const float above = std::nextafter(1.0F, 2.0F), below = std::nextafter(1.0F, 0.0F);
  const TensorParting p = part<float>(DType::f32, {1, above, 3, 4}, {1, below, 3, 4.5F});
  CHECK(p.unlike.empty());
  CHECK(p.differ == 2);
  CHECK(p.beyond == 1);
  CHECK(p.distance == 0.5);
  CHECK(p.ulps == 1 << 20);  // half of 4's spacing of 2^-21
  CHECK(part<float>(DType::f32, {above}, {below}).ulps == 2);
  const TensorParting same = part<float>(DType::f32, {1, NAN}, {1, NAN});
  CHECK(same.differ == 0);
  CHECK(same.ulps == 0);
}

TEST_CASE("floats on both sides of zero are as far apart as floats lie between") {
  const float least = std::numeric_limits<float>::denorm_min();
  CHECK(part<float>(DType::f32, {least}, {-least}).ulps == 2);
  const TensorParting zeros = part<float>(DType::f32, {0.0F}, {-0.0F});
  CHECK(zeros.differ == 1);  // the bits are others
  CHECK(zeros.beyond == 0);
  CHECK(zeros.distance == 0);
  CHECK(zeros.ulps == 0);
  CHECK(part<float>(DType::f32, {NAN}, {1}).distance == kInfinity);
  CHECK(part<float>(DType::f32, {NAN}, {1}).beyond == 1);
}

TEST_CASE("every type of element that a file may hold is compared") {
  CHECK(part<double>(DType::f64, {1}, {std::nextafter(1.0, 2.0)}).ulps == 1);
  // 0x3c00 is 1 and 0x0001 2^-24 as f16; 0x3f80 is 1 as bf16.
  const TensorParting half = part<uint16_t>(DType::f16, {0x3c00, 0x8001}, {0x4000, 0x8001});
  CHECK(half.differ == 1);
  CHECK(half.distance == 1);
  CHECK(half.ulps == 1024);
  CHECK(part<uint16_t>(DType::f16, {1}, {0}).distance == std::ldexp(1, -24));
  CHECK(part<uint16_t>(DType::f16, {0x7c00}, {0xfc00}).distance == kInfinity);
  CHECK(part<uint16_t>(DType::bf16, {0x3f80}, {0x3f81}).distance == std::ldexp(1, -7));
  CHECK(part<int64_t>(DType::i64, {-1}, {2}).distance == 3);
  CHECK(part<int32_t>(DType::i32, {-1}, {2}).distance == 3);
  CHECK(part<uint8_t>(DType::u8, {255}, {254}).distance == 1);
}

}  // namespace
}  // namespace dpt
