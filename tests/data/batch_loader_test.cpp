#include "data/batch_loader.h"

#include <bit>
#include <numeric>
#include <thread>

#include "data/tables.h"
#include "folder.h"

namespace dpt {
namespace {

template <class T>
Table table_of(DType type, const Shape& shape, const std::vector<T>& values) {
  NewTable t({type, shape});
  REQUIRE(static_cast<size_t>(shape.elements()) == values.size());
  std::ranges::copy(values, t.as<T>().begin());
  return std::move(t).done();
}

template <class Type>
Choice choice(std::span<const Type> table, std::string_view name, const std::string& yaml) {
  for (const Type& t : table)
    if (t.name == name) return {&t, settings_of(t, yaml), {}};
  FAIL("no such word");
  return {};
}
Choice transform(std::string_view name, const std::string& yaml = "") {
  return choice(transform_table(), name, yaml);
}
Choice target_transform(std::string_view name, const std::string& yaml = "") {
  return choice(target_transform_table(), name, yaml);
}

// Three images of two channels [2, 1, 128]: all bytes once in the first, reversed in the second.
Dataset images() {
  std::vector<uint8_t> pixels(3 * 256);
  for (size_t i = 0; i < 256; ++i) {
    pixels[i] = static_cast<uint8_t>(i);
    pixels[256 + i] = static_cast<uint8_t>(255 - i);
    pixels[512 + i] = 7;
  }
  Dataset d;
  d.inputs = table_of<uint8_t>(DType::u8, {3, 2, 1, 128}, pixels);
  d.targets = table_of<int32_t>(DType::i32, {3}, {2, 0, 1});
  d.classes = 3;
  return d;
}

std::vector<float> inputs(const BatchLoader& f, const std::vector<uint32_t>& rows) {
  std::vector<float> out(rows.size() * static_cast<size_t>(f.input().shape.elements()));
  f.inputs(rows, out.data());
  return out;
}

const std::vector<uint32_t> kRows = {1, 0, 0, 2};

// By hand: f of every byte, with its channel.
template <class F>
std::vector<float> expected(F&& f) {
  const Dataset d = images();
  std::vector<float> out;
  for (const uint32_t row : kRows)
    for (size_t i = 0; i < 256; ++i)
      out.push_back(
          f(static_cast<float>(values_of<uint8_t>(d.inputs)[row * 256 + i]), i < 128 ? 0 : 1));
  return out;
}

TEST_CASE("bytes without transforms become floats") {
  const BatchLoader f(images(), {}, {});
  CHECK(f.input() == TensorDesc{DType::f32, {2, 1, 128}});
  CHECK(inputs(f, kRows) == expected([](float v, int) { return v; }));
}

TEST_CASE("a chain of transforms gives the bits of its steps") {
  const std::vector<Choice> chain = {transform("to_tensor"), transform("divide", "255")};
  CHECK(inputs(BatchLoader(images(), chain, {}), kRows) ==
        expected([](float v, int) { return (v / 255.0F) / 255.0F; }));
  const std::vector<Choice> affine = {transform("scale", "0.5"), transform("shift", "-3")};
  CHECK(inputs(BatchLoader(images(), affine, {}), kRows) ==
        expected([](float v, int) { return v * 0.5F + -3.0F; }));
}

TEST_CASE("normalize differs by channel") {
  const std::vector<Choice> chain = {
      transform("to_tensor"), transform("normalize", "{mean: [0.5, 0.25], std: [0.1, 0.3]}")};
  CHECK(inputs(BatchLoader(images(), chain, {}), kRows) == expected([](float v, int channel) {
          return (v / 255.0F - (channel == 0 ? 0.5F : 0.25F)) / (channel == 0 ? 0.1F : 0.3F);
        }));
}

TEST_CASE("the fast loop is taken only where it gives the same bits") {
  static int affine = 0, tables = 0;
  GatherKernels counting = reference_gathers();
  counting.u8 = [](const uint8_t* rows, const int64_t* index, size_t n, size_t features,
                   float scale, float shift, float* x) {
    ++affine;
    reference_gathers().u8(rows, index, n, features, scale, shift, x);
  };
  counting.u8_table = [](const uint8_t* rows, const int64_t* index, size_t n, size_t features,
                         const float* table, float* x) {
    ++tables;
    reference_gathers().u8_table(rows, index, n, features, table, x);
  };
  const std::vector<Choice> half = {transform("divide", "2")}, third = {transform("to_tensor")};
  const auto halves = [](float v, int) { return v / 2; };
  CHECK(inputs(BatchLoader(images(), half, {}, counting), kRows) == expected(halves));
  CHECK(affine == 1);
  CHECK(tables == 0);
  const auto units = [](float v, int) { return v / 255.0F; };  // no one product has these bits
  CHECK(inputs(BatchLoader(images(), third, {}, counting), kRows) == expected(units));
  CHECK(affine == 1);
  CHECK(tables == 1);
}

TEST_CASE("floats are transformed by column") {
  Dataset d;
  d.inputs = table_of<float>(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  d.targets = table_of<float>(DType::f32, {2, 1}, {10, 20});
  const std::vector<Choice> chain = {transform("to_tensor"),
                                     transform("normalize", "{mean: [1, 2, 3], std: 2}")};
  const BatchLoader f(d, chain, {});
  CHECK(inputs(f, {1, 0}) == std::vector<float>{1.5F, 1.5F, 1.5F, 0, 0, 0});
  std::vector<float> targets(2);
  f.targets(std::vector<uint32_t>{1, 0}, targets.data());
  CHECK(targets == std::vector<float>{20, 10});
  CHECK(f.target() == TensorDesc{DType::f32, {1}});
}

TEST_CASE("tokens and classes stay whole numbers") {
  Dataset d;
  d.inputs = table_of<int32_t>(DType::i32, {2, 2}, {1, 2, 3, 4});
  d.targets = table_of<int32_t>(DType::i32, {2}, {5, 6});
  d.classes = 7;
  const BatchLoader f(d, {}, {});
  std::vector<int32_t> x(4), y(2);
  f.inputs(std::vector<uint32_t>{1, 0}, x.data());
  f.targets(std::vector<uint32_t>{1, 0}, y.data());
  CHECK(x == std::vector<int32_t>{3, 4, 1, 2});
  CHECK(y == std::vector<int32_t>{6, 5});
  const std::vector<Choice> chain = {transform("to_tensor")};
  CHECK(has(error_of(Fault::spec, [&] { BatchLoader(d, chain, {}); }),
            "transform 'to_tensor' is for numbers"));
}

TEST_CASE("windows of one text overlap, or leave some of it out") {
  const Table text = table_of<int32_t>(DType::i32, {9}, {0, 1, 2, 3, 4, 5, 6, 7, 8});
  const std::shared_ptr<const std::byte[]> next(text.data, text.data.get() + sizeof(int32_t));
  for (const int64_t stride : {1, 3}) {
    Dataset d;
    d.inputs = {{DType::i32, {3, 2}}, text.data, stride};
    d.targets = {{DType::i32, {3, 2}}, next, stride};
    d.classes = 9;
    const BatchLoader f(d, {}, {});
    std::vector<int32_t> x(4), y(4);
    f.inputs(std::vector<uint32_t>{2, 1}, x.data());
    f.targets(std::vector<uint32_t>{2, 1}, y.data());
    const auto at = static_cast<int32_t>(stride);
    CHECK(x == std::vector<int32_t>{2 * at, 2 * at + 1, at, at + 1});
    CHECK(y == std::vector<int32_t>{2 * at + 1, 2 * at + 2, at + 1, at + 2});
    // What a GPU gets: the text once, and how far apart samples begin.
    for (const BatchLoader::Stored& s : {f.stored_inputs(), f.stored_targets()}) {
      CHECK(s.step == stride);
      CHECK(s.bytes.size() == static_cast<size_t>(2 * stride + 2) * sizeof(int32_t));
    }
    const std::vector<Choice> chain = {target_transform("one_hot", "9")};
    const BatchLoader hot(d, {}, chain);
    std::vector<float> z(2 * 9);
    hot.targets(std::vector<uint32_t>{2}, z.data());
    CHECK(hot.target() == TensorDesc{DType::f32, {2, 9}});
    CHECK(z[static_cast<size_t>(2 * stride + 1)] == 1);
    CHECK(z[static_cast<size_t>(9 + 2 * stride + 2)] == 1);
  }
}

TEST_CASE("one_hot turns classes into floats") {
  const std::vector<Choice> chain = {target_transform("one_hot", "4")};
  const BatchLoader f(images(), {}, chain);
  CHECK(f.target() == TensorDesc{DType::f32, {4}});
  std::vector<float> y(8);
  f.targets(std::vector<uint32_t>{0, 1}, y.data());
  CHECK(y == std::vector<float>{0, 0, 1, 0, 1, 0, 0, 0});
}

TEST_CASE("targets that are inputs have the draws of the inputs") {
  const std::vector<Choice> same = {target_transform("input")};
  for (const std::vector<Choice>& chain : std::vector<std::vector<Choice>>{
           {},
           {transform("to_tensor"), transform("normalize", "{mean: [0.5, 0.25], std: 0.5}")},
           {transform("random_crop", "{size: [1, 100], padding: 1}"),
            transform("random_horizontal_flip", "0.5"), transform("to_tensor"),
            transform("random_erasing", "{p: 0.9}")}}) {
    const BatchLoader f(images(), chain, same);
    CHECK(f.target_is_input());
    CHECK(f.target() == f.input());
    const size_t size = kRows.size() * static_cast<size_t>(f.input().shape.elements());
    const AugmentSeed seed{.seed = 3, .epoch = 2};
    std::vector<float> x(size), y(size);
    f.inputs(kRows, x.data(), seed);
    f.targets(kRows, y.data(), seed);
    CHECK(x == y);
    CHECK(f.stored_targets().bytes.data() == f.stored_inputs().bytes.data());
  }
}

// Three images [1, 4, 6] of the numbers 1 to 72, each its own target.
template <class T>
Dataset masks(DType type, const Shape& shape) {
  std::vector<uint8_t> pixels(72);
  std::iota(pixels.begin(), pixels.end(), uint8_t{1});
  Dataset d;
  d.inputs = table_of<uint8_t>(DType::u8, {3, 1, 4, 6}, pixels);
  d.targets = table_of<T>(type, shape, std::vector<T>(pixels.begin(), pixels.end()));
  if (type == DType::i32) d.classes = 73;
  return d;
}

// Whether targets are what the inputs would be without erasing.
template <class T>
void check_moved(const Dataset& d, const std::vector<Choice>& chain, Split split) {
  const BatchLoader moved(d, chain, {}, reference_gathers(), split);
  std::vector<Choice> moves = chain;  // with the same draws
  for (Choice& c : moves)
    if (c.what->name == "random_erasing") c = transform("random_erasing", "{p: 0}");
  const BatchLoader plain(d, moves, {}, reference_gathers(), split);
  const Shape image = moved.input().shape, target = moved.target().shape;
  CHECK(target.tail(target.rank() - 2) == image.tail(1));
  size_t different = 0;
  for (uint64_t epoch = 0; epoch < 50; ++epoch) {
    const AugmentSeed seed{.seed = 7, .epoch = epoch};
    std::vector<float> x(kRows.size() * static_cast<size_t>(image.elements()));
    std::vector<T> y(x.size()), expected(x.size());
    plain.inputs(kRows, x.data(), seed);
    std::ranges::transform(x, expected.begin(), [](float v) { return static_cast<T>(v); });
    moved.targets(kRows, y.data(), seed);
    different += y != expected;
  }
  CHECK(different == 0);
}

TEST_CASE("crops and flips move targets of one value per pixel, and erasing leaves them") {
  const std::vector<Choice> chain = {transform("random_crop", "{size: [3, 5], padding: 2}"),
                                     transform("random_erasing", "{p: 0.9, value: 5}"),
                                     transform("random_horizontal_flip", "0.5"),
                                     transform("random_vertical_flip", "0.5")};
  for (const Split split : {Split::train, Split::test}) {
    check_moved<int32_t>(masks<int32_t>(DType::i32, {3, 4, 6}), chain, split);
    check_moved<float>(masks<float>(DType::f32, {3, 4, 6}), chain, split);
    check_moved<float>(masks<float>(DType::f32, {3, 1, 4, 6}), chain, split);
  }
  const BatchLoader f(masks<int32_t>(DType::i32, {3, 4, 6}), chain, {});
  CHECK(f.moves_targets());
  CHECK(f.stored_targets().sample == TensorDesc{DType::i32, {1, 4, 6}});
  CHECK(f.stored_targets().changes.count == 3);
  const BatchLoader evaluated(masks<int32_t>(DType::i32, {3, 4, 6}),
                              std::vector<Choice>{transform("random_horizontal_flip", "0.5")}, {},
                              reference_gathers(), Split::test);
  CHECK_FALSE(evaluated.moves_targets());
}

TEST_CASE("padding of targets is 0 before the target transforms") {
  const std::vector<Choice> chain = {transform("random_crop", "{padding: 9, fill: 99}")},
                            scaled = {target_transform("standardize", "{mean: 10, std: 2}")};
  const BatchLoader f(masks<float>(DType::f32, {3, 1, 4, 6}), chain, scaled);
  std::vector<float> y(72);
  f.targets(std::vector<uint32_t>{0, 1, 2}, y.data(), {.seed = 1, .epoch = 0});
  CHECK(std::ranges::count(y, -5.0F) > 0);
  CHECK(std::ranges::none_of(y, [](float v) { return v > 31; }));
}

TEST_CASE("targets that can't be moved as the image is are refused") {
  const std::vector<Choice> flip = {transform("random_horizontal_flip", "0.5")};
  const auto why = [&](const Dataset& d, const std::vector<Choice>& targets = {}) {
    return error_of(Fault::spec, [&] { BatchLoader(d, flip, targets); });
  };
  const std::string needed = "they need the same height and width";
  CHECK(has(why(masks<float>(DType::f32, {3, 6, 4})),
            "transform 'random_horizontal_flip' moves pixels of the images [1, 4, 6], but the "
            "targets [6, 4] can't be moved alike"));
  CHECK(has(why(masks<float>(DType::f32, {3, 24})), needed));
  CHECK(has(why(masks<int32_t>(DType::i32, {3, 4, 6}), {target_transform("one_hot", "73")}),
            "is not possible with target transform 'one_hot'"));
  Dataset d = masks<float>(DType::f32, {3, 24});
  d.targets = table_of<float>(DType::f32, {3, 2}, {1, 2, 3, 4, 5, 6});
  CHECK_FALSE(BatchLoader(d, flip, {}).moves_targets());
}

TEST_CASE("an input as the target stands alone, and is not mixed") {
  const std::vector<Choice> two = {target_transform("input"),
                                   target_transform("standardize", "{mean: 0, std: 1}")};
  CHECK(error_of(Fault::spec, [&] { BatchLoader(images(), {}, two); }) ==
        "target transform 'input' must be the only one, but there are 2");
  const std::vector<Choice> same = {two[0]}, mixed = {transform("mixup")};
  CHECK(has(error_of(Fault::spec, [&] { BatchLoader(images(), mixed, same); }),
            "is not possible with 'mixup' and 'cutmix'"));
}

TEST_CASE("a transform that does not fit the samples is refused") {
  const std::vector<Choice> chain = {transform("normalize", "{mean: [1, 2, 3], std: [1]}")};
  CHECK(error_of(Fault::spec, [&] { BatchLoader(images(), chain, {}); }) ==
        "transform 'normalize': 'mean' has 3 numbers, but samples [2, 1, 128] have 2 channels");
}

TEST_CASE("batches larger than a block, from many threads") {
  const BatchLoader f(images(), {}, {});
  std::vector<uint32_t> rows(1000);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<uint32_t>(i % 3);
  std::vector<std::vector<float>> out(3, std::vector<float>(rows.size() * 256));
  std::vector<std::thread> threads;
  for (auto& o : out) threads.emplace_back([&] { f.inputs(rows, o.data()); });
  for (std::thread& t : threads) t.join();
  CHECK(out[0] == out[1]);
  CHECK(out[0] == out[2]);
  for (size_t r = 0; r < rows.size(); r += 37) {
    const std::vector<float> one = inputs(f, {rows[r]});
    CHECK(
        std::equal(one.begin(), one.end(), out[0].begin() + static_cast<std::ptrdiff_t>(r * 256)));
  }
}

}  // namespace
}  // namespace dpt
