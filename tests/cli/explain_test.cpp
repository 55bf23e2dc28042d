// `dptrain explain` and words of PyTorch.
#include <string>

#include <doctest/doctest.h>

#include "base/files.h"
#include "base/units.h"
#include "cli/process.h"
#include "paths.h"
#include "session/session.h"
#include "spec/schema.h"

namespace dpt {
namespace {

TEST_CASE("explain knows every word of PyTorch in docs/from-pytorch.md") {
  const Registries all = registries();
  const std::string page = read_file(source_file("docs/from-pytorch.md"), kMiB);
  int words = 0;
  for (size_t row = page.find("\n| "); row != std::string::npos; row = page.find("\n| ", row + 1)) {
    const std::string cell = page.substr(row + 3, page.find(" | ", row + 3) - row - 3);
    for (size_t at = cell.find('`'); at != std::string::npos; at = cell.find('`', at + 1)) {
      const size_t end = cell.find('`', at + 1);
      const std::string word = cell.substr(at + 1, end - at - 1);
      at = end;
      if (word.find_first_of(" (+*") != std::string::npos) continue;  // an expression
      CAPTURE(word);
      CHECK_FALSE(explain(all, word).empty());
      ++words;
    }
  }
  CHECK(words > 40);
}

TEST_CASE("explain knows the metrics, in any capitals and of one label") {
  for (const char* word : {"auc", "AUC", "auc.cat"})
    CHECK(has(dptrain({"explain", word}).out, "metric 'auc': area under the ROC curve"));
  for (const char* word : {"accuracy", "f1", "F1", "recall", "top5", "top3", "confusion_matrix",
                           "perplexity", "mae", "mse", "rmse", "mape", "r2"})
    CHECK_MESSAGE(has(dptrain({"explain", word}).out, "metric '"), word);
  const std::string precision = dptrain({"explain", "precision"}).out;  // a key, too
  CHECK(has(precision, "metric 'precision'"));
  CHECK(has(precision, "bf16"));
}

TEST_CASE("explain csv lists all words that stand for a missing value") {
  const std::string text = dptrain({"explain", "csv"}).out;
  for (const char* word :
       {"#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
        "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null", "?"})
    CHECK_MESSAGE(has(text, word), word);
}

TEST_CASE("explain names what a word of PyTorch is here") {
  const Finished loader = dptrain({"explain", "DataLoader"});
  CHECK(loader.code == 0);
  CHECK(has(loader.out, "DataLoader of PyTorch: its arguments are keys of `data`: "));
  CHECK(has(loader.out, "\nkey 'data.shuffle': "));
  CHECK(has(dptrain({"explain", "torch.nn.CrossEntropyLoss"}).out, "loss 'cross_entropy': "));
  CHECK(has(dptrain({"explain", "LSTM"}).out, "recurrent layers are not available"));
  CHECK(has(dptrain({"explain", "nn.Unflatten"}).out, "use reshape"));
  CHECK(has(dptrain({"explain", "persistent_workers"}).out, "delete this key"));
  const std::string rates = dptrain({"explain", "ConstantLR"}).out;
  CHECK(has(rates, "schedule 'constant_lr': "));
  CHECK_FALSE(has(rates, "'constant'"));
  const Finished unknown = dptrain({"explain", "flowers"});
  CHECK(unknown.code == 2);
  CHECK(has(unknown.err, "the spec language has no 'flowers'"));
}

}  // namespace
}  // namespace dpt
