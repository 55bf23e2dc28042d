#include "spec/source.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/units.h"

namespace dpt {

TEST_CASE("a complaint has its place, its line and a caret") {
  const SourceFile file{"a.yaml", "one\ntwo three\nfour"};
  CHECK(file.line(2) == "two three");
  CHECK(file.line(4).empty());
  Diagnostics d;
  d.error({&file, 3, 1, 4}, "last");
  d.error({&file, 2, 5, 5}, "first");
  CHECK(d.render() ==
        "a.yaml:2:5: error: first\n    2 | two three\n      |     ^^^^^\n"
        "a.yaml:3:1: error: last\n    3 | four\n      | ^^^^\n");
}

TEST_CASE("the same complaint of one place comes once, and two hundred are enough") {
  const SourceFile file{"a.yaml", "x"};
  Diagnostics d;
  d.error({&file, 1, 1, 1}, "twice");
  d.error({&file, 1, 1, 1}, "twice");
  CHECK(d.render() == "a.yaml:1:1: error: twice\n    1 | x\n      | ^\n");
  for (int i = 0; i < 300; ++i) d.error({&file, 1, 2 + i, 1}, "more");
  CHECK(d.render().ends_with("... and 101 more errors\n"));
}

TEST_CASE("thousands of complaints are counted, not kept") {
  const SourceFile file{"a.yaml", "x"};
  Diagnostics d;
  for (int i = 0; i < 10000; ++i)
    d.unknown("key", {"word", {&file, 1, 1 + i, 1}}, "", {"known", "words"});
  CHECK(d.full());
  CHECK(d.count() == 10000);
  CHECK(d.render().ends_with("... and 9800 more errors\n"));
  Diagnostics long_one;
  long_one.error({&file, 1, 1, 1}, std::string(kMiB, 'a'));
  CHECK(long_one.render().size() < 5000);
  const std::vector<std::string> names(1000, std::string(100, 'n'));
  const std::vector<std::string_view> known(names.begin(), names.end());
  CHECK(suggestion("x", known).ends_with(" and 900 more"));
}

TEST_CASE("a file that is not shown is named, with the place") {
  SourceFile file{"shadow", "root:$6$secret:19000::"};
  file.shown = false;
  Diagnostics d;
  d.error({&file, 1, 5, 1}, "no map");
  CHECK(d.render() == "shadow:1:5: error: no map\n");
}

TEST_CASE("columns are code points, tabs are blanks, control codes never reach a terminal") {
  const SourceFile file{"a.yaml", "größe:\t\x1b[31m\xff"};
  Diagnostics d;
  d.error({&file, 1, 8, 2}, "a\nb\x1b");
  CHECK(d.render() == "a.yaml:1:8: error: a\\nb\\x1b\n    1 | größe: ?[31m?\n      |        ^^\n");
  CHECK(code_points("größe") == 5);
  CHECK(code_points("\xff\xfe") == 2);
}

TEST_CASE("a caret never runs past its line, also where the place is outside of it") {
  const SourceFile file{"a.yaml", "abc\ndef"};
  Diagnostics d;
  d.error({&file, 1, 2, 1000}, "long");
  d.error({&file, 2, 9, 1}, "behind");
  CHECK(d.render() ==
        "a.yaml:1:2: error: long\n    1 | abc\n      |  ^^\n"
        "a.yaml:2:9: error: behind\n    2 | def\n      |         ^\n");
}

TEST_CASE("a long line is cut around the caret") {
  const SourceFile file{"a.yaml", fmt::format("{:a>300}X{:b>300}", "", "")};
  Diagnostics d;
  d.error({&file, 1, 301, 1}, "here");
  const std::string text = d.render();
  const size_t line = text.find("| ...") + 2;
  const size_t caret = text.find("      | ", line) + 8;
  CHECK(text.find('X', line) - line == text.find('^', caret) - caret);
  CHECK(text.size() < 400);
}

TEST_CASE("words of PyTorch that are not needed have advice, and calls the way they are written") {
  CHECK(suggestion("in_features", {"out_features", "bias"}) ==
        "the input size is inferred, so delete this key");
  CHECK(suggestion("fsdp", {"dp", "ddp"}).find("`ddp: {shard: optimizer}`") != std::string::npos);
  for (const char* word : {"dropout1d", "nn.Dropout3d(0.2)", "Dropout1d"})
    CHECK(suggestion(word, {"dropout", "dropout2d"}) ==
          "use dropout2d, which sets whole channels of [N, C, ...] to zero, with 1 to 3 more "
          "dimensions");
  CHECK(suggestion("nn.Linear(784, 100)", {"linear"}) ==
        "write `linear: {...}`; `dptrain explain linear` lists its keys");
  for (const char* word :
       {"stratify", "StratifiedKFold(5)", "KFold", "GroupKFold", "TimeSeriesSplit",
        "validation_split", "shuffle_split", "train_test_split"}) {
    CAPTURE(word);
    CHECK(suggestion(word, {"dataset", "shuffle"}).find("\"Splits of your own\" in docs/data.md") !=
          std::string::npos);
  }
}

TEST_CASE("the nearest word: first without case and underscores, then by letters") {
  const std::vector<std::string_view> words = {"linear",        "relu",   "conv2d", "sgd",
                                               "cross_entropy", "adam_w", "step",   "max_pool2d"};
  CHECK(nearest("Linear", words) == "linear");
  CHECK(nearest("ReLU", words) == "relu");
  CHECK(nearest("CrossEntropyLoss", words) == "cross_entropy");
  CHECK(nearest("AdamW", words) == "adam_w");
  CHECK(nearest("StepLR", words) == "step");
  CHECK(nearest("GPU", {"auto", "cpu", "cuda"}) == "cuda");
  CHECK(nearest("MaxPool2d", words) == "max_pool2d");
  CHECK(nearest("sdg", words) == "sgd");
  CHECK(nearest("linaer", words) == "linear");
  CHECK(nearest("nn.Linear(784, 100)", words) == "linear");
  CHECK(nearest("torch.optim.SGD(p)", words) == "sgd");
  CHECK(nearest("cross", words) == "cross_entropy");
  CHECK(nearest("mse", {"mse_loss", "nll_loss"}) == "mse_loss");
  CHECK(nearest("cosine", {"constant", "cosine_annealing"}) == "cosine_annealing");
  CHECK(nearest("eval", {"epochs", "evaluate"}) == "evaluate");
  CHECK(nearest("learning_rate", {"lr", "eps"}) == "lr");
  CHECK(nearest("bfloat16", {"fp16", "bf16"}) == "bf16");
  CHECK(nearest("float16", {"fp16", "bf16"}) == "fp16");
  for (const auto& [word, other] : {std::pair("path", "pad"), {"fsdp", "dp"}, {"best", "text"}})
    CHECK(nearest(word, {other}).empty());
  CHECK(nearest("flowers", words).empty());
  CHECK(nearest("", words).empty());
  CHECK(nearest("x", {}).empty());
}

}  // namespace dpt
