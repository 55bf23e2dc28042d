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
  CHECK(has(why("one.csv"), "no columns other than its targets"));
  CHECK(has(why("{path: t.csv, inputs: [a, kind], classes: 2}"),
            "column 'kind' of " + folder.file("t.csv") + " is both the target and an input"));
  CHECK(has(why("t.csv", Split::test), "has no test split"));
  folder.write("half.csv", "1,0.5\n");
  CHECK(has(why("{path: half.csv, classes: 2}"), "is 0.5, but classes are whole numbers from 0"));
  CHECK(has(complaint_of(dataset_type("csv"), "{path: t, targets: [a, b], classes: 2}"),
            "must be one column"));
  CHECK(has(complaint_of(dataset_type("csv"), "{path: t, targets: []}"), "must name a column"));
}

TEST_CASE("csv: words are classes where their names are given, other columns may hold texts") {
  const Folder folder;
  folder.write("t.csv", "a,note,kind\n1,x,red\n2,\"y, z\",blue\n3,,red\n");
  folder.write("test.csv", "kind,a,more\nblue,4,w\n");
  const std::string yaml =
      "{path: t.csv, test_path: test.csv, inputs: a, targets: kind, class_names: [blue, red]}";
  const Dataset d = load("csv", yaml, Split::train, folder.path());
  CHECK(d.classes == 2);
  CHECK(all_of<float>(d.inputs) == std::vector<float>{1, 2, 3});
  CHECK(all_of<int32_t>(d.targets) == std::vector<int32_t>{1, 0, 1});
  const Dataset test = load("csv", yaml, Split::test, folder.path());
  CHECK(all_of<float>(test.inputs) == std::vector<float>{4});
  CHECK(all_of<int32_t>(test.targets) == std::vector<int32_t>{0});
  CHECK(has(data_error([&] {
              load("csv", "{path: t.csv, inputs: a, targets: kind, class_names: [red]}",
                   Split::train, folder.path());
            }),
            "t.csv:3:10: 'blue' in column 'kind' is not one of the 1 class in `class_names`"));
  const auto wrong = [](const std::string& settings) {
    return complaint_of(dataset_type("csv"), settings);
  };
  CHECK(has(wrong("{path: t, class_names: [a, a]}"), "lists 'a' twice"));
  CHECK(has(wrong("{path: t, class_names: [a, b], classes: 3}"), "'class_names' lists 2 classes"));
  CHECK(torch_data_of("csv", yaml, Split::train, folder.path()) ==
        "table = np.loadtxt(\"" + folder.file("t.csv") +
            "\", delimiter=\",\", skiprows=1, ndmin=2, dtype=np.float64,\n"
            "                   usecols=[0, 2], quotechar='\"', encoding=\"utf-8\", "
            "converters={2: lambda word: [\"blue\", \"red\"].index(word.strip())}).astype("
            "np.float32)\n"
            "x = torch.from_numpy(table[:, :1])\n"
            "y = torch.from_numpy(table[:, 1:])[:, 0].long()\n");
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
