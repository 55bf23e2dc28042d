#include <cmath>

#include "loading.h"

namespace dpt {
namespace {

TEST_CASE("npy: values, classes and tokens") {
  const Folder folder;
  folder.write("x", npy<double>("<f8", "(2, 2)", {1, 2, 3, 4}));
  folder.write("tokens", npy<int64_t>("<i8", "(2, 2)", {1, 2, 3, 4}));
  folder.write("y", npy<float>("<f4", "(2,)", {5, 6}));
  folder.write("c", npy<int64_t>("<i8", "(2,)", {0, 4}));
  folder.write("short", npy<int64_t>("<i8", "(2,)", {1, 0}));
  const auto of = [&](const std::string& yaml, Split split = Split::train) {
    return load("npy", yaml, split, folder.path());
  };
  const Dataset values = of("{inputs: x, targets: y}");
  CHECK(all_of<float>(values.inputs) == std::vector<float>{1, 2, 3, 4});
  CHECK(values.targets.desc == TensorDesc{DType::f32, {2, 1}});
  CHECK(values.classes == 0);
  const Dataset classes = of("{inputs: tokens, targets: c}");
  CHECK(classes.inputs.desc == TensorDesc{DType::i32, {2, 2}});
  CHECK(classes.classes == 5);
  CHECK(of("{inputs: x, targets: c, test_inputs: x, test_targets: short}", Split::test).classes ==
        5);
  CHECK(of("{inputs: x, targets: c, classes: 9}").classes == 9);
}

TEST_CASE("npy: classes of each pixel or position") {
  const Folder folder;
  folder.write("x", npy<float>("<f4", "(2, 1, 1, 3)", {1, 2, 3, 4, 5, 6}));
  folder.write("y", npy<int64_t>("<i8", "(2, 1, 3)", {0, 1, 2, 2, 1, 0}));
  folder.write("wrong", npy<int64_t>("<i8", "(2, 1, 3)", {0, 1, 2, 2, 5, 0}));
  const Dataset d = load("npy", "{inputs: x, targets: y}", Split::train, folder.path());
  CHECK(d.classes == 3);
  CHECK(d.targets.desc == TensorDesc{DType::i32, {2, 1, 3}});
  CHECK(has(data_error([&] {
              load("npy", "{inputs: x, targets: wrong, classes: 3}", Split::train, folder.path());
            }),
            "the label of sample 1 (counted from 0) at [0, 1] is 5"));
}

TEST_CASE("npy: columns and channels are standardized before they are rounded") {
  const Folder folder;
  folder.write(
      "x", npy<double>("<f8", "(3, 2)", {1700000000001, 5, 1700000000003, 5, 1700000000005, 5}));
  folder.write("t", npy<double>("<f8", "(1, 2)", {1700000000007, 6}));
  folder.write("wide", npy<double>("<f8", "(1, 3)", {1, 2, 3}));
  folder.write("c", npy<float>("<f4", "(2, 2, 1, 2)", {1, 3, 10, 10, 1, 3, 10, 30}));
  folder.write("y", npy<float>("<f4", "(3,)", {1, 2, 3}));
  folder.write("y1", npy<float>("<f4", "(1,)", {1}));
  folder.write("y2", npy<float>("<f4", "(2,)", {1, 2}));
  folder.write("i", npy<int64_t>("<i8", "(3, 2)", {1, 2, 3, 4, 5, 6}));
  folder.write("nan", npy<float>("<f4", "(1, 2)", {1, NAN}));
  const DatasetType& type = dataset_type("npy");
  const auto settings = [&](const std::string& files) {
    return settings_of(type, "{" + files + ", standardize: true}", folder.path());
  };
  const std::any with_test = settings("inputs: x, targets: y, test_inputs: t, test_targets: y1");
  const LoadQuery first_two{.trained = [](int64_t) { return std::vector<uint32_t>{1, 0}; }};
  const Dataset d = type.load(with_test, first_two);
  CHECK(d.channels == std::vector<ChannelScaling>{{1700000000002, 1}, {5, 1}});
  CHECK(all_of<float>(d.inputs) == std::vector<float>{-1, 0, 1, 0, 3, 0});
  const Dataset test = type.load(with_test, {.split = Split::test, .training_set = &d});
  CHECK(all_of<float>(test.inputs) == std::vector<float>{5, 1});
  CHECK(test.channels == d.channels);
  const Dataset images = type.load(settings("inputs: c, targets: y2"), {});
  CHECK(images.channels.size() == 2);
  CHECK(images.channels[0] == ChannelScaling{2, 1});
  CHECK(images.channels[1].mean == 15);
  CHECK(has(data_error([&] {
              type.load(settings("inputs: x, targets: y, test_inputs: wide, test_targets: y1"),
                        {.split = Split::test});
            }),
            "wide has samples [3], but the training set has 2 columns or channels"));
  CHECK(has(data_error([&] { type.load(settings("inputs: i, targets: y"), {}); }),
            "holds integers, which `standardize` does not take"));
  CHECK(has(data_error([&] { type.load(settings("inputs: nan, targets: y1"), {}); }),
            "nan: sample 0 (counted from 0) has a number that is not finite, which"));
  CHECK(type.torch(with_test, {}).empty());
}

TEST_CASE("npy: samples of every rank have one scaling per index of their first dimension") {
  const Folder folder;
  folder.write("y", npy<float>("<f4", "(1,)", {1}));
  for (const char* shape : {"(1, 2, 2)", "(1, 2, 1, 2)", "(1, 2, 1, 1, 2)"}) {
    CAPTURE(shape);
    folder.write("x", npy<float>("<f4", shape, {1, 3, 100, 300}));
    const Dataset d =
        load("npy", "{inputs: x, targets: y, standardize: true}", Split::train, folder.path());
    CHECK(d.channels == std::vector<ChannelScaling>{{2, 1}, {200, 100}});
    CHECK(all_of<float>(d.inputs) == std::vector<float>{-1, 1, -1, 1});
  }
}

TEST_CASE("npy: tokens are counted over both sets") {
  const Folder folder;
  folder.write("x", npy<int16_t>("<i2", "(2, 2)", {1, 2, 3, 4}));
  folder.write("t", npy<int32_t>("<i4", "(1, 2)", {1, 9}));
  folder.write("y", npy<int64_t>("<i8", "(2,)", {0, 1}));
  folder.write("ty", npy<int64_t>("<i8", "(1,)", {0}));
  folder.write("negative", npy<int64_t>("<i8", "(2, 1)", {0, -1}));
  const auto of = [&](const std::string& yaml, Split split = Split::train) {
    return load("npy", yaml, split, folder.path());
  };
  CHECK(of("{inputs: x, targets: y}").tokens == 5);
  const std::string both = "{inputs: x, targets: y, test_inputs: t, test_targets: ty}";
  CHECK(of(both).tokens == 10);
  CHECK(of(both, Split::test).tokens == 10);
  CHECK(of("{inputs: x, targets: y, tokens: 30}").tokens == 30);
  CHECK(has(data_error([&] { of("{inputs: x, targets: y, tokens: 4}"); }),
            "sample 1 (counted from 0) holds 4, but inputs of integers are tokens 0..3"));
  CHECK(has(data_error([&] { of("{inputs: negative, targets: y}"); }), "holds -1, but"));
}

TEST_CASE("npy: what is wrong") {
  const Folder folder;
  folder.write("x", npy<float>("<f4", "(2, 1)", {1, 2}));
  folder.write("c", npy<int32_t>("<i4", "(3,)", {0, 1, 2}));
  const auto why = [&](const std::string& yaml, Split split = Split::train) {
    return data_error([&] { load("npy", yaml, split, folder.path()); });
  };
  CHECK(has(why("{inputs: x, targets: c}"), "holds 2 samples, but"));
  CHECK(has(why("{inputs: x, targets: c, classes: 2}"), "sample 2 (counted from 0) is 2"));
  CHECK(has(why("{inputs: x, targets: x, classes: 2}"), "but classes are whole numbers"));
  CHECK(has(why("{inputs: x, targets: c}", Split::test), "has no test split"));
  CHECK(has(complaint_of(dataset_type("npy"), "{inputs: x, targets: c, test_inputs: x}"),
            "must be given together"));
}

TEST_CASE("npy: a separate validation set is standardized as the training set is") {
  const Folder folder;
  folder.write("x", npy<float>("<f4", "(3, 1)", {1, 2, 3}));
  folder.write("v", npy<float>("<f4", "(2, 1)", {2, 12}));
  folder.write("y", npy<int32_t>("<i4", "(3,)", {0, 1, 2}));
  folder.write("w", npy<int32_t>("<i4", "(2,)", {0, 1}));
  const Dataset train =
      load("npy", "{inputs: x, targets: y, standardize: true}", Split::train, folder.path());
  const std::string given = "{inputs: v, targets: w}";
  const Dataset valid = load_validation("npy", given, train, folder.path());
  CHECK(all_of<float>(valid.inputs)[0] == 0);
  CHECK(all_of<float>(valid.inputs)[1] == doctest::Approx(10 / std::sqrt(2.0 / 3)));
  const Dataset plain = load("npy", "{inputs: x, targets: y}", Split::train, folder.path());
  CHECK(all_of<float>(load_validation("npy", given, plain, folder.path()).inputs)[1] == 12);
  CHECK(has(data_error([&] {
              load_validation("npy", "{inputs: v, targets: w, standardize: true}", plain,
                              folder.path());
            }),
            "is to be standardized, but the training set is not"));
}

TEST_CASE("npy: Python lines") {
  CHECK(has(torch_data_of("npy", "{inputs: /x, targets: /y}"),
            "x = torch.from_numpy(np.load(\"/x\"))\n"));
}

}  // namespace
}  // namespace dpt
