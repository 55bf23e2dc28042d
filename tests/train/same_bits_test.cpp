// The central promise: which samples stand in which shard decides a run's bits, and nothing else
// does.
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "backend/cpu/bf16_products.h"
#include "data/folder.h"
#include "data/readers/image.h"
#include "formats/safetensors.h"
#include "paths.h"
#include "skip.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

std::string spec(const std::string& more = "") {
  return R"(
data:
  dataset: {synthetic_images: {samples: 203, test_samples: 57, shape: [1, 6, 6]}}
  transforms: [to_tensor]
  batch_size: 32
model:
  - flatten
  - linear: 19
  - layer_norm
  - gelu
  - dropout: 0.3
  - linear: 10
loss: cross_entropy
optimizer: {adam: 0.01}
epochs: 3
log: {every: 1}
evaluate: true
)" + more;
}

TEST_CASE(
    "reproducible shards: single, dp and ddp with any number of workers end in the same bits") {
  const std::string text = spec("reproducible: {shards: 8}\n");
  const Ran one = run_spec(text, {"cores=1"});
  CHECK(one.step_losses().size() == 21);  // 203 in batches of 32: seven steps an epoch
  for (const std::vector<std::string>& how :
       std::vector<std::vector<std::string>>{{"cores=2"},
                                             {"cores=3"},
                                             {"parallel=dp", "devices=2", "cores=1"},
                                             {"parallel=dp", "devices=4", "cores=2"},
                                             {"parallel={dp: {loss: distributed}}", "devices=3"},
                                             {"parallel={dp: {output_device: 1}}", "devices=2"},
                                             {"parallel=ddp", "devices=1", "cores=1"},
                                             {"parallel=ddp", "devices=2", "cores=1"},
                                             {"parallel=ddp", "devices=4", "cores=1"},
                                             {"parallel=ddp", "devices=8", "cores=1"}}) {
    if (!kCanFork && how[0] == "parallel=ddp") continue;
    CAPTURE(how[0]);
    CAPTURE(how.back());
    same(one, run_spec(text, how));
  }
}

TEST_CASE("mixed precision, with scales and skipped steps, has the same bits in every mode") {
  for (const char* precision :
       {"{bf16: {emulate: true}}", "{bf16: {emulate: true, level: o3}}",
        "{fp16: {emulate: true, init_scale: 1073741824, growth_interval: 5}}"}) {
    CAPTURE(precision);
    const std::string text =
        spec(fmt::format("reproducible: {{shards: 8}}\nprecision: {}\n", precision));
    const Ran one = run_spec(text, {"cores=1"});
    if (std::string_view(precision).find("fp16") != std::string_view::npos)
      CHECK(one.metrics.find("\"skipped\": true") != std::string::npos);
    same(one, run_spec(text, {"cores=3"}));
    same(one, run_spec(text, {"parallel=dp", "devices=4", "cores=1"}));
    if (kCanFork) same(one, run_spec(text, {"parallel=ddp", "devices=2", "cores=1"}));
  }
}

// Layers are wide and shards have many samples, so that products of bf16 are packed (`fma`: never).
TEST_CASE("bf16 has the same bits in every mode and with every instruction for products") {
  const std::string text = R"(
data:
  dataset: {synthetic_images: {samples: 150, test_samples: 57, shape: [1, 6, 6]}}
  transforms: [to_tensor]
  batch_size: 75
model: [flatten, {linear: 70}, sigmoid, {linear: 40}, relu, {linear: 10}]
loss: cross_entropy
optimizer: {adam: 0.01}
epochs: 2
evaluate: true
reproducible: {shards: 4}
precision: {bf16: {emulate: true, products: fma}}
)";
  const Ran by_fma = run_spec(text, {"cores=1"});
  std::vector<std::string> products = {"precision.bf16.products=auto"};
  if (bf16_probe().usable()) products.emplace_back("precision.bf16.products=bf16");
  for (const std::string& by : products) {
    CAPTURE(by);
    const Ran one = run_spec(text, {by, "cores=1"});
    // Tiles of AMX, the only instruction that adds in another order, have bits of their own.
    if (by != products[0] || !bf16_probe().tiles_faster()) same(by_fma, one);
    same(one, run_spec(text, {by, "cores=3"}));
    same(one, run_spec(text, {by, "parallel=dp", "devices=2", "cores=1"}));
    same(one, run_spec(text, {by, "parallel={pipeline: {stages: 2, chunks: 1}}", "cores=1"}));
    if (kCanFork) same(one, run_spec(text, {by, "parallel=ddp", "devices=4", "cores=1"}));
  }
}

