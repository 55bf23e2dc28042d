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
  CHECK(has(why("{inputs: x, targets: x, classes: 2}"), "'classes' was given"));
  CHECK(has(why("{inputs: x, targets: c}", Split::test), "has no test split"));
  CHECK(has(complaint_of(dataset_type("npy"), "{inputs: x, targets: c, test_inputs: x}"),
            "must be given together"));
}

TEST_CASE("npy: Python lines") {
  CHECK(has(torch_data_of("npy", "{inputs: /x, targets: /y}"),
            "x = torch.from_numpy(np.load(\"/x\"))\n"));
}

}  // namespace
}  // namespace dpt
