// dptrain export: what is opened before a word is written.
#include <doctest/doctest.h>

#include "cli/process.h"

namespace dpt {

TEST_CASE("a smaller last batch does not stand in the way of an export") {
  const Folder folder;
  folder.write("t.yaml", R"(
data: {dataset: {random: {samples: 20, in_features: 5, out_features: 3}}, batch_size: 8}
model: [{linear: 3}]
loss: mse_loss
optimizer: sgd
)");
  const Finished shown = dptrain({"export", folder.file("t.yaml"), "--to", "torch"});
  CHECK_MESSAGE(shown.code == 0, shown.err);
}

}  // namespace dpt