// By oneDNN in 16 bits, where VDPBF16PS is fast; else in f32.
TEST_CASE("convolutions in bf16 have the same bits in every mode") {
  const std::string text = R"(
data:
  dataset: {synthetic_images: {samples: 45, test_samples: 8, shape: [3, 8, 8]}}
  transforms: [to_tensor]
  batch_size: 22
model:
  - {conv2d: {out_channels: 8, kernel_size: 3, padding: 1, bias: false}}
  - batch_norm2d
  - relu
  - {conv2d: {out_channels: 34, kernel_size: 1}}
  - {max_pool2d: 2}
  - {conv2d: {out_channels: 33, kernel_size: 3, stride: 2}}
  - relu
  - flatten
  - {linear: 10}
loss: cross_entropy
optimizer: {adam: 0.01}
epochs: 2
evaluate: true
sync_batch_norm: true
reproducible: {shards: 4}
precision: {bf16: {emulate: true}}
)";
  const Ran one = run_spec(text, {"cores=1"});
  same(one, run_spec(text, {"cores=3"}));
  same(one, run_spec(text, {"parallel=dp", "devices=2", "cores=1"}));
  if (kCanFork) same(one, run_spec(text, {"parallel=ddp", "devices=4", "cores=1"}));
}

TEST_CASE("dropout of channels, and layers that move elements, have the same bits in every mode") {
  for (const char* precision : {"fp32", "{bf16: {emulate: true}}"}) {
    CAPTURE(precision);
    const std::string text = std::string(R"(
data:
  dataset: {synthetic_images: {samples: 45, test_samples: 8, shape: [3, 8, 8]}}
  transforms: [to_tensor]
  batch_size: 22
model:
  - {conv2d: {out_channels: 8, kernel_size: 3, padding: 1, padding_mode: reflect}}
  - mish
  - {dropout2d: 0.3}
  - {adaptive_max_pool2d: [5, 4]}
  - {upsample: {scale_factor: 2, mode: bilinear}}
  - {pixel_shuffle: 2}
  - {permute: [2, 3, 1]}
  - {reshape: [-1, 8]}
  - rms_norm
  - glu
  - {permute: [2, 1]}
  - {max_pool1d: 2}
  - {avg_pool1d: 2}
  - {conv_transpose1d: {out_channels: 4, kernel_size: 2, stride: 2}}
  - {hardtanh: {max_val: 2}, name: a}
  - {hardsigmoid: , name: b}
  - {multiply: , from: [a, b]}
  - {dropout2d: 0.2}
  - flatten
  - {linear: 10}
loss: cross_entropy
optimizer: {adam: 0.01}
epochs: 2
evaluate: true
reproducible: {shards: 4}
precision: )") + precision + "\n";
    const Ran one = run_spec(text, {"cores=1"});
    same(one, run_spec(text, {"cores=3"}));
    same(one, run_spec(text, {"parallel=dp", "devices=2", "cores=1"}));
    same(one, run_spec(text, {"parallel={pipeline: {stages: 2, chunks: 1}}", "cores=1"}));
    if (kCanFork) same(one, run_spec(text, {"parallel=ddp", "devices=4", "cores=1"}));
  }
}

