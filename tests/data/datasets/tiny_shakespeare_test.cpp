#include "loading.h"

namespace dpt {
namespace {

// As many bytes as Tiny Shakespeare has, of 65 kinds.
std::string of_its_size() {
  std::string text(1115394, ' ');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('0' + i % 65);
  return text;
}

TEST_CASE("tiny_shakespeare: both splits of input.txt") {
  const Folder folder;
  folder.write("input.txt", of_its_size());
  const Dataset train = load("tiny_shakespeare", folder.path());
  CHECK(train.description ==
        "tiny_shakespeare: 15685 x [64] i32, 65 classes, from " + folder.file("input.txt"));
  CHECK(train.tokens == 65);
  const Dataset test =
      load("tiny_shakespeare", "{path: " + folder.path() + ", sequence_length: 100}", Split::test);
  CHECK(test.inputs.desc == TensorDesc{DType::i32, {1115, 100}});
  CHECK(values_of<int32_t>(test.inputs)[0] == 1003854 % 65);
  CHECK(has(torch_data_of("tiny_shakespeare", folder.path(), Split::test), "[1003854:1115394]\n"));
}

TEST_CASE("tiny_shakespeare: another file is refused") {
  const Folder folder;
  folder.write("input.txt", "<html>404 not found</html>\n");
  const std::string why = data_error([&] { load("tiny_shakespeare", folder.path()); });
  CHECK(has(why, "input.txt is not Tiny Shakespeare: it has 27 bytes, where 1115394"));
  CHECK(has(why, "`dataset: {text: {path: FILE}}`"));
  const Folder none;
  CHECK(has(data_error([&] { load("tiny_shakespeare", none.path()); }),
            "tools/fetch_data.sh tiny_shakespeare"));
}

TEST_CASE("tiny_shakespeare: a made-up set of the same shapes") {
  const DatasetType& type = dataset_type("tiny_shakespeare");
  CHECK(type.stand_in(settings_of(type, "{sequence_length: 9}", "")) ==
        "{synthetic_tokens: {length: 9, vocabulary: 65, targets: next}}");
}

}  // namespace
}  // namespace dpt
