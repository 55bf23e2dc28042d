#include "base/sha256.h"
#include "loading.h"

namespace dpt {
namespace {

TEST_CASE("synthetic_images: the format of Fashion-MNIST, the same bytes everywhere") {
  const Dataset d = load("synthetic_images", "{samples: 500}");
  CHECK(d.inputs.desc == TensorDesc{DType::u8, {500, 1, 28, 28}});
  CHECK(d.targets.desc == TensorDesc{DType::i32, {500}});
  CHECK(d.classes == 10);
  CHECK(Sha256().update(values_of<uint8_t>(d.inputs)).hex() ==
        "9ac18fb06d1a2bfad0a98ed79b77b3d3375dd78140c6263371e2229805b60673");
  CHECK(Sha256().update(values_of<int32_t>(d.targets)).hex() ==
        "dd77116f9fd18df3a6a5c467072209fbe463608461ac509032891e900c3a5950");
}

TEST_CASE("synthetic_images: seeds and splits differ, the count does not matter") {
  const auto of = [](const std::string& yaml, Split split = Split::train) {
    return load("synthetic_images", yaml, split);
  };
  const Table ten = of("10").inputs;
  CHECK(std::equal(ten.data.get(), ten.data.get() + ten.desc.bytes(), of("20").inputs.data.get()));
  CHECK(!same(ten, of("{samples: 10, seed: 1}").inputs));
  CHECK(!same(ten, of("{test_samples: 10}", Split::test).inputs));
}

TEST_CASE("synthetic_images: other shapes and counts of classes") {
  const Dataset d = load("synthetic_images", "{samples: 40, shape: [3, 9, 17], classes: 3}");
  CHECK(d.inputs.desc == TensorDesc{DType::u8, {40, 3, 9, 17}});
  for (const int32_t c : values_of<int32_t>(d.targets)) CHECK((c >= 0 && c < 3));
  const DatasetType& type = dataset_type("synthetic_images");
  CHECK(has(complaint_of(type, "{shape: [28, 28]}"), "must be [channels, height, width]"));
  CHECK(has(complaint_of(type, "{shape: [1, 28, 0]}"), "must be between 1 and 1024"));
}

TEST_CASE("synthetic_images: large sets are painted on the way, and are those that are not") {
  const std::string shape = "shape: [3, 130, 100], classes: 3";
  const Dataset small = load("synthetic_images", "{samples: 5, " + shape + "}");
  const Dataset large = load("synthetic_images", "{samples: 1800, " + shape + "}");
  CHECK(small.reader == nullptr);
  REQUIRE(large.reader != nullptr);
  CHECK(large.inputs.desc == TensorDesc{DType::u8, {1800, 3, 130, 100}});
  std::vector<std::byte> image(39000);
  for (uint32_t n = 0; n < 5; ++n) {
    large.reader->read(n, image);
    CHECK(std::equal(image.begin(), image.end(), small.inputs.data.get() + n * image.size()));
    CHECK(values_of<int32_t>(small.targets)[n] == values_of<int32_t>(large.targets)[n]);
  }
}

TEST_CASE("synthetic_images: many large glyphs are not kept, and are the same") {
  // The tutorial's mock loader: 1000 samples of 1000 classes.
  const std::string shape = "{samples: 1000, shape: [3, 224, 224], classes: ";
  const Dataset many = load("synthetic_images", shape + "1000}");
  CHECK(many.inputs.desc == TensorDesc{DType::u8, {1000, 3, 224, 224}});
  CHECK(many.classes == 1000);
  const Dataset few = load("synthetic_images", shape + "40}");  // whose glyphs are kept
  // Samples that have the same class in both, and so the same pixels.
  std::vector<std::byte> a(3 * 224 * 224), b(a.size());
  int compared = 0;
  for (uint32_t n = 0; n < 1000; ++n) {
    if (values_of<int32_t>(many.targets)[n] != values_of<int32_t>(few.targets)[n]) continue;
    many.reader->read(n, a);
    few.reader->read(n, b);
    CHECK(a == b);
    ++compared;
  }
  CHECK(compared > 3);
}

// The class whose mean training image is nearest: weaker than any trained net.
TEST_CASE("synthetic_images: can be learned") {
  const Dataset train = load("synthetic_images", "{samples: 2000}");
  const Dataset test = load("synthetic_images", "{test_samples: 500}", Split::test);
  constexpr size_t kPixels = 784, kClasses = 10;
  std::vector<double> mean(kClasses * kPixels);
  std::vector<double> count(kClasses);
  const uint8_t* pixel = values_of<uint8_t>(train.inputs).data();
  for (size_t n = 0; n < 2000; ++n) {
    const auto c = static_cast<size_t>(values_of<int32_t>(train.targets)[n]);
    ++count[c];
    for (size_t i = 0; i < kPixels; ++i) mean[c * kPixels + i] += *pixel++;
  }
  for (size_t i = 0; i < mean.size(); ++i) mean[i] /= count[i / kPixels];
  int right = 0;
  for (size_t n = 0; n < 500; ++n) {
    size_t best = 0;
    double nearest = 1e300;
    const uint8_t* const image = values_of<uint8_t>(test.inputs).data() + n * kPixels;
    for (size_t c = 0; c < kClasses; ++c) {
      const double* const other = mean.data() + c * kPixels;
      double distance = 0;
      for (size_t i = 0; i < kPixels; ++i)
        distance += (image[i] - other[i]) * (image[i] - other[i]);
      if (distance < nearest) {
        nearest = distance;
        best = c;
      }
    }
    right += static_cast<int32_t>(best) == values_of<int32_t>(test.targets)[n] ? 1 : 0;
  }
  CHECK(right > 450);  // 90 %; chance is 10 %
}

}  // namespace
}  // namespace dpt
