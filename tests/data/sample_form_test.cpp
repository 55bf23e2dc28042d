#include "data/sample_form.h"

#include <doctest/doctest.h>

#include "data/datasets/loading.h"

namespace dpt {
namespace {

std::string refusal(const std::string& text) {
  return data_error([&] { form_from_json(text, "data.json"); });
}

constexpr std::string_view kRemedy =
    "; remove the file, and dptrain reads the training data instead";

}  // namespace

TEST_CASE("the form of a table's samples is written and read") {
  const Folder folder;
  folder.write("t.csv", "a,b,kind\n1,2,x\n3,4,y\n");
  const SampleForm form = form_of(load("csv", "{path: t.csv, targets: kind, class_names: [x, y]}",
                                       Split::train, folder.path()));
  CHECK(form.stored == TensorDesc{DType::f32, {2}});
  CHECK(form.target == TensorDesc{DType::i32, {}});
  CHECK(form.columns.inputs == std::vector<size_t>{0, 1});
  CHECK(to_json(form) == R"({
  "sample": {"type": "f32", "shape": [2]},
  "target": {"type": "i32", "shape": []},
  "classes": 2,
  "class_names": ["x", "y"],
  "columns": {"names": ["a", "b", "kind"], "header": true, "inputs": [0, 1], "targets": [2]}
}
)");
  CHECK(form_from_json(to_json(form), "data.json") == form);
}

TEST_CASE("the form of a table has the categories and statistics of its columns") {
  const Folder folder;
  folder.write("t.csv", "a,kind,y\n1,x,0\n,z,1\n2,x,1\n");
  const SampleForm form = form_of(
      load("csv", "{path: t.csv, classes: 2, categories: kind, missing: mean, standardize: true}",
           Split::train, folder.path()));
  CHECK(form.stored == TensorDesc{DType::f32, {3}});
  CHECK_MESSAGE(has(to_json(form), R"({"fill": 1.5, "mean": 1.5, "std": 0.40)"), to_json(form));
  CHECK(has(to_json(form), R"({"categories": ["x", "z"], "fill": 0)"));
  CHECK(form_from_json(to_json(form), "data.json") == form);
}

TEST_CASE("a form keeps what the run was trained on") {
  SampleForm form;
  form.stored = {DType::f32, {2}};
  form.target = {DType::f32, {1}};
  form.trained_on = {{.training = {.samples = 600, .fingerprint = "0a"}, .split = "0b"},
                     {.training = {.samples = 603, .fingerprint = "0c"},
                      .validation = SetRecord{.samples = 50, .fingerprint = "0d"}}};
  CHECK(has(to_json(form), R"({"samples": 600, "fingerprint": "0a", "split": "0b"})"));
  CHECK(has(to_json(form), R"("validation": {"samples": 50, "fingerprint": "0d"})"));
  CHECK(form_from_json(to_json(form), "data.json") == form);
  SampleForm other = form;
  other.trained_on.clear();
  CHECK(same_fit(form, other));
  other.channels = {{.mean = 1, .std = 2}, {}};
  CHECK_FALSE(same_fit(form, other));
  CHECK(has(refusal(R"({"sample": {"type": "f32", "shape": [2]},
      "target": {"type": "f32", "shape": [1]}, "trained_on": [{"samples": "many"}]})"),
            "'samples' is missing or wrong"));
}

TEST_CASE("the form of an array has the scaling of its channels") {
  const SampleForm form{.stored = {DType::f32, {2}},
                        .target = {DType::f32, {1}},
                        .channels = {{.mean = 1700000000002, .std = 0.1}, {}}};
  CHECK(form_from_json(to_json(form), "t") == form);
  SampleForm wrong = form;
  wrong.channels.pop_back();
  CHECK(has(data_error([&] { form_from_json(to_json(wrong), "t"); }), "'channels' is missing or"));
}

TEST_CASE("the form of a text's samples has the character of each token") {
  const Folder folder;
  folder.write("t.txt", "b\xff\na" + std::string(20, 'a'));
  const SampleForm form =
      form_of(load("text", "{path: t.txt, sequence_length: 4}", Split::train, folder.path()));
  CHECK(form.characters == "\nab\xff");
  CHECK(has(to_json(form), R"("characters": [10, 97, 98, 255])"));
  CHECK(form_from_json(to_json(form), "data.json") == form);
}

TEST_CASE("damaged data.json is refused by the key that is wrong") {
  CHECK(refusal("{}") ==
        "data.json is damaged: 'sample' is missing or wrong" + std::string(kRemedy));
  CHECK(has(refusal("{"), "data.json is damaged: "));
  const std::string start = R"({"sample": {"type": "f32", "shape": [2]}, )";
  CHECK(has(refusal(start + "\"classes\": 2}"), "'target'"));
  const std::string whole = start + R"("target": {"type": "f32", "shape": [1]}, )";
  CHECK(refusal(whole + "\"classes\": 0}").empty());
  CHECK(has(refusal(whole + "\"classes\": -1}"), "'classes'"));
  CHECK(has(refusal(whole + "\"classes\": 2, \"class_names\": [\"a\"]}"), "'class_names'"));
  CHECK(has(refusal(whole + "\"tokens\": 2, \"characters\": [1, 256]}"), "'characters'"));
  CHECK(has(refusal(whole + R"("columns": {"names": ["a"], "inputs": [1]}})"), "'inputs'"));
  const std::string columns = whole + R"("columns": {"names": ["a"], "inputs": [0], )";
  CHECK(refusal(columns + R"("encodings": [{"mean": 1}]}})").empty());
  CHECK(has(refusal(columns + R"("encodings": []}})"), "'encodings'"));
  CHECK(has(refusal(columns + R"("encodings": [{"mean": "1"}]}})"), "'mean'"));
  CHECK(has(refusal(columns + R"("encodings": [{"std": 0}]}})"), "'std'"));
  CHECK(has(refusal(R"({"sample": {"type": "f16", "shape": [2]}})"), "'sample'"));
  CHECK(has(refusal(R"({"sample": {"type": "u8", "shape": [1, 1, 1, 1, 1, 1]}})"), "'sample'"));
  CHECK(has(refusal(R"({"sample": {"type": "u8", "shape": [-1]}})"), "'sample'"));
}

}  // namespace dpt
