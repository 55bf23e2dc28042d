// dptrain export of trained weights.
#include <filesystem>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "cli/trained_table.h"
#include "data/readers/npy.h"
#include "data/tables.h"
#include "export/onnx_text.h"
#include "formats/safetensors.h"
#include "formats/torch_file.h"

namespace dpt {

namespace fs = std::filesystem;

TEST_CASE("outputs of predict are those of the weights, in every format") {
  const Folder folder;
  train(folder);
  folder.write("new.csv", table(7));
  const auto outputs = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"runs/t/1", "new.csv", "-o", "y.npy"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished f = predict(folder, words);
    CHECK_MESSAGE(f.code == 0, f.err);
    const Table y = read_npy(folder.file("y.npy"));
    CHECK(y.desc.shape == Shape{7, 2});
    return std::vector<float>(values_of<float>(y).begin(), values_of<float>(y).end());
  };
  const std::vector<float> want = outputs({});
  REQUIRE(dptrain({"export", "runs/t/1", "-o", "m.pt"}, {}, folder.path()).code == 0);
  CHECK(outputs({"--weights", "m.pt"}) == want);
  const SafeTensorsFile from(folder.file("runs/t/1/model.safetensors"));
  CHECK(TorchFile(folder.file("m.pt")).entries().size() == from.entries().size());
  // Training starts from such a file, too.
  const Finished f =
      dptrain({"t.yaml", "initial_weights=m.pt", "optimizer.lr=0", "epochs=1"}, {}, folder.path());
  CHECK_MESSAGE(f.code == 0, f.err);
  CHECK(read_file(folder.file("runs/t/2/model.safetensors")) ==
        read_file(folder.file("runs/t/1/model.safetensors")));
}

TEST_CASE("export chooses the format by the name of the file") {
  const Folder folder;
  train(folder);
  for (const auto& [output, what] : {std::pair("m.onnx", "an ONNX model with the trained weights"),
                                     {"M.ONNX", "an ONNX model with the trained weights"},
                                     {"m.pt", "a state_dict of the trained weights"},
                                     {"m.safetensors", "the trained weights"},
                                     {"m.py", "a PyTorch program, which draws initial weights"}}) {
    const Finished f = dptrain({"export", "t", "-o", output}, {}, folder.path());
    CHECK_MESSAGE(f.code == 0, f.err);
    CHECK_MESSAGE(has(f.err, fmt::format("wrote {}: {}\n", output, what)), f.err);
  }
  for (const char* output : {"m.h5", "m.onxx", "m"}) {
    const Finished f = dptrain({"export", "t", "-o", output}, {}, folder.path());
    CHECK(f.code == 2);
    CHECK_MESSAGE(has(f.err, fmt::format("export -o {}: ", output)), f.err);
    CHECK_MESSAGE(has(f.err, ".onnx, .pt, .pth and .safetensors for trained weights"), f.err);
    CHECK(!fs::exists(folder.file(output)));
  }
  CHECK(dptrain({"predict", "t", "train.csv", "--weights", "m.safetensors"}, {}, folder.path())
            .code == 0);
  CHECK(has(read_file(folder.file("m.onnx")), "0/Gemm"));
  const std::string facts = onnx_text(read_file(folder.file("m.onnx")));
  CHECK_MESSAGE(has(facts, R"(metadata names = {0: "down", 1: "up"})"), facts);
  CHECK(has(facts, R"(metadata input_columns = ["x", "y"])"));
  CHECK(has(facts, R"(metadata target_columns = ["kind"])"));
  CHECK(has(facts, "metadata data = " + read_file(folder.file("runs/t/1/data.json"))));
  CHECK(has(read_file(folder.file("m.py")), "nn.Linear(2, 8)"));
  const Finished named = dptrain({"export", "t", "--to", "onnx", "-o", "other"}, {}, folder.path());
  CHECK(named.code == 0);
  CHECK(read_file(folder.file("other")) == read_file(folder.file("m.onnx")));
  const Finished nowhere = dptrain({"export", "t", "--to", "pt"}, {}, folder.path());
  CHECK(nowhere.code == 2);
  CHECK(has(nowhere.err, "export --to pt writes a file: name it with -o FILE"));
  const Finished weights = dptrain({"export", "t", "--weights", "best"}, {}, folder.path());
  CHECK(weights.code == 2);
  CHECK(has(weights.err, "--weights is for --to onnx, pt and safetensors"));
  const Finished best =
      dptrain({"export", "t", "--weights", "best", "-o", "m.pt"}, {}, folder.path());
  CHECK(best.code == 4);
  CHECK(has(best.err, "best.safetensors does not exist: the run kept no best weights"));
}

}  // namespace dpt
