// Sizes that no computer holds, and counts whose products do not fit into 64 bits: each is refused
// with its place before anything is allocated.
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <malloc.h>

#include "base/fail.h"
#include "base/machine.h"
#include "base/units.h"
#include "data/folder.h"
#include "train/memory_estimate.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

// What `dptrain check` does: exit code and text.
struct Found {
  int code = 0;
  std::string text;
};

Found check_spec(const std::string& yaml, const std::vector<std::string>& overrides) {
  const Folder folder;
  folder.write("t.yaml", yaml);
  std::vector<std::unique_ptr<SourceFile>> files;
  Diagnostics d;
  Spec spec = load_spec(folder.file("t.yaml"), overrides, registries(), files, d, nullptr);
  try {
    const auto session = d.ok()
                             ? make_session(std::move(spec), {.runs = false, .sizes_only = true}, d)
                             : std::unique_ptr<const Session>();
    if (!session) return {2, d.render()};
    check_memory(*session);
  } catch (const Error& e) {
    return {static_cast<int>(e.fault()), e.report()};
  }
  return {};
}

const std::string kImages = R"(
data: {dataset: {synthetic_images: {samples: 8}}, transforms: [to_tensor], batch_size: 8}
model: [flatten, {linear: 10}]
loss: cross_entropy
optimizer: {sgd: 0.1}
cores: 1
)";

const std::string kTokens = R"(
data: {dataset: {synthetic_tokens: {samples: 8}}, batch_size: 8}
model: [{embedding: {num_embeddings: 1000, embedding_dim: 4}}, flatten, {linear: 1000}]
loss: cross_entropy
optimizer: {sgd: 0.1}
cores: 1
)";

const std::string kNumbers = R"(
data:
  dataset: {random: {samples: 8, in_features: 4, out_features: 2}}
  batch_size: 4
model: [{linear: 2}]
loss: mse_loss
optimizer: {sgd: 0.1}
cores: 1
)";

TEST_CASE("sizes of layers that no computer holds are refused with their place") {
  struct Case {
    const std::string* spec;
    std::string model, place;  // place: of the complaint
  };
  const std::string size = "must be between 1 and 2^31 - 1",
                    tensor = "this would create a tensor of shape";
  const Case cases[] = {
      {&kTokens, "[{embedding: {num_embeddings: 4611686018427387904, embedding_dim: 4}}]", size},
      {&kTokens, "[{embedding: {num_embeddings: 2147483647, embedding_dim: 2147483647}}]", tensor},
      {&kImages, "[{adaptive_avg_pool2d: 2147483648}, flatten, {linear: 10}]", size},
      {&kImages, "[{adaptive_avg_pool2d: 2147483647}, {adaptive_avg_pool2d: 1}, flatten]", tensor},
      {&kImages, "[{adaptive_avg_pool2d: 268435456}, flatten, {linear: 10}]", tensor},
      {&kImages, "[{conv2d: {out_channels: 288230376151711744, kernel_size: 2}}]", size},
      {&kImages, "[{conv2d: {out_channels: 2147483647, kernel_size: 28}}]", tensor},
      {&kImages, "[{conv2d: {out_channels: 1, kernel_size: 1, padding: 2147483647}}]", tensor},
      {&kImages, "[{conv_transpose2d: {out_channels: 1, kernel_size: 2, stride: 2147483647}}]",
       tensor},
      {&kImages, "[{max_pool2d: {kernel_size: 1, dilation: 4294967296}}]", size},
      {&kImages, "[{pad: 9223372036854775807}]", "must be between -2^31 and 2^31"},
      {&kImages, "[{pad: 1073741824}]", tensor},
      {&kImages, "[{upsample: {scale_factor: 1.0e300}}]",
       "makes more than 2^31 - 1 elements along the height H of [8, 1, 28, 28]"},
      {&kImages, "[{upsample: {size: 2147483647}}]", tensor},
      {&kImages, "[{upsample: 10000}, {adaptive_avg_pool2d: 1}, flatten, {linear: 10}]", ""},
      {&kNumbers, "[{linear: 9223372036854775807}]", size},
      {&kNumbers, "[{linear: 2147483647}, {linear: 2147483647}]", tensor},
  };
  for (const Case& c : cases) {
    CAPTURE(c.model);
    const Found found = check_spec(*c.spec, {"model=" + c.model});
    // Without a text: a larger machine could train it, so this one says that memory is short.
    CHECK(found.code == (c.place.empty() ? 5 : 2));
    CHECK(found.text.find(c.place) != std::string::npos);
    if (!c.place.empty()) CHECK(found.text.find("model=" + c.model + ":1:") != std::string::npos);
  }
}