TEST_CASE("layers of volumes have the same bits in every mode") {
  for (const char* precision : {"fp32", "{bf16: {emulate: true}}"}) {
    CAPTURE(precision);
    const std::string text = std::string(R"(
data:
  dataset: {synthetic_images: {samples: 45, test_samples: 8, shape: [3, 8, 8]}}
  transforms: [to_tensor]
  batch_size: 22
model:
  - {reshape: [2, 4, 4, 6]}
  - {conv3d: {out_channels: 5, kernel_size: 3, padding: 1, padding_mode: circular, bias: false}}
  - batch_norm3d
  - relu
  - {max_pool3d: {kernel_size: 2, stride: 1, padding: 1}}
  - {conv_transpose3d: {out_channels: 4, kernel_size: [3, 1, 2], stride: [2, 1, 2]}}
  - {dropout2d: 0.3}
  - {upsample: {scale_factor: 1.5, mode: trilinear}}
  - {conv3d: {out_channels: 6, kernel_size: [2, 3, 3], stride: 2, groups: 2}}
  - {instance_norm: {affine: true}}
  - {avg_pool3d: {kernel_size: [2, 1, 2], ceil_mode: true}}
  - {adaptive_max_pool3d: [2, 2, 1]}
  - flatten
  - {linear: 10}
loss: cross_entropy
optimizer: {adam: 0.01}
epochs: 2
evaluate: true
sync_batch_norm: true
reproducible: {shards: 4}
precision: )") + precision + "\n";
    const Ran one = run_spec(text, {"cores=1"});
    same(one, run_spec(text, {"cores=3"}));
    same(one, run_spec(text, {"parallel=dp", "devices=2", "cores=1"}));
    same(one, run_spec(text, {"parallel={pipeline: {stages: 2, chunks: 1}}", "cores=1"}));
    same(one, run_spec(text, {"parallel={pipeline: {stages: 2, chunks: 1, checkpoint: always}}",
                              "cores=1"}));
    if (kCanFork) same(one, run_spec(text, {"parallel=ddp", "devices=4", "cores=1"}));
  }
}

TEST_CASE("parameter groups, freezing and scaled rates have the same bits in every mode") {
  const std::string text = spec(R"(reproducible: {shards: 8}
no_decay: [bias, norm]
parameter_groups: [{match: '5.weight', lr: 0.1}, {match: [2.bias, 1.weight], weight_decay: 0.5}]
freeze: [1.bias, 2.weight]
schedule: {cosine_annealing: {eta_min: 0.001}, interval: step, warmup: 3}
)");
  const std::vector<std::string> adam = {"optimizer={adam_w: {lr: 0.01, weight_decay: 0.1}}",
                                         "lr_scale={sqrt: 8}"};
  const auto run = [&](std::vector<std::string> how) {
    how.insert(how.end(), adam.begin(), adam.end());
    return run_spec(text, how);
  };
  const Ran one = run({"cores=1"});
  CHECK_MESSAGE(
      has(one.err, "parameter groups: 1 tensor with lr 0.02, weight_decay 0.5; 2 tensors "),
      one.err);
  same(one, run({"cores=3"}));
  same(one, run({"parallel=dp", "devices=4", "cores=1"}));
  // Stored gradients, instead of ones that are made within the update.
  same(run({"cores=1", "clip_grad_norm=1e9"}), run({"cores=2", "clip_grad_norm=1e9"}));
  same(run({"parallel={pipeline: {stages: 2, chunks: 1}}", "cores=1", "accumulate=1"}), one);
  if (!kCanFork) return;
  same(one, run({"parallel=ddp", "devices=2", "cores=2"}));
  same(one, run({"parallel={ddp: {shard: optimizer}}", "devices=3", "cores=1"}));
  const std::string compress = "parallel={ddp: {compress: bf16, shard: optimizer}}";
  same(run({compress, "devices=2", "cores=1"}), run({compress, "devices=4", "cores=1"}));
}

