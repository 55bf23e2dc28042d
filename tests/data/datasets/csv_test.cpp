#include <cmath>

#include <fmt/format.h>

#include "../peak_growth.h"
#include "data/column_encoding.h"
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

TEST_CASE("csv: the numbers as read are freed while samples are made of them") {
  const Folder folder;
  constexpr size_t kRows = 4000, kColumns = 1000;
  std::string text;
  for (size_t i = 0; i < kRows * kColumns; ++i) {
    text += i / kColumns % 2 == 0 ? '0' : '1';
    text += (i + 1) % kColumns == 0 ? '\n' : ',';
  }
  folder.write("t.csv", text);
  const size_t grown = peak_growth(
      [&] { CHECK(load("csv", "t.csv", Split::train, folder.path()).size() == kRows); });
  // Both together are 3/2 of what is read; 1/8 is what an allocator holds back, and buffers.
  CHECK(grown < kSanitizerFactor * kRows * kColumns * sizeof(double) * 11 / 8);
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
            "t.csv has no column 'a.1'; it has 3 columns: a, b, kind"));
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
  CHECK(has(why("one.csv"), "has one column where fields end with ',', but"));
  CHECK(has(why("{path: t.csv, delimiter: ';'}"), "different columns; write `delimiter: ','`"));
  CHECK(has(why("{path: t.csv, targets: b, inputs: [a, b]}"), "is both the target and an input"));
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

// Three ports, ages with gaps, and a target of texts.
const std::string kPassengers =
    "id,name,sex,age,port,alive\n"
    "1,\"Braund, Mr. \"\"Owen\"\"\",male,20,S,no\n"
    "2,Cumings,female,,C,yes\n"
    "3,Heikkinen,female,40,S,yes\n"
    "4,Allen,male,60,,no\n";

TEST_CASE("csv: a name that several columns have is refused, and their numbers are taken") {
  const Folder folder;
  folder.write("t.csv", "a,b,a\n1,2,3\n4,5,6\n");
  folder.write("more.csv", "b,a,c,a\n1,2,3,4\n");
  folder.write("plain.csv", "a,b\n1,2\n");
  const auto of = [&](const std::string& yaml, Split split = Split::train) {
    return load("csv", yaml, split, folder.path());
  };
  for (const char* key : {"targets", "exclude"})
    CHECK(has(data_error([&] { of("{path: t.csv, " + std::string(key) + ": [a]}"); }),
              "t.csv has 2 columns 'a': 0, 2, counted from 0; give the number"));
  const Dataset d = of("{path: t.csv, test_path: more.csv, targets: 2, exclude: [0]}");
  CHECK(all_of<float>(d.inputs) == std::vector<float>{2, 5});
  CHECK(all_of<float>(d.targets) == std::vector<float>{3, 6});
  CHECK(all_of<float>(of("{path: t.csv, targets: a.1, inputs: b}").targets) ==
        std::vector<float>{3, 6});
  const Dataset test = of("{path: t.csv, test_path: more.csv, targets: b}", Split::test);
  CHECK(all_of<float>(test.inputs) == std::vector<float>{2, 4});
  CHECK(has(data_error([&] { of("{path: plain.csv, test_path: more.csv}", Split::test); }),
            "more.csv has 2 columns 'a': 1, 3, counted from 0, where the training file has one; "
            "rename the other column, or leave it out"));
}

TEST_CASE("csv: names that are numbers are not taken for numbers of columns") {
  const Folder folder;
  folder.write("t.csv", "0,1,target\n7,8,1\n9,7,0\n");
  folder.write("other.csv", "1,x,target\n7,8,1\n");
  folder.write("swapped.csv", "target,1,0\n1,8,7\n");
  const auto test = [&](const std::string& file) {
    return load("csv", "{path: t.csv, test_path: " + file + "}", Split::test, folder.path());
  };
  CHECK(has(data_error([&] { test("other.csv"); }), "other.csv has no column '0'"));
  CHECK(all_of<float>(test("swapped.csv").inputs) == std::vector<float>{7, 8});
}

TEST_CASE("csv: a header in doubt is told") {
  const Folder folder;
  folder.write("t.csv", "red,big\nblue,small\nred,small\n");
  const Dataset d =
      load("csv", "{path: t.csv, classes: auto, categories: auto}", Split::train, folder.path());
  CHECK(d.size() == 3);
  REQUIRE(d.warnings.size() == 1);
  CHECK(has(d.warnings[0], "line 1 of " + folder.file("t.csv") + " is taken for a sample"));
  CHECK(d.warnings[0].ends_with("; if it names the columns, write `header: yes`"));
}

