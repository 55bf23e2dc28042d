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

TEST_CASE("an exported program ends with epochs or steps, whichever is reached first") {
  const Folder folder;
  folder.write("t.yaml", R"(
data: {dataset: {random: {samples: 20, in_features: 5, out_features: 3}}, batch_size: 8}
model: [{linear: 3}]
loss: mse_loss
optimizer: sgd
schedule: {one_cycle: 0.1}
)");
  const auto has = [&](const std::string& epochs, const std::string& text) {
    const Finished shown = dptrain({"export", folder.file("t.yaml"), "steps=4", epochs});
    CHECK_MESSAGE(shown.code == 0, shown.err);
    return shown.out.find(text) != std::string::npos;
  };
  CHECK(has("epochs=5", "\nEPOCHS = 2\nSTEPS = 4\n"));
  CHECK(has("epochs=5", "total_steps=4"));
  CHECK(has("epochs=1", "\nEPOCHS = 1\nSTEPS = 3\n"));
  CHECK(has("epochs=1", "total_steps=3"));
}

}  // namespace dpt