// Three matrices, one of which is higher than wide, on up to eight workers.
TEST_CASE("matrices that are updated as a whole have the same bits in every mode") {
  const std::string text = spec("reproducible: {shards: 8}\nno_decay: [bias, norm]\nema: 0.9\n");
  const auto run = [&](std::vector<std::string> how) {
    how.emplace_back("optimizer={muon: {lr: 0.02, adam_w: {lr: 0.01, amsgrad: true}}}");
    how.emplace_back("model[1].out_features=45");
    return run_spec(text, how);
  };
  const Ran one = run({"cores=1"});
  CHECK_MESSAGE(has(one.err,
                    "parameter groups: 2 tensors as matrices with lr 0.02, weight_decay "
                    "0.1; 4 tensors with lr 0.01, weight_decay 0"),
                one.err);
  same(one, run({"cores=2"}));
  same(one, run({"cores=3"}));
  same(one, run({"parallel=dp", "devices=4", "cores=2"}));
  same(one, run({"parallel={pipeline: {stages: 2, chunks: 1}}", "cores=1"}));
  const std::string o3 = "precision={bf16: {emulate: true, level: o3}}";
  same(run({"cores=1", o3}), run({"cores=3", o3}));
  const std::string fp16 = "precision={fp16: {emulate: true, init_scale: 1073741824}}";
  same(run({"cores=1", fp16, "clip_grad_norm=1"}), run({"cores=3", fp16, "clip_grad_norm=1"}));
  same(run({"cores=1", "accumulate=2", "clip_grad_value=0.01"}),
       run({"cores=3", "accumulate=2", "clip_grad_value=0.01"}));
  if (!kCanFork) return;
  same(one, run({"parallel=ddp", "devices=2", "cores=2"}));
  same(one, run({"parallel={ddp: {shard: optimizer}}", "devices=3", "cores=1"}));
  same(one, run({"parallel={ddp: {shard: optimizer}}", "devices=8", "cores=1"}));
  const std::string compress = "parallel={ddp: {compress: bf16, shard: optimizer}}";
  same(run({compress, "devices=2", "cores=1"}), run({compress, "devices=4", "cores=1"}));
}

// Operators make gradients of several parameters at once, of which some are not wanted.
TEST_CASE("with single frozen parameters all modes have the same bits, and frozen ones stay") {
  const std::string text = R"(
data:
  dataset: {synthetic_images: {samples: 40, test_samples: 8, shape: [3, 6, 6]}}
  transforms: [to_tensor]
  batch_size: 16
model:
  - {conv2d: {out_channels: 6, kernel_size: 3, padding: 1}, name: conv}
  - {batch_norm2d: , name: bn}
  - relu
  - {conv_transpose2d: {out_channels: 4, kernel_size: 2, stride: 2}, name: up}
  - {group_norm: 2, name: gn}
  - {prelu: , name: prelu}
  - flatten
  - {linear: 10, name: fc}
loss: cross_entropy
optimizer: {sgd: {lr: 0.1, momentum: 0.9, weight_decay: 0.1}}
epochs: 2
sync_batch_norm: true
reproducible: {shards: 4}
)";
  for (const char* freeze : {"freeze=[bias]", "freeze=[bn.bias, gn.weight, up.weight, fc.bias]",
                             "freeze=[conv.weight, bn.weight, gn.bias, prelu, fc.weight]"}) {
    CAPTURE(freeze);
    const Ran one = run_spec(text, {"cores=1", freeze});
    same(one, run_spec(text, {"cores=3", freeze}));
    same(one, run_spec(text, {"parallel=dp", "devices=2", "cores=1", freeze}));
    same(one, run_spec(text, {"parallel={pipeline: {stages: 2, chunks: 1}}", "cores=1", freeze}));
    if (kCanFork) same(one, run_spec(text, {"parallel=ddp", "devices=2", "cores=1", freeze}));
    // What is frozen does not change, even by weight decay; the rest does.
    const Folder folder;
    folder.write("first.safetensors",
                 run_spec(text, {"cores=1", "steps=1", "optimizer.lr=0"}).weights);
    folder.write("last.safetensors", one.weights);
    const SafeTensorsFile first(folder.file("first.safetensors")),
        last(folder.file("last.safetensors"));
    const std::string patterns = std::string(freeze).substr(7);
    for (const SafeTensorsFile::Entry& e : first.entries()) {
      if (e.desc.dtype != DType::f32 || has(e.name, "running")) continue;
      CAPTURE(e.name);
      std::vector<std::byte> before(e.desc.bytes()), after(e.desc.bytes());
      first.read(e, before);
      last.read(*last.find(e.name), after);
      const bool frozen = has(patterns, e.name) ||
                          (patterns == "[bias]" && e.name.ends_with("bias")) ||
                          (has(patterns, "prelu") && e.name == "prelu.weight");
      CHECK((before == after) == frozen);
    }
  }
}

