#include "images.h"

namespace dpt {
namespace {

std::string refused(const std::vector<std::pair<std::string, std::string>>& names,
                    const Shape& image = {3, 4, 4}) {
  std::vector<Choice> list;
  for (const auto& [name, yaml] : names) list.push_back(transform_of(name, yaml));
  return error_of(Fault::spec, [&] { BatchLoader(counting_images(1, image), list, {}); });
}

const std::pair<std::string, std::string> kBytes{"to_tensor", "{}"},
    kJitter{"color_jitter", "{brightness: 0.5}"};

TEST_CASE("color_jitter: changes colors in training only, before what follows it") {
  const std::vector<Choice> plain = {transform_of("to_tensor", "{}")},
                            list = {plain[0], transform_of("color_jitter", "{brightness: 0.5}"),
                                    transform_of("shift", "10"),
                                    transform_of("random_erasing", "{p: 1, value: 7}")};
  const Dataset d = counting_images(20, {3, 4, 4});
  const BatchLoader before(d, plain, {}), loader(d, list, {}),
      test(d, list, {}, reference_gathers(), Split::test);
  const auto source = transformed(before), images = transformed(loader, {1, 0}),
             evaluated = transformed(test, {1, 0});
  bool changed = false, erased = false;
  for (size_t n = 0; n < images.size(); ++n) {
    double factor = 0;  // of the image, by its first pixel that was not erased
    for (size_t i = 0; i < images[n].size(); ++i) {
      CHECK(evaluated[n][i] == source[n][i] + 10);
      if (images[n][i] == 7) {
        erased = true;
        continue;
      }
      const double now = static_cast<double>(images[n][i]) - 10;
      CHECK(now >= -1e-6);
      CHECK(now <= 1 + 1e-6);
      if (factor == 0) factor = now / static_cast<double>(source[n][i]);
      const double wanted = std::min(1.0, factor * static_cast<double>(source[n][i]));
      if (now < 1) CHECK(now == doctest::Approx(wanted).epsilon(2e-3));  // 10 + x in float32
    }
    CHECK(factor > 0.49);
    CHECK(factor < 1.51);
    changed = changed || std::abs(factor - 1) > 0.1;
  }
  CHECK(changed);
  CHECK(erased);
  CHECK(transformed(loader, {1, 0}) == images);
  CHECK(transformed(loader, {1, 1}) != images);
  CHECK_FALSE(loader.not_stored().empty());
}

TEST_CASE("color_jitter: what is wrong") {
  CHECK(has(refused({kJitter}), "takes values from 0 to 1; list 'to_tensor' before it"));
  CHECK(has(refused({kBytes, kJitter}, {6, 4, 4}),
            "it changes gray and RGB images, with 1 or 3 channels [channels, height, width], but "
            "the data set's samples are [6, 4, 4], with 6 channels; leave it out"));
  const Choice jitter = transform_of(kJitter.first, kJitter.second);
  const std::string volume = static_cast<const TransformType*>(jitter.what)
                                 ->refuses(jitter.settings, {DType::f32, {3, 2, 4, 4}});
  CHECK_MESSAGE(has(volume, "samples are [3, 2, 4, 4]; leave it out"), volume);
  CHECK(has(refused({kBytes, kJitter, kJitter}), "may be listed once only"));
  CHECK(has(refused({kBytes, {"normalize", "{mean: 0.5, std: 0.5}"}, kJitter}),
            "transform 'color_jitter' takes values from 0 to 1, which 'normalize' before it "
            "changes; list 'normalize' after 'color_jitter'"));
  CHECK(has(refused({kBytes, kJitter, {"random_horizontal_flip", "{}"}}),
            "list transform 'random_horizontal_flip' before 'color_jitter'"));
  CHECK(refused({{"random_horizontal_flip", "{}"}, kBytes, kJitter, {"cutout", "2"}}).empty());
  const TransformType& t = transform_type("color_jitter");
  CHECK(has(complaint_of(t, "{}"), "needs at least one of"));
  CHECK(has(complaint_of(t, "{hue: 0.6}"), "'hue' must be one number between 0 and 0.5"));
  CHECK(has(complaint_of(t, "{contrast: [1.2, 0.8]}"), "the smaller one first"));
  CHECK(complaint_of(t, "{hue: [-0.2, 0.1], contrast: [0.8, 1.2]}").empty());
  CHECK(t.random.torch(settings_of(t, "{brightness: 0.4, hue: [-0.2, 0.1]}"), Split::train) ==
        "x = transforms.ColorJitter(brightness=0.4, hue=[-0.2, 0.1])(x)\n");
}

}  // namespace
}  // namespace dpt
