#include "loading.h"

namespace dpt {
namespace {

const std::string kText = "a,b,kind\n1,2,0\n3,4,1\n5,6,0\n";

TEST_CASE("csv: the last column is the target unless others are named") {
  const Folder folder;
  folder.write("t.csv", kText);
  const auto of = [&](const std::string& yaml) {
    return load("csv", yaml, Split::train, folder.path());
  };
  const Dataset plain = of("t.csv");
  CHECK(plain.inputs.desc == TensorDesc{DType::f32, {3, 2}});
  CHECK(all_of<float>(plain.inputs) == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(plain.targets.desc == TensorDesc{DType::f32, {3, 1}});
  CHECK(all_of<float>(plain.targets) == std::vector<float>{0, 1, 0});
  CHECK(plain.description == "csv: 3 x [2] f32, targets [1] f32, from " + folder.file("t.csv") +
                                 "; its first line is the header: a, b, kind");
  const Dataset classes = of("{path: t.csv, targets: kind, inputs: [b], classes: 2}");
  CHECK(all_of<int32_t>(classes.targets) == std::vector<int32_t>{0, 1, 0});
  CHECK(all_of<float>(classes.inputs) == std::vector<float>{2, 4, 6});
  const Dataset two = of("{path: t.csv, targets: [b, 0]}");
  CHECK(all_of<float>(two.targets) == std::vector<float>{2, 1, 4, 3, 6, 5});
  CHECK(all_of<float>(two.inputs) == std::vector<float>{0, 1, 0});
}

TEST_CASE("csv: delimiters and a test split") {
  const Folder folder;
  folder.write("t.csv", "1\t2\n");
  folder.write("u.csv", "3\t4\n5\t6\n");
  CHECK(has(complaint_of(dataset_type("csv"), "{path: t, delimiter: ':'}"), "delimiter"));
  const std::string quoted = "{path: t.csv, test_path: u.csv, delimiter: tab, header: \"no\"}";
  const Dataset test = load("csv", quoted, Split::test, folder.path());
  CHECK(test.size() == 2);
  CHECK_FALSE(has(test.description, "header"));
}

TEST_CASE("csv: columns of the test set are found by the names of the training set's") {
  const Folder folder;
  folder.write("t.csv", kText);
  folder.write("swapped.csv", "kind,b,more,a\n1,20,9,10\n0,40,9,30\n");
  folder.write("other.csv", "a,c,kind\n1,2,0\n");
  folder.write("bare.csv", "7,8,1\n");
  folder.write("twice.csv", "a,a,kind\n1,2,0\n");
  const auto test_set = [&](const std::string& files) {
    return load("csv", "{" + files + ", classes: 2}", Split::test, folder.path());
  };
  const Dataset swapped = test_set("path: t.csv, test_path: swapped.csv");
  CHECK(all_of<float>(swapped.inputs) == std::vector<float>{10, 20, 30, 40});
  CHECK(all_of<int32_t>(swapped.targets) == std::vector<int32_t>{1, 0});
  CHECK(all_of<float>(test_set("path: t.csv, test_path: bare.csv").inputs) ==
        std::vector<float>{7, 8});
  CHECK(has(data_error([&] { test_set("path: t.csv, test_path: other.csv"); }),
            "other.csv has no column 'b'; it has 3 columns: a, c, kind"));
  CHECK(all_of<float>(test_set("path: twice.csv, test_path: twice.csv").inputs) ==
        std::vector<float>{1, 2});
  CHECK(has(data_error([&] { test_set("path: twice.csv, test_path: t.csv"); }),
            "twice.csv has two columns 'a' and "));
}

TEST_CASE("csv: of a long header some characters are shown") {
  const Folder folder;
  folder.write("t.csv", std::string(100, 'n') + ",b,c,d,e\n1,2,3,4,5\n");
  CHECK(load("csv", "t.csv", Split::train, folder.path()).description ==
        "csv: 1 x [4] f32, targets [1] f32, from " + folder.file("t.csv") +
            "; its first line is the header: " + std::string(20, 'n') + ", b, c, d, ...");
}

TEST_CASE("csv: what is wrong") {
  const Folder folder;
  folder.write("t.csv", kText);
  folder.write("one.csv", "1\n2\n");
  const auto why = [&](const std::string& yaml, Split split = Split::train) {
    return data_error([&] { load("csv", yaml, split, folder.path()); });
  };
  CHECK(has(why("{path: t.csv, targets: [c]}"), "has no column 'c'; it has 3 columns: a, b, kind"));
  CHECK(has(why("{path: t.csv, targets: b, classes: 5}"), "sample 2 (counted from 0) is 6"));
  CHECK(has(why("one.csv"), "no columns but its targets"));
  CHECK(has(why("{path: t.csv, inputs: [a, kind], classes: 2}"),
            "column 'kind' of " + folder.file("t.csv") + " is the target and an input, too"));
  CHECK(has(why("t.csv", Split::test), "has no test split"));
  folder.write("half.csv", "1,0.5\n");
  CHECK(has(why("{path: half.csv, classes: 2}"), "is 0.5, but classes are whole numbers from 0"));
  CHECK(has(complaint_of(dataset_type("csv"), "{path: t, targets: [a, b], classes: 2}"),
            "must be one column"));
  CHECK(has(complaint_of(dataset_type("csv"), "{path: t, targets: []}"), "must name a column"));
}

TEST_CASE("csv: Python lines") {
  const Folder folder;
  folder.write("t.csv", kText);
  CHECK(torch_data_of("csv", "{path: t.csv, classes: 2}", Split::train, folder.path()) ==
        "table = np.loadtxt(\"" + folder.file("t.csv") +
            "\", delimiter=\",\", skiprows=1, ndmin=2, dtype=np.float64).astype(np.float32)\n"
            "x = torch.from_numpy(table[:, [0, 1]])\n"
            "y = torch.from_numpy(table[:, [2]])[:, 0].long()\n");
}

}  // namespace
}  // namespace dpt
