#include "data/drawn_samples.h"

#include <set>
#include <vector>

#include "transforms/mixed.h"

namespace dpt {
namespace {

using Numbers = std::vector<uint32_t>;

TEST_CASE("rows alone are drawn for the first time, and parts keep their repeats") {
  const Numbers rows = {4, 2, 4}, repeats = {0, 3, 1};
  CHECK(DrawnSamples(rows)[2].row == 4);
  CHECK(DrawnSamples(rows)[2].repeat == 0);
  CHECK(DrawnSamples(rows).subspan(1, 2).repeats().empty());
  const DrawnSamples part = DrawnSamples(rows, repeats).subspan(1, 2);
  CHECK(part.size() == 2);
  CHECK(part[0].row == 2);
  CHECK(part[0].repeat == 3);
  CHECK(part[1].repeat == 1);
}

// Image 1 drawn sixteen times, by itself or among others.
TEST_CASE("random transforms of a sample differ from draw to draw, and not with the batch") {
  for (const auto& transform :
       std::vector<std::pair<std::string, std::string>>{{"random_crop", "{padding: 3}"},
                                                        {"random_horizontal_flip", "0.5"},
                                                        {"random_erasing", "{p: 0.5}"},
                                                        {"cutout", "2"},
                                                        {"color_jitter", "{brightness: 0.9}"},
                                                        {"mixup", "1"},
                                                        {"cutmix", "1"}}) {
    const std::string& name = transform.first;
    CAPTURE(name);
    constexpr size_t kDraws = 16, kPixels = 48;
    Dataset images = filled_images(8);
    NewTable x({DType::u8, {8, 3, 4, 4}});
    for (size_t i = 0; i < x.as<uint8_t>().size(); ++i)
      x.as<uint8_t>()[i] = static_cast<uint8_t>(i * i % 251);
    images.inputs = std::move(x).done();
    const std::vector<Choice> list = {transform_of("to_tensor", ""),
                                      transform_of(name, transform.second)};
    const BatchLoader loader(std::move(images), list, {});
    const AugmentSeed seed{.seed = 5, .epoch = 2};
    Numbers rows, repeats;
    for (uint32_t i = 0; i < kDraws; ++i) {
      rows.insert(rows.end(), {1, i % 8});
      repeats.insert(repeats.end(), {i, 0});
    }
    const DrawnSamples samples(rows, repeats);
    std::vector<float> all(2 * kDraws * kPixels);
    loader.inputs(samples, all.data(), seed);
    std::set<std::vector<float>> seen;
    for (size_t i = 0; i < kDraws; ++i) {
      std::vector<float> alone(kPixels);
      loader.inputs(samples.subspan(2 * i, 1), alone.data(), seed);
      CHECK(std::ranges::equal(alone, std::span(all).subspan(2 * i * kPixels, kPixels)));
      seen.insert(alone);
    }
    CHECK(seen.size() >= (name == "random_horizontal_flip" ? 2U : 5U));
    std::vector<float> first(kPixels);
    loader.inputs(Numbers{1}, first.data(), seed);
    CHECK(std::ranges::equal(first, std::span(all).first(kPixels)));
  }
}

TEST_CASE("a sample that is drawn again gets another partner, and the target of that partner") {
  const std::vector<Choice> list = {transform_of("mixup", "1")};
  const BatchLoader loader(filled_images(8), list, {});
  const AugmentSeed seed{.seed = 3, .epoch = 1};
  std::set<uint32_t> partners;
  for (uint32_t repeat = 0; repeat < 20; ++repeat) {
    const Numbers row = {2}, repeats = {repeat};
    const DrawnSamples sample(row, repeats);
    const uint32_t partner = loader.partner(sample[0], seed);
    partners.insert(partner);
    std::vector<float> y(8);
    loader.targets(sample, y.data(), seed);
    for (uint32_t c = 0; c < 8; ++c) CHECK((y[c] == 0 || c == 2 || c == partner));
    CHECK(y[2] + (partner == 2 ? 0 : y[partner]) == doctest::Approx(1).epsilon(1e-6));
  }
  CHECK(partners.size() > 4);
}

}  // namespace
}  // namespace dpt
