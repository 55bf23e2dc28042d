#include "spec/schema.h"

#include <doctest/doctest.h>

#include "words.h"

namespace dpt {
namespace {

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t i = text.find(what); i != text.npos; i = text.find(what, i + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("the JSON Schema is JSON, closed, and has every word and key") {
  const std::string schema = json_schema(test::words());
  // JSON is YAML, but for anchors' sakes: the strict reader checks keys, quotes and brackets.
  const SourceFile file{"schema.json", schema};
  Diagnostics d;
  const Node root = read_yaml(file, d);
  CHECK(d.render() == "");
  REQUIRE(root.find("properties"));
  CHECK(root.find("additionalProperties")->text == "false");
  for (const char* key : {"data", "model", "blocks", "loss", "optimizer", "schedule", "devices",
                          "extends", "reproducible", "evaluate", "log", "clip_grad_norm"})
    CHECK_MESSAGE(root.find("properties")->find(key), key);
  CHECK(!root.find("not"));  // `epochs` and `steps` may stand together
  CHECK(to_yaml(*root.find("properties")->find("seed")).find("\"null\"") != std::string::npos);
  for (const WordList& w : word_lists())
    REQUIRE_MESSAGE(root.find("definitions")->find(w.what), std::string(w.what));
  for (const char* text : {"\"linear\": {", "\"out_features\": {", "\"exclusiveMinimum\": 0",
                           "\"minimum\": 0", "\"maximum\": 1", "learning rate (default: 0.001)"})
    CHECK_MESSAGE(schema.find(text) != std::string::npos, text);
  // Every object with keys of the language is closed, but for a use of a block.
  const size_t open = count(schema, "\"propertyNames\"");
  CHECK(open == 1);
}

TEST_CASE("the reference page has each word and key with its default") {
  const std::string page = reference_page(test::words());
  CHECK(
      page.find(
          "| `out_features` | an integer, positive | required | size of each output sample |\n") !=
      std::string::npos);
  CHECK(page.find("| `p` | a number, between 0 and 1 | 0.5 | probability of a zero |\n") !=
        std::string::npos);
  CHECK(page.find("| `reduction` | mean, sum | mean | how terms become one number |\n") !=
        std::string::npos);
  for (const char* heading : {"## Top level", "### `data`", "### `residual`", "### `blocks`",
                              "## Layers", "### `relu`", "## Parallel modes", "### `ddp`"})
    CHECK_MESSAGE(page.find(std::string(heading) + "\n") != std::string::npos, heading);
}

TEST_CASE("one word is explained with its keys") {
  CHECK(explain(test::words(), "dropout") ==
        "layer 'dropout': Zeros at random.\n"
        "  p  probability of a zero (a number, between 0 and 1; default: 0.5)\n");
  CHECK(explain(test::words(), "relu") == "layer 'relu': max(x, 0).\n  takes no settings\n");
  CHECK(explain(test::words(), "data.limit") ==
        "key 'limit' of 'data': use the first so many samples; 0: all (an integer, not negative; "
        "default: 0)\n");
  // Keys of what a spec can name, with all to which they mean the same.
  const std::string lr = explain(test::words(), "lr");
  CHECK(lr.find("of optimizer 'sgd', 'adam', 'adam_w': learning rate (a number, not negative; "
                "default: 0.001)\n") != std::string::npos);
  CHECK(explain(test::words(), "optimizer.lr") == lr);
  CHECK(explain(test::words(), "momentum").starts_with("key 'momentum' of optimizer 'sgd': "));
  CHECK(explain(test::words(), "sgd.momentum") == explain(test::words(), "momentum"));
  CHECK(explain(test::words(), "data.dataset.samples").starts_with("key 'samples' of dataset"));
  CHECK(explain(test::words(), "schedule.momentum").empty());
  CHECK(nearest_word(test::words(), "momentun") == "momentum");
  // What a key can name.
  for (const auto& [key, choice] : {std::pair("optimizer", "  adam  "),
                                    {"dataset", "  synthetic_images  "},
                                    {"loss", "  cross_entropy  "},
                                    {"schedule", "  multi_step  "}}) {
    const std::string text = explain(test::words(), key);
    CHECK_MESSAGE(text.find(choice) != std::string::npos, text);
  }
  // A word with two meanings has both.
  CHECK(count(explain(test::words(), "batch_size"), "key 'batch_size'") == 2);
  CHECK(explain(test::words(), "repeat").find("an entry of 'model'") != std::string::npos);
  CHECK(explain(test::words(), "lineer").empty());
  CHECK(nearest_word(test::words(), "lineer") == "linear");
  CHECK(nearest_word(test::words(), "CrossEntropyLoss") == "cross_entropy");
  CHECK(nearest_word(test::words(), "btach_size") == "batch_size");
  CHECK(nearest_word(test::words(), "xylophone").empty());
}

}  // namespace dpt
