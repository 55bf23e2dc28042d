// dptrain plan SPEC --fit SIZE.
#include <string>

#include <doctest/doctest.h>

#include "cli/process.h"
#include "data/folder.h"
#include "golden_text.h"

namespace dpt {
namespace {

constexpr const char* kSpec = R"(
data:
  dataset: {synthetic_images: {samples: 3000, shape: [1, 8, 8]}}
  transforms: [to_tensor]
  batch_size: auto
model: [flatten, {linear: 64}, relu, {linear: 10}]
loss: cross_entropy
optimizer: {sgd: 0.1}
parallel: {ddp: 3}
cores: 1
accumulate: 2
clip_grad_norm: 1
memory_limit: 0.001
)";

TEST_CASE("plan --fit prints the largest batch, and says why") {
  const Folder folder;
  const std::string spec = folder.write("t.yaml", kSpec);
  const Finished fits = dptrain({"plan", spec, "--fit", "256KiB"});
  CHECK_MESSAGE(fits.code == 0, fits.err);
  const long batch = std::stol(fits.out);
  CHECK(fits.out == std::to_string(batch) + "\n");
  CHECK(batch > 0);
  CHECK(batch % 6 == 0);
  CHECK(has(fits.err, "data.batch_size: " + std::to_string(batch) +
                          " is the largest that fits into 256.00 KiB per device, " +
                          std::to_string(batch / 3) + " per replica: a device needs 25"));
  CHECK(has(fits.err, " KiB; with " + std::to_string(batch + 6) + " a device would need 25"));
  CHECK(dptrain({"plan", spec, "--fit", "262144"}).out == fits.out);

  const Finished all = dptrain({"plan", spec, "--fit", "8GiB"});
  CHECK(all.out == "3000\n");
  CHECK(has(all.err, "; this is the whole training set\n"));
}

TEST_CASE("plan --fit: sizes that nothing fits, or that are none") {
  const Folder folder;
  const std::string spec = folder.write("t.yaml", kSpec);
  const Finished none = dptrain({"plan", spec, "--fit", "1K"});
  CHECK(none.code == 5);
  CHECK(none.out.empty());
  CHECK(has(none.err, "dptrain: a batch of 6 samples does not fit: a device needs "));
  CHECK(has(none.err, " KiB, but --fit gives it 1.00 KiB; put layers on more devices"));
  const Finished wrong = dptrain({"plan", spec, "--fit", "8GB"});
  CHECK(wrong.code == 2);
  CHECK(has(wrong.err, "--fit: '8GB' is not a size; write a number of bytes, or 512MiB, 8GiB\n"));
  const Finished shapes = dptrain({"plan", spec, "--fit", "8GiB", "model=[{linear: 3}]"});
  CHECK(shapes.code == 2);
  CHECK(has(shapes.err, "error: "));
}

}  // namespace
}  // namespace dpt