TEST_CASE("sizes of data that no computer holds are refused before they are allocated") {
  struct Case {
    std::string override, text;
    int code;
  };
  const Case cases[] = {
      {"data.dataset.random.samples=9223372036854775807", "must be between 1 and 214748363", 2},
      {"data.dataset={random: {samples: 214748363, in_features: 2147483647}}", "memory", 5},
      {"data.dataset={random: {samples: 1000, in_features: 1000000000}}", "MiB are free", 5},
      {"data.dataset={synthetic_regression: {in_features: 2147483647, out_features: 2147483647}}",
       "memory", 5},
      {"data.dataset={synthetic_regression: 9223372036854775807}",
       "must be between 1 and 214748363", 2},
      {"data.dataset={synthetic_images: {samples: 2147483647, shape: [1024, 1024, 1024]}}",
       "must be between 1 and 214748363", 2},
      {"data.batch_size=9223372036854775807", "must be between 1 and 2^31", 2},
      {"data.batch_size=", "'data.batch_size' has no value", 2},
      {"clip_grad_norm={max_norm: }", "'max_norm' must be a number, not empty", 2},
      {"epochs=1152921504606846976", "1152921504606846976 epochs of 2 steps are too many", 2},
      {"epochs=9223372036854775807", "9223372036854775807 epochs of 2 steps are too many", 2},
      {"steps=2305843009213693952", "2305843009213693952 steps are too many", 2},
  };
  for (const Case& c : cases) {
    CAPTURE(c.override);
    const Found found = check_spec(kNumbers, {c.override});
    CHECK(found.code == c.code);
    CHECK_MESSAGE(found.text.find(c.text) != std::string::npos, found.text);
    if (c.code == 2) CHECK(found.text.find(c.override + ":1:") != std::string::npos);
  }
}

TEST_CASE("a made-up data set is sized without being generated") {
  for (const char* set : {"random: {samples: 1000, in_features: 65536}",
                          "synthetic_regression: {samples: 1000, in_features: 65536}",
                          "synthetic_tokens: {samples: 1000, length: 65536, targets: next}",
                          "synthetic_images: {samples: 100000000}"}) {
    CAPTURE(set);
    const Folder folder;
    folder.write("t.yaml", kNumbers);
    std::vector<std::unique_ptr<SourceFile>> files;
    Diagnostics d;
    const Registries words = registries();
    const Choice chosen =
        load_spec(folder.file("t.yaml"), {fmt::format("data.dataset={{{}}}", set)}, words, files, d)
            .data.dataset;
    REQUIRE_MESSAGE(d.ok(), d.render());
    mallopt(M_PERTURB, 0);  // meson has malloc fill what it gives, which would touch every page
    const size_t before = memory_use().own;
    const Dataset sized =
        static_cast<const DatasetType*>(chosen.what)->load(chosen.settings, {.sizes_only = true});
    CHECK(!sized.made);
    CHECK(sized.inputs.desc.bytes() > 100 * kMiB);
    CHECK(memory_use().own < before + 100 * kMiB);  // AddressSanitizer notes each eighth byte
  }
}

// oneDNN adds these up in 32 bits, and its own text reached the user.
TEST_CASE("convolutions with the largest strides, padding and dilation train") {
  for (const char* keys :
       {"kernel_size: 3, padding: 5, stride: 2147483647",
        "kernel_size: 1, padding: 1073741824, stride: 1073741824",
        "kernel_size: 2, padding: 1073741823, stride: 2147483647, dilation: 2147483000"}) {
    CAPTURE(keys);
    const std::string model =
        fmt::format("model=[{{conv2d: {{out_channels: 2, {}}}}}, flatten, {{linear: 10}}]", keys);
    const Ran ran = run_spec(kImages, {model, "steps=1"});
    CHECK_MESSAGE(ran.code == 0, ran.err);
  }
}

TEST_CASE("more pieces of a batch than a run may keep are refused") {
  const Found found =
      check_spec(kNumbers, {"data.dataset.random.samples=70000", "data.batch_size=65536",
                            "accumulate=65536", "reproducible=4096"});
  CHECK(found.code == 2);
  CHECK_MESSAGE(found.text.find("accumulate=65536:1:12: error: 65536 micro-batches for 4096 shards "
                                "are 268435456 pieces of a batch") != std::string::npos,
                found.text);
}

}  // namespace
}  // namespace dpt