TEST_CASE("csv: a stray text makes no categories of a column of numbers") {
  const Folder folder;
  std::string text = "x,y\n";
  for (int i = 0; i < 50; ++i) text += (i == 7 ? "oops" : std::to_string(i)) + ",1\n";
  folder.write("t.csv", text);
  CHECK(has(data_error([&] {
              load("csv", "{path: t.csv, categories: auto}", Split::train, folder.path());
            }),
            "column 'x' holds numbers in 49 of 50 lines, but 'oops' on line 9; correct these "
            "fields, write `decimal: ','`"));
  CHECK(
      load("csv", "{path: t.csv, categories: [x]}", Split::train, folder.path()).inputs.sample() ==
      Shape{50});
}

TEST_CASE("csv: labels of equal value are one class, and missing ones none") {
  const Folder folder;
  folder.write("t.csv", "x,y\n1,0\n2,0.0\n3,1\n4,1.0\n");
  const Dataset d = load("csv", "{path: t.csv, classes: auto}", Split::train, folder.path());
  CHECK(d.class_names == std::vector<std::string>{"0", "1"});
  CHECK(all_of<int32_t>(d.targets) == std::vector<int32_t>{0, 0, 1, 1});
  CHECK(all_of<int32_t>(
            load("csv", "{path: t.csv, class_names: [\"1\", \"0\"]}", Split::train, folder.path())
                .targets) == std::vector<int32_t>{1, 1, 0, 0});
  for (const char* word : {"", "NA", "N/A", "NaN", "null", "?", "None", "<NA>"}) {
    folder.write("na.csv", "x,y\n1,a\n2," + std::string(word) + "\n3,b\n");
    const std::string why = data_error(
        [&] { load("csv", "{path: na.csv, classes: auto}", Split::train, folder.path()); });
    CHECK_MESSAGE(has(why, "na.csv:3:3: "), why);
    CHECK_MESSAGE(has(why, "leave such lines out with `missing_targets: drop`"), why);
    for (const char* key : {"missing: drop", "missing_targets: drop"})
      CHECK(load("csv", fmt::format("{{path: na.csv, classes: auto, {}}}", key), Split::train,
                 folder.path())
                .class_names == std::vector<std::string>{"a", "b"});
  }
}

TEST_CASE("lines without a target are left out, and inputs get the mean") {
  const Folder folder;
  folder.write("t.csv", "x,kind,y\n1,a,2\n,b,3\n9,c,\n3,,4\n");
  for (const char* categories : {"auto", "kind"}) {
    const Dataset d = load("csv",
                           fmt::format("{{path: t.csv, categories: {}, missing: mean, "
                                       "missing_targets: drop}}",
                                       categories),
                           Split::train, folder.path());
    CHECK(all_of<float>(d.inputs) == std::vector<float>{1, 1, 0, 2, 0, 1, 3, 0, 0});
    CHECK(all_of<float>(d.targets) == std::vector<float>{2, 3, 4});
    CHECK(has(d.description, "1 line with missing values left out; 2 missing values filled"));
  }
  folder.write("n.csv", "x,y\n1,\n2,\n");
  CHECK(has(data_error([&] {
              load("csv", "{path: n.csv, missing_targets: drop}", Split::train, folder.path());
            }),
            "no line has a value in the target column"));
}

TEST_CASE("csv: numbers that lose digits in float32 are told, unless they are standardized") {
  const Folder folder;
  folder.write("t.csv", "ms,x,y\n1700000000123,5,1\n1700000000124,7,2\n1700000000129,6,3\n");
  const Dataset raw = load("csv", "t.csv", Split::train, folder.path());
  REQUIRE(raw.warnings.size() == 1);
  CHECK(has(raw.warnings[0], "column 'ms' of " + folder.file("t.csv") +
                                 " loses digits in float32: 1700000000123 becomes 1700000038912; "
                                 "write `standardize: true`"));
  CHECK(load("csv", "{path: t.csv, standardize: true}", Split::train, folder.path())
            .warnings.empty());
  CHECK(has(load("csv", "{path: t.csv, targets: ms}", Split::train, folder.path()).warnings.at(0),
            "subtract a number"));
}

