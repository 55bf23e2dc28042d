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

TEST_CASE("explain names what a word of PyTorch is here") {
  const Finished loader = dptrain({"explain", "DataLoader"});
  CHECK(loader.code == 0);
  CHECK(has(loader.out, "DataLoader of PyTorch: its arguments are keys of `data`: "));
  CHECK(has(loader.out, "\nkey 'data.shuffle': "));
  CHECK(has(dptrain({"explain", "torch.nn.CrossEntropyLoss"}).out, "loss 'cross_entropy': "));
  CHECK(has(dptrain({"explain", "LSTM"}).out, "recurrent layers are not available"));
  const Finished unknown = dptrain({"explain", "flowers"});
  CHECK(unknown.code == 2);
  CHECK(has(unknown.err, "the spec language has no 'flowers'"));
}

}  // namespace
}  // namespace dpt