TEST_CASE("random transforms are the same in every mode, without reproducible shards, too") {
  const std::vector<std::string> augmented = {
      "data.dataset={synthetic_images: {samples: 83, test_samples: 20, shape: [3, 8, 8]}}",
      "data.transforms=[{random_crop: {size: 6, padding: 2}}, random_horizontal_flip, to_tensor, "
      "{normalize: {mean: [0.4, 0.5, 0.6], std: 0.5}}, {random_erasing: {p: 0.7}}, {cutout: 3}]"};
  const auto run = [&](std::vector<std::string> how, const std::string& more) {
    how.insert(how.end(), augmented.begin(), augmented.end());
    return run_spec(spec(more), how);
  };
  const std::string shards = "reproducible: {shards: 4}\naccumulate: 2\n";
  const Ran one = run({"cores=1"}, shards);
  same(one, run({"cores=3"}, shards));
  same(one, run({"parallel=dp", "devices=4", "cores=1"}, shards));
  if (kCanFork) same(one, run({"parallel=ddp", "devices=2", "cores=2"}, shards));
  same(run({"cores=2"}, ""), run({"parallel=dp", "devices=2", "cores=1"}, ""));
  // They are of the epoch, not of the step: other batches, the same images.
  CHECK(data_of(one.weights) != data_of(run({"cores=1", "seed=1"}, shards).weights));
}

// Masks of the images themselves: only those that move with the images can be learned.
TEST_CASE("crops and flips move masks in every mode, so that they are learned") {
  constexpr size_t kImages = 24, kPixels = 64;
  std::vector<uint8_t> images(kImages * kPixels), classes(images.size());
  std::vector<float> values(images.size());
  for (size_t i = 0; i < images.size(); ++i) {
    classes[i] = i * i % 7 < 3 ? 0 : 1;
    images[i] = static_cast<uint8_t>(200 * classes[i]);
    values[i] = classes[i];
  }
  const Folder folder;
  folder.write("x.npy", npy("|u1", "(24, 1, 8, 8)", images));
  folder.write("classes.npy", npy("|u1", "(24, 8, 8)", classes));
  folder.write("values.npy", npy("<f4", "(24, 1, 8, 8)", values));
  const auto run = [&](const char* targets, std::vector<std::string> how) {
    const bool one = std::string_view(targets) == "values.npy";
    const std::string text = fmt::format(R"(
data:
  dataset: {{npy: {{inputs: {0}, targets: {1}, test_inputs: {0}, test_targets: {1}}}}}
  transforms: [{{random_crop: {{size: [6, 7], padding: 1}}}}, random_horizontal_flip, to_tensor,
    {{random_erasing: {{p: 0.1}}}}]
  batch_size: 8
model: [{{conv2d: {{out_channels: 4, kernel_size: 1}}}}, tanh,
  {{conv2d: {{out_channels: {2}, kernel_size: 1}}}}]
loss: {3}
optimizer: {{adam: 0.1}}
epochs: 30
log: {{every: 1}}
evaluate: true
reproducible: {{shards: 4}}
)",
                                         folder.file("x.npy"), folder.file(targets), one ? 1 : 2,
                                         one ? "bce_with_logits_loss" : "cross_entropy");
    return run_spec(text, how);
  };
  for (const char* targets : {"classes.npy", "values.npy"}) {
    CAPTURE(targets);
    const Ran alone = run(targets, {"cores=1"});
    CHECK(alone.losses().back() < 0.2);
    same(alone, run(targets, {"cores=3"}));
    same(alone, run(targets, {"parallel=dp", "devices=2", "cores=1"}));
    same(alone, run(targets, {"parallel={pipeline: {stages: 2, chunks: 1}}", "cores=1"}));
    if (kCanFork) same(alone, run(targets, {"parallel=ddp", "devices=2", "cores=1"}));
  }
  const Ran ran = run("classes.npy", {"cores=1"});
  CHECK(has(ran.metrics, "accuracy\": 1"));
}