TEST_CASE("csv: decimal commas") {
  const Folder folder;
  folder.write("t.csv", "a;b\n1,5;2\n2,5;3,25\n");
  const std::string yaml = "{path: t.csv, delimiter: ';', decimal: ','}";
  CHECK(all_of<float>(load("csv", yaml, Split::train, folder.path()).inputs) ==
        std::vector<float>{1.5, 2.5});
  CHECK(torch_data_of("csv", yaml, Split::train, folder.path()).empty());
  CHECK(has(complaint_of(dataset_type("csv"), "{path: t, decimal: ;}"), "decimal"));
  folder.write("t.csv", "a;b\n1.5;2\n");
  CHECK(has(data_error([&] { load("csv", yaml, Split::train, folder.path()); }),
            "'1.5' in column 'a' is not a finite number, as decimals have commas (`decimal: ','`); "
            "leave out `decimal` if the file has decimal points"));
}

TEST_CASE("csv: texts become classes and categories, missing values the mean") {
  const Folder folder;
  folder.write("t.csv", kPassengers);
  const Dataset d = load("csv",
                         "{path: t.csv, targets: alive, classes: auto, exclude: [id, name], "
                         "categories: auto, missing: mean}",
                         Split::train, folder.path());
  CHECK(d.class_names == std::vector<std::string>{"no", "yes"});
  CHECK(d.classes == 2);
  CHECK(all_of<int32_t>(d.targets) == std::vector<int32_t>{0, 1, 1, 0});
  // female, male, age, port C, port S
  CHECK(all_of<float>(d.inputs) == std::vector<float>{0, 1, 20, 0, 1,  //
                                                      1, 0, 40, 1, 0,  //
                                                      1, 0, 40, 0, 1,  //
                                                      0, 1, 60, 0, 0});
  CHECK(input_names(d.columns) ==
        std::vector<std::string>{"sex=female", "sex=male", "age", "port=C", "port=S"});
  CHECK(has(d.description, "; 2 missing values filled"));
}

TEST_CASE("csv: categories of equal value are one only in a column of numbers") {
  const Folder folder;
  folder.write("t.csv", "part,size,y\n1E3,1,0\n1000,1.0,1\nA7,2,0\n1E3,2,1\n");
  const Dataset d = load("csv", "{path: t.csv, classes: 2, categories: [part, size]}", Split::train,
                         folder.path());
  CHECK(input_names(d.columns) ==
        std::vector<std::string>{"part=1000", "part=1E3", "part=A7", "size=1", "size=2"});
  CHECK(all_of<float>(d.inputs) == std::vector<float>{0, 1, 0, 1, 0,  //
                                                      1, 0, 0, 1, 0,  //
                                                      0, 0, 1, 0, 1,  //
                                                      0, 1, 0, 0, 1});
}

TEST_CASE("csv: points that may separate thousands are a warning") {
  const Folder folder;
  const auto warnings = [&](const std::string& text) {
    folder.write("t.csv", text);
    return load("csv", "{path: t.csv, delimiter: \";\"}", Split::train, folder.path()).warnings;
  };
  const auto found = warnings("sales;y\n7.291;1\n950;2\n-19.435;3\n");
  REQUIRE(found.size() == 1);
  CHECK_MESSAGE(has(found[0],
                    "every number with a point in column 'sales' has three digits behind "
                    "it, such as 7.291"),
                found[0]);
  CHECK(warnings("sales;y\n7.291;1\n9.435;2\n").empty());  // three decimals
  CHECK(warnings("sales;y\n7.291;1\n9.43;2\n5.123;2\n1;1\n").empty());
  CHECK(warnings("sales;y\n7.291;1\n9.435;2\n1500;1\n").empty());
  CHECK(warnings("sales;y\n0.291;1\n0.435;2\n1;1\n").empty());
}

TEST_CASE("csv: percentages and amounts are refused with what they look like") {
  const Folder folder;
  folder.write("t.csv", "rate,y\n5%,0\n7%,1\n5%,0\n");
  const auto why = [&](const std::string& yaml) {
    return data_error([&] { load("csv", yaml, Split::train, folder.path()); });
  };
  CHECK(has(why("{path: t.csv, classes: 2}"),
            "t.csv:2:1: '5%' in column 'rate': percentages are not read; write plain numbers: "
            "5"));
  const std::string found = why("{path: t.csv, classes: 2, categories: auto}");
  CHECK_MESSAGE(has(found, "column 'rate' holds percentages: '5%' on line 2"), found);
  CHECK_MESSAGE(has(found, "list the column in `categories` if they are texts"), found);
}

