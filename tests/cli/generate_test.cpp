// dptrain generate.
#include <string>

#include "cli/trained_table.h"
#include "data/readers/npy.h"

namespace dpt {

TEST_CASE("generate continues a text, the same for the same seed") {
  const Folder folder;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "abcd";
  folder.write("t.txt", text);
  folder.write("g.yaml", R"(
data: {dataset: {text: {path: t.txt, sequence_length: 8}}, batch_size: 8}
model: [{embedding: {num_embeddings: 4, embedding_dim: 8}}, {linear: 4}]
loss: {cross_entropy: {class_dim: -1}}
optimizer: {adam: 0.05}
epochs: 20
cores: 1
)");
  REQUIRE(dptrain({"g.yaml"}, {}, folder.path()).code == 0);
  const auto generate = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"generate", "g"});
    return dptrain(words, {}, folder.path());
  };
  const Finished f = generate({"--prompt", "cd", "--tokens", "9", "--temperature", "0"});
  CHECK_MESSAGE(f.code == 0, f.err);
  CHECK(f.out == "cdabcdabcda\n");
  const std::string hot = generate({"--tokens", "60", "--temperature", "20", "--seed", "3"}).out;
  CHECK(hot.size() == 61);
  CHECK(generate({"--tokens", "60", "--temperature", "20", "--seed", "3"}).out == hot);
  CHECK(generate({"--tokens", "60", "--temperature", "20", "--seed", "4"}).out != hot);
  const Finished other = generate({"--prompt", "xyz"});
  CHECK(other.code == 2);
  CHECK(other.out.empty());
  CHECK(has(other.err, "the prompt has the byte 0x78 ('x')"));
  // predict needs a file for scores of every position.
  folder.write("t.npy", npy<int32_t>("<i4", "(8,)", {0, 1, 2, 3, 0, 1, 2, 3}));
  CHECK(has(predict(folder, {"g", "t.npy"}).err, "write its outputs to a file with -o FILE.npy"));
  CHECK(predict(folder, {"g", "t.npy", "-o", "y.npy"}).code == 0);
  CHECK(read_npy(folder.file("y.npy")).desc.shape == Shape{1, 8, 4});
}

}  // namespace dpt