// Inputs that are targets: in one part, in two stages, in `loss: gathered` of dp, and read from
// files.
TEST_CASE("autoencoders have the same bits in every mode, and use the drawn images") {
  const Folder folder;
  for (int i = 0; i < 24; ++i) {
    std::string pgm = "P5\n6 6\n255\n";
    for (int p = 0; p < 36; ++p) pgm += static_cast<char>((37 * i + 11 * p * p) % 256);
    folder.write(fmt::format("all/{}.pgm", i), pgm);
  }
  const std::string memory = "{synthetic_images: {samples: 43, test_samples: 9, shape: [3, 6, 6]}}";
  const std::string files =
      fmt::format("{{image_folder: {{path: {}, test_path: {}}}}}", folder.path(), folder.path());
  for (const std::string& dataset : {memory, files}) {
    CAPTURE(dataset);
    const std::string text = fmt::format(R"(
data:
  dataset: {}
  transforms: [{{random_crop: {{padding: 1}}}}, random_horizontal_flip, to_tensor]
  target_transforms: [input]
  batch_size: 16
model: [flatten, {{linear: 9}}, relu, {{linear: 108}}, sigmoid, {{reshape: [3, 6, 6]}}]
loss: mse_loss
optimizer: {{adam: 0.01}}
epochs: 2
log: {{every: 1}}
evaluate: true
reproducible: {{shards: 4}}
)",
                                         dataset);
    const Ran one = run_spec(text, {"cores=1"});
    same(one, run_spec(text, {"cores=3"}));
    same(one, run_spec(text, {"parallel=dp", "devices=2", "cores=1"}));
    same(one, run_spec(text, {"parallel={dp: {loss: distributed}}", "devices=2", "cores=1"}));
    same(one, run_spec(text, {"parallel={pipeline: {stages: 2, chunks: 1}}", "cores=1"}));
    if (kCanFork) same(one, run_spec(text, {"parallel=ddp", "devices=2", "cores=1"}));
    CHECK(one.losses().back() < one.losses().front());
    const Ran plain = run_spec(text, {"cores=1", "data.transforms=[to_tensor]"});
    CHECK(one.step_losses() != plain.step_losses());
  }
}

TEST_CASE("mixed samples, changed colors and weighted draws are the same in every mode") {
  const std::vector<std::string> augmented = {
      "data.dataset.synthetic_images.shape=[3,6,6]",
      "data.transforms=[{random_crop: {padding: 1}}, to_tensor, {color_jitter: {brightness: 0.4, "
      "contrast: 0.4, saturation: 0.4, hue: 0.1}}, {normalize: {mean: 0.5, std: 0.5}}, "
      "{random_erasing: {p: 0.5}}, {mixup: 0.4}, {cutmix: 1}]",
      "data.sampler=weighted", "data.validation=0.2"};
  const auto run = [&](std::vector<std::string> how, const std::string& more) {
    how.insert(how.begin(), augmented.begin(), augmented.end());
    return run_spec(spec(more), how);
  };
  const std::string shards = "reproducible: {shards: 4}\naccumulate: 2\n";
  const Ran one = run({"cores=1"}, shards);
  CHECK(has(one.metrics, "accuracy\": "));  // evaluations have classes, not probabilities
  same(one, run({"parallel={pipeline: {stages: 2, chunks: 1}}", "cores=1"}, shards));
  same(one, run({"cores=3"}, shards));
  same(one, run({"parallel=dp", "devices=4", "cores=1"}, shards));
  if (kCanFork) same(one, run({"parallel=ddp", "devices=2", "cores=2"}, shards));
  same(run({"cores=2"}, ""), run({"parallel=dp", "devices=2", "cores=1"}, ""));
  CHECK(data_of(one.weights) != data_of(run({"cores=1", "data.sampler=none"}, shards).weights));
}