TEST_CASE("csv: lines with missing values can be dropped, of used columns only") {
  const Folder folder;
  folder.write("t.csv", kPassengers);
  const Dataset d = load("csv",
                         "{path: t.csv, targets: alive, classes: auto, inputs: [age, sex], "
                         "categories: sex, missing: drop}",
                         Split::train, folder.path());
  CHECK(all_of<float>(d.inputs) == std::vector<float>{20, 0, 1, 40, 1, 0, 60, 0, 1});
  CHECK(has(d.description, "; 1 line with missing values left out"));
}

TEST_CASE("csv: lines that are dropped make no categories") {
  const Folder folder;
  folder.write("t.csv", "a,b,y\n1,2,3\n2,3,4\n3,4,5\n4,5,6\n5,6,7\nTotal,20,\n");
  const Dataset d =
      load("csv", "{path: t.csv, categories: auto, missing: drop}", Split::train, folder.path());
  CHECK(d.size() == 5);
  CHECK(d.columns.encodings.empty());
}

TEST_CASE("csv: statistics and categories are those of the samples that are trained on") {
  const Folder folder;
  folder.write("t.csv", "x,same,c,y\n1,7,a,0\n3,7,b,0\n,7,a,0\n100,9,z,0\n");
  folder.write("test.csv", "c,y,x,same\nz,1,6,7\nb,1,NA,8\n");
  const DatasetType& type = dataset_type("csv");
  const std::any settings = settings_of(
      type, "{path: t.csv, test_path: test.csv, categories: [c], missing: mean, standardize: true}",
      folder.path());
  const LoadQuery first_three{.trained = [](int64_t samples) {
    CHECK(samples == 4);
    return std::vector<uint32_t>{2, 0, 1};
  }};
  const Dataset d = type.load(settings, first_three);
  // The mean of 1 and 3 is 2; with the filled 2, the standard deviation is sqrt(2 / 3).
  const float s = std::sqrt(2.0F / 3);
  const auto close = [](const Table& t, const std::vector<float>& expected) {
    const std::vector<float> got = all_of<float>(t);
    REQUIRE(got.size() == expected.size());
    for (size_t i = 0; i < got.size(); ++i)  // two roundings of float32
      CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-6));
  };
  close(d.inputs, {-1 / s, 0, 1, 0, 1 / s, 0, 0, 1, 0, 0, 1, 0, 98 / s, 2, 0, 0});
  CHECK(has(d.description, "1 field of no category that the training set has, first 'z' in 'c'"));
  const Dataset test = type.load(settings, {.split = Split::test, .training_set = &d});
  close(test.inputs, {4 / s, 0, 0, 0, 0, 1, 0, 1});
  // Alone, the test set is read by the whole training file, which has the category z.
  CHECK(type.load(settings, {.split = Split::test}).inputs.sample() == Shape{5});
}

TEST_CASE("csv: classes of the test set are those of the training set") {
  const Folder folder;
  folder.write("t.csv", "x,y\n1,10\n2,9\n3,10\n");
  folder.write("test.csv", "x,y\n4,10\n");
  folder.write("new.csv", "x,y\n4,11\n");
  const auto of = [&](const std::string& test) {
    return load("csv", "{path: t.csv, test_path: " + test + ", classes: auto}", Split::test,
                folder.path());
  };
  CHECK(of("test.csv").class_names == std::vector<std::string>{"9", "10"});
  CHECK(all_of<int32_t>(of("test.csv").targets) == std::vector<int32_t>{1});
  CHECK(has(data_error([&] { of("new.csv"); }),
            "new.csv:2:3: '11' in column 'y' is not one of the 2 classes that the model is trained "
            "with"));
}

TEST_CASE("csv: texts are refused where the training set's classes are numbered") {
  const Folder folder;
  folder.write("t.csv", "a,y\n1,0\n2,1\n");
  folder.write("u.csv", "a,y\n3,True\n");
  const Dataset training = load("csv", "{path: t.csv, classes: 2}", Split::train, folder.path());
  for (const char* classes : {"2", "auto"})
    CHECK(has(data_error([&] {
                load_validation("csv", fmt::format("{{path: u.csv, classes: {}}}", classes),
                                training, folder.path());
              }),
              "u.csv:2:3: 'True' in column 'y' is not a number, but the 2 classes of the training "
              "set are numbered: write a number from 0 to 1"));
}

