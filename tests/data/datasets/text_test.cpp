#include "../peak_growth.h"
#include "base/units.h"
#include "loading.h"

namespace dpt {
namespace {

// The samples of a table, one after another.
std::vector<int32_t> windows(const Table& t) { return all_of<int32_t>(without_overlap(t)); }

TEST_CASE("text: tokens are bytes in their order, targets those that follow") {
  const Folder folder;
  folder.write("t.txt", "cab\nabcab");
  const auto of = [&](const std::string& more, Split split = Split::train) {
    return load("text", "{path: t.txt, sequence_length: 2" + more + "}", split, folder.path());
  };
  // \n a b c are 0 1 2 3; 8 of the 9 characters are trained on.
  const Dataset plain = of("");
  CHECK(plain.inputs.desc == TensorDesc{DType::i32, {3, 2}});
  CHECK(windows(plain.inputs) == std::vector<int32_t>{3, 1, 2, 0, 1, 2});
  CHECK(windows(plain.targets) == std::vector<int32_t>{1, 2, 0, 1, 2, 3});
  CHECK(plain.classes == 4);
  CHECK(plain.tokens == 4);
  CHECK(plain.description == "text: 3 x [2] i32, 4 classes, from " + folder.file("t.txt"));
  const Dataset every = of(", stride: 1, test_share: 0.5");
  CHECK(windows(every.inputs) == std::vector<int32_t>{3, 1, 1, 2});
  CHECK(windows(every.targets) == std::vector<int32_t>{1, 2, 2, 0});
  CHECK(windows(of(", stride: 5").inputs) == std::vector<int32_t>{3, 1, 2, 3});
  // The vocabulary is the whole file's, whatever the piece has; no character is evaluated twice.
  const Dataset test = of(", test_share: 0.6, stride: 1", Split::test);
  CHECK(windows(test.inputs) == std::vector<int32_t>{0, 1, 2, 3});
  CHECK(windows(test.targets) == std::vector<int32_t>{1, 2, 3, 1});
  CHECK(test.classes == 4);
}

TEST_CASE("text: every byte is a character") {
  const Folder folder;
  folder.write("t.txt", std::string("\xff\x00z\x00\xff", 5));
  const Dataset d =
      load("text", "{path: t.txt, sequence_length: 4, test_share: 0}", Split::train, folder.path());
  CHECK(windows(d.inputs) == std::vector<int32_t>{2, 0, 1, 0});
  CHECK(windows(d.targets) == std::vector<int32_t>{0, 1, 0, 2});
}

TEST_CASE("text: what is wrong") {
  const Folder folder;
  folder.write("t.txt", "hello world");
  folder.write("empty.txt", "");
  folder.write("t.gz", gzip("hello world"));
  const auto why = [&](const std::string& yaml, Split split = Split::train) {
    return data_error([&] { load("text", yaml, split, folder.path()); });
  };
  CHECK(why("none.txt").starts_with(folder.file("none.txt") + " cannot be opened"));
  CHECK(why("empty.txt") == folder.file("empty.txt") + " is empty, where a text was expected");
  CHECK(why("t.gz") == folder.file("t.gz") + " is compressed; unpack it with gunzip first");
  CHECK(why("{path: t.txt, sequence_length: 9}") ==
        folder.file("t.txt") +
            ": the part to train on has 9 characters, but sequence_length 9 and the character that "
            "follows take 10; write a smaller sequence_length, or another test_share");
  CHECK(has(why("{path: t.txt, sequence_length: 2}", Split::test),
            "the part to evaluate on has 2 characters"));
  CHECK(has(why("{path: t.txt, sequence_length: 2, test_share: 0}", Split::test),
            "has no test split: set test_share"));
  for (const char* const keys : {"sequence_length: 0", "stride: -1", "test_share: 1"})
    CHECK(
        has(complaint_of(dataset_type("text"), std::string("{path: t, ") + keys + "}"), "' must "));
}

TEST_CASE("text: a file over the limit is refused before it is read") {
  const Folder folder;
  std::filesystem::resize_file(folder.write("t.txt", ""), kGiB + 1);
  std::string why;
  CHECK(peak_growth([&] {
          why = data_error([&] { load("text", "t.txt", Split::train, folder.path()); });
        }) < kHostileBytes);
  CHECK(why == folder.file("t.txt") +
                   " has 1073741825 bytes; at most 1 GiB of text is read: train on a part of it");
}

TEST_CASE("text: a separate validation text has the tokens of the training text") {
  const Folder folder;
  folder.write("t.txt", "hello world");
  folder.write("v.txt", "low hero");
  folder.write("w.txt", "low Hero");
  const Dataset train =
      load("text", "{path: t.txt, sequence_length: 2}", Split::train, folder.path());
  const Dataset valid =
      load_validation("text", "{path: v.txt, sequence_length: 2}", train, folder.path());
  CHECK(valid.tokens == 8);
  // The characters are " dehlorw".
  CHECK(values_of<int32_t>(valid.inputs)[0] == 4);
  CHECK(values_of<int32_t>(valid.inputs)[1] == 5);
  CHECK(
      has(data_error([&] {
            load_validation("text", "{path: w.txt, sequence_length: 2}", train, folder.path());
          }),
          "w.txt: byte 0x48 at offset 4 does not occur in the text that the model is trained on"));
}

TEST_CASE("text: Python lines") {
  const Folder folder;
  folder.write("t.txt", "hello world");
  const std::string yaml = "{path: t.txt, sequence_length: 3, stride: 2, test_share: 0.5}";
  const std::string begin = "text = np.fromfile(\"" + folder.file("t.txt") +
                            "\", dtype=np.uint8)\n"
                            "tokens = torch.from_numpy(np.searchsorted(np.unique(text), text))";
  const auto end = [](const std::string& stride) {
    return "\nx = tokens[:-1].unfold(0, 3, " + stride + ")\ny = tokens[1:].unfold(0, 3, " + stride +
           ")\n";
  };
  CHECK(torch_data_of("text", yaml, Split::train, folder.path()) == begin + "[0:5]" + end("2"));
  CHECK(torch_data_of("text", yaml, Split::test, folder.path()) == begin + "[5:11]" + end("3"));
}

}  // namespace
}  // namespace dpt