// Class 0 has one image, class 1 the black others. With weights that stay as they are, a step's
// loss tells which crop it saw.
TEST_CASE("a sample that is drawn again looks different, and the same in every mode") {
  constexpr size_t kImages = 16, kPixels = 36;
  std::vector<uint8_t> images(kImages * kPixels, 0), classes(kImages, 1);
  for (size_t i = 0; i < kPixels; ++i) images[i] = static_cast<uint8_t>(7 * i);
  classes[0] = 0;
  const Folder folder;
  folder.write("x.npy", npy("|u1", "(16, 1, 6, 6)", images));
  folder.write("y.npy", npy("|u1", "(16,)", classes));
  const std::string shards = "reproducible: {shards: 2}\n";
  const auto run = [&](std::vector<std::string> how, int batch_size, const std::string& more) {
    const std::vector<std::string> data = {
        fmt::format("data.dataset={{npy: {{inputs: {}, targets: {}}}}}", folder.file("x.npy"),
                    folder.file("y.npy")),
        "data.transforms=[{random_crop: {padding: 3}}, random_horizontal_flip, to_tensor]",
        "data.sampler=weighted",
        fmt::format("data.batch_size={}", batch_size),
        "evaluate=false",
        "epochs=2",
        "model=[flatten, {linear: 2}]"};
    how.insert(how.begin(), data.begin(), data.end());
    return run_spec(spec(more), how);
  };
  const Ran single = run({"cores=1", "optimizer={sgd: 1e-30}"}, 1, shards);
  const std::vector<double> losses = single.step_losses();
  REQUIRE(losses.size() == 2 * kImages);
  const auto first = std::span(losses).first(kImages);
  // About half of the draws are of class 0, and one loss is that of all black images.
  CHECK(std::set<double>(first.begin(), first.end()).size() > 4);
  const Ran one = run({"cores=1"}, 4, shards);
  same(one, run({"cores=2"}, 4, shards));
  same(one, run({"parallel=dp", "devices=2", "cores=1"}, 4, shards));
  same(one, run({"parallel={pipeline: {stages: 2, chunks: 1}}", "cores=1"}, 4, shards));
  if (kCanFork) same(one, run({"parallel=ddp", "devices=2", "cores=1"}, 4, shards));
  same(run({"cores=2"}, 4, ""), run({"parallel=dp", "devices=2", "cores=1"}, 4, ""));
}

TEST_CASE("images that are decoded ahead of the steps end in the same bits in every mode") {
  if (skip_without(reads_jpeg() && reads_png(), "libjpeg-turbo and libpng")) return;
  const std::string folder = test_file("fixtures/images");
  std::string more;
  const auto run = [&](std::vector<std::string> how) {
    how.push_back("data.dataset={image_folder: {path: " + folder + ", test_path: " + folder +
                  ", resize: 12, crop: 10}}");
    how.push_back("data.transforms=[{random_crop: {padding: 1}}, to_tensor" + more + "]");
    how.emplace_back("data.batch_size=4");  // 10 images: 4, 4, 2
    return run_spec(spec("reproducible: {shards: 4}\n"), how);
  };
  const Ran one = run({"cores=1"});
  CHECK(one.step_losses().size() == 9);
  same(one, run({"cores=2"}));
  same(one, run({"parallel=dp", "devices=3", "cores=1"}));
  same(one, run({"cores=2", "accumulate=1"}));
  if (kCanFork) same(one, run({"parallel=ddp", "devices=4", "cores=1"}));
  const std::string classes = "model[5].linear=2";
  const Ran plain = run({"cores=1", classes});
  more = ", {mixup: 1}";  // each with its partner
  const Ran mixed = run({"cores=1", classes});
  CHECK(data_of(mixed.weights) != data_of(plain.weights));
  same(mixed, run({"parallel=dp", "devices=3", "cores=1", classes}));
  if (kCanFork) same(mixed, run({"parallel=ddp", "devices=4", "cores=1", classes}));
  const std::string weighted = "data.sampler=weighted";  // partners of samples drawn again
  const Ran drawn = run({"cores=1", classes, weighted});
  CHECK(data_of(drawn.weights) != data_of(mixed.weights));
  same(drawn, run({"parallel=dp", "devices=3", "cores=1", classes, weighted}));
  if (kCanFork) same(drawn, run({"parallel=ddp", "devices=4", "cores=1", classes, weighted}));
}

TEST_CASE("an image that is damaged ends the run with its name") {
  if (skip_without(reads_jpeg() && reads_png(), "libjpeg-turbo and libpng")) return;
  const Folder folder;
  for (const char* name : {"a/1.png", "a/2.png", "b/1.png", "b/2.png"})
    folder.write(name, read_file(test_file("fixtures/images/png/rgb.png")));
  folder.write("b/2.png", "\x89PNG\r\n\x1a\n");
  for (const std::string& cores : {std::string("cores=1"), std::string("cores=2")}) {
    const Ran ran =
        run_spec(spec(), {cores, "data.batch_size=2", "evaluate=false",
                          "data.dataset={image_folder: {path: " + folder.path() + ", crop: 4}}"});
    CHECK(ran.code != 0);
    CHECK(has(ran.err, "b/2.png cannot be read as PNG: the file ends too early"));
  }
}