TEST_CASE("csv: what is wrong with texts and missing values") {
  const Folder folder;
  folder.write("t.csv", kPassengers);
  folder.write("empty.csv", "a,b,y\n1,,2\n2,,3\n");
  const auto why = [&](const std::string& yaml) {
    return data_error([&] { load("csv", yaml, Split::train, folder.path()); });
  };
  CHECK(
      has(why("{path: t.csv, inputs: age, missing: mean}"),
          "t.csv:2:36: 'no' in column 'alive' is not a number; for classes that are named by texts "
          "write `classes: auto`"));
  CHECK(
      has(why("{path: t.csv, inputs: [sex], classes: auto}"),
          "t.csv:2:26: 'male' in column 'sex' is not a number; correct it, list a column of texts "
          "in `categories`"));
  CHECK(
      has(why("{path: t.csv, inputs: [sex], classes: auto, categories: [port]}"),
          "column 'port' of " + folder.file("t.csv") + " is in `categories`, but it is no input"));
  CHECK(has(why("{path: t.csv, exclude: [id, name, sex, age, port], classes: auto}"),
            "no columns other than its targets and those in `exclude`"));
  CHECK(has(why("{path: empty.csv, missing: mean}"),
            "column 'b' has no value in the lines that are trained on; leave it out"));
  const auto wrong = [](const std::string& settings) {
    return complaint_of(dataset_type("csv"), settings);
  };
  CHECK(has(wrong("{path: t, classes: auto, class_names: [a, b]}"), "leave out 'classes' or"));
  CHECK(has(wrong("{path: t, classes: some}"), "'classes' must be an integer, not 'some'"));
  CHECK(has(wrong("{path: t, inputs: [a], exclude: [b]}"), "leave 'exclude' out"));
  CHECK(has(wrong("{path: t, targets: [a, b], classes: auto}"), "must be one column"));
}

TEST_CASE("csv: a program for PyTorch has arrays of what statistics decide") {
  const Folder folder;
  folder.write("t.csv", kText);
  CHECK(torch_data_of("csv", "{path: t.csv, classes: 2, standardize: true}", Split::train,
                      folder.path())
            .empty());
}

TEST_CASE("csv: labels of 0 and 1 may be written True and False, or yes and no") {
  const Folder folder;
  folder.write("t.csv", "x,tea,mate\n1,True,no\n2,FALSE,Yes\n3,1,0\n");
  const DatasetType& type = dataset_type("csv");
  const auto of = [&](bool binary, const std::string& more = "") {
    return type.load(
        settings_of(type, "{path: t.csv, targets: [tea, mate]" + more + "}", folder.path()),
        {.folder = folder.path(), .binary_labels = binary});
  };
  CHECK(all_of<float>(of(true).targets) == std::vector<float>{1, 0, 0, 1, 1, 0});
  CHECK(type.torch(settings_of(type, "{path: t.csv, targets: [tea, mate]}", folder.path()),
                   {.folder = folder.path(), .binary_labels = true})
            .empty());
  CHECK(has(error_of(Fault::data, [&] { of(false); }), "'True' in column 'tea' is not a number"));
  folder.write("t.csv", "x,tea,mate\n1,True,maybe\n");
  CHECK(has(error_of(Fault::data, [&] { of(true); }),
            "'maybe' in column 'mate' is not a number; labels are 0 and 1, True and False, or yes "
            "and no"));
  // The words of inputs are texts, and those of classes are their names.
  folder.write("t.csv", "x,tea\nyes,True\nno,False\n");
  CHECK(has(error_of(Fault::data,
                     [&] {
                       type.load(settings_of(type, "t.csv", folder.path()),
                                 {.folder = folder.path(), .binary_labels = true});
                     }),
            "'yes' in column 'x' is not a number"));
  const Dataset classes =
      type.load(settings_of(type, "{path: t.csv, inputs: [x], categories: [x], classes: auto}",
                            folder.path()),
                {.folder = folder.path(), .binary_labels = true});
  CHECK(classes.class_names == std::vector<std::string>{"False", "True"});
}