TEST_CASE("without it single and dp agree at an equal number of workers") {
  for (const std::string& workers : {std::string("2"), std::string("3")}) {
    const Ran single = run_spec(spec(), {"cores=" + workers});
    for (const std::string& loss : {std::string("gathered"), std::string("distributed")})
      same(single, run_spec(spec(), {"parallel={dp: {loss: " + loss + "}}", "cores=1",
                                     "devices=" + workers}));
  }
}

TEST_CASE("a divisor from the targets, clipping and accumulation change nothing of it") {
  const std::string text = spec("reproducible: {shards: 4}\naccumulate: 3\nclip_grad_norm: 0.5\n");
  const std::string loss =
      "loss={cross_entropy: {weight: [1,2,3,4,5,6,7,8,9,10], ignore_index: 3}}";
  const Ran one = run_spec(text, {loss, "cores=1"});
  same(one, run_spec(text, {loss, "cores=2"}));
  same(one, run_spec(text, {loss, "parallel=dp", "devices=3", "cores=1"}));
  if (kCanFork) same(one, run_spec(text, {loss, "parallel=ddp", "devices=2", "cores=2"}));
}

// One with running statistics, one that takes the batch's in evaluation too, over images.
std::string normalised(const std::string& more) {
  return R"(
data: {dataset: {synthetic_images: {samples: 61, test_samples: 23, shape: [1, 6, 6], classes: 4}}, batch_size: 16}
model:
  - {conv2d: {out_channels: 5, kernel_size: 3}}
  - batch_norm2d
  - relu
  - flatten
  - {batch_norm1d: {track_running_stats: false}}
  - linear: 4
loss: cross_entropy
optimizer: {sgd: {lr: 0.1, momentum: 0.9}}
epochs: 2
evaluate: true
log: {every: 1}
)" + more;
}

TEST_CASE("synchronised batch norm has the same bits in every mode, with any number of workers") {
  for (const std::string& more :
       {std::string(), std::string("accumulate: 3\nclip_grad_norm: 0.5\n")}) {
    const std::string text =
        normalised("reproducible: {shards: 8}\nsync_batch_norm: true\n" + more);
    const Ran one = run_spec(text, {"cores=1"});
    for (const std::vector<std::string>& how :
         std::vector<std::vector<std::string>>{{"cores=2"},
                                               {"cores=3"},
                                               {"parallel=dp", "devices=2", "cores=1"},
                                               {"parallel=dp", "devices=3", "cores=2"},
                                               {"parallel=ddp", "devices=2", "cores=2"},
                                               {"parallel=ddp", "devices=8", "cores=1"}}) {
      if (!kCanFork && how[0] == "parallel=ddp") continue;
      CAPTURE(how[0]);
      CAPTURE(how.back());
      same(one, run_spec(text, how));
    }
  }
}

TEST_CASE("without synchronisation a replica has its own statistics, whatever its workers") {
  const std::string text = normalised("reproducible: {shards: 8}\n");
  const Ran single = run_spec(text, {"cores=1"});
  same(single, run_spec(text, {"cores=3"}));
  const Ran two = run_spec(text, {"parallel=dp", "devices=2", "cores=1"});
  CHECK(data_of(single.weights) != data_of(two.weights));
  same(two, run_spec(text, {"parallel=dp", "devices=2", "cores=2"}));
  if (kCanFork) same(two, run_spec(text, {"parallel=ddp", "devices=2", "cores=1"}));
}

TEST_CASE("the same run twice ends in the same bits, another seed in others") {
  const Ran a = run_spec(spec(), {"cores=2"});
  same(a, run_spec(spec(), {"cores=2"}));
  CHECK(data_of(a.weights) != data_of(run_spec(spec(), {"cores=2", "seed=1"}).weights));
}

}  // namespace
}  // namespace dpt