TEST_CASE("csv: Excel's first line sep=; is skipped, or names the key") {
  const Folder folder;
  folder.write("t.csv", "sep=;\nx;y\n1;2\n3;4\n");
  const std::string right = "{path: t.csv, delimiter: ';'}";
  CHECK(all_of<float>(load("csv", right, Split::train, folder.path()).targets) ==
        std::vector<float>{2, 4});
  CHECK(torch_data_of("csv", right, Split::train, folder.path()).empty());
  CHECK(has(error_of(Fault::data, [&] { load("csv", "t.csv", Split::train, folder.path()); }),
            "the line `sep=;` says that ';' stands between two fields; write `delimiter: \";\"`, "
            "or save the file with ','"));
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

TEST_CASE("csv: columns of a separate validation set are found by the names of the training set") {
  const Folder folder;
  folder.write("t.csv", "a,b,y\n1,10,0\n2,20,1\n3,30,0\n");
  folder.write("v.csv", "b,note,y,a\n40,x,1,4\n");
  folder.write("w.csv", "b,zzz,y\n40,4,1\n");
  const std::string keys = ", targets: y, classes: 2}";
  const Dataset train = load("csv", "{path: t.csv" + keys, Split::train, folder.path());
  const Dataset valid = load_validation("csv", "{path: v.csv" + keys, train, folder.path());
  CHECK(all_of<float>(valid.inputs) == std::vector<float>{4, 40});
  CHECK(all_of<int32_t>(valid.targets) == std::vector<int32_t>{1});
  CHECK(
      has(data_error([&] { load_validation("csv", "{path: w.csv" + keys, train, folder.path()); }),
          "w.csv has no column 'a'"));
}

}  // namespace
TEST_CASE("csv: classes of a separate validation set are those of the training set") {
  const Folder folder;
  folder.write("t.csv", "x,y\n1,low\n2,high\n3,mid\n");
  folder.write("v.csv", "x,y\n4,mid\n5,low\n");
  const Dataset train =
      load("csv", "{path: t.csv, targets: y, classes: auto}", Split::train, folder.path());
  CHECK(train.class_names == std::vector<std::string>{"high", "low", "mid"});
  const auto validation = [&](const std::string& keys, const Dataset& training) {
    return load_validation("csv", "{path: v.csv, targets: y" + keys + "}", training, folder.path());
  };
  for (const std::string keys : {"", ", classes: auto", ", class_names: [high, low, mid]"}) {
    const Dataset d = validation(keys, train);
    CHECK(all_of<int32_t>(d.targets) == std::vector<int32_t>{2, 1});
    CHECK(d.class_names == train.class_names);
  }
  CHECK(has(data_error([&] { validation(", class_names: [low, mid, high]", train); }),
            "v.csv: `class_names` lists low, mid, high, but the model is trained with the classes "
            "high, low, mid; leave `class_names` out"));
  // Numbers are classes by their value, whichever of them occur.
  folder.write("t.csv", "x,y\n1,0\n2,2\n3,1\n");
  folder.write("v.csv", "x,y\n4,1\n5,2\n");
  const Dataset numbered =
      load("csv", "{path: t.csv, targets: y, classes: 3}", Split::train, folder.path());
  const Dataset d = validation(", classes: auto", numbered);
  CHECK(all_of<int32_t>(d.targets) == std::vector<int32_t>{1, 2});
  CHECK(d.classes == 3);
}

TEST_CASE("csv: missing values of a separate validation set are filled as in training") {
  const Folder folder;
  folder.write("t.csv", "x,y\n1,0\n,2\n3,1\n");
  folder.write("v.csv", "x,y\n,1\n5,2\n");
  const Dataset train =
      load("csv", "{path: t.csv, targets: y, missing: mean}", Split::train, folder.path());
  CHECK(all_of<float>(
            load_validation("csv", "{path: v.csv, targets: y}", train, folder.path()).inputs) ==
        std::vector<float>{2, 5});
  folder.write("w.csv", "x,y\n1,0\n3,1\n");
  const Dataset whole = load("csv", "{path: w.csv, targets: y}", Split::train, folder.path());
  CHECK(has(data_error([&] {
              load_validation("csv", "{path: v.csv, targets: y, missing: mean}", whole,
                              folder.path());
            }),
            "is empty on this line"));
}

}  // namespace dpt
