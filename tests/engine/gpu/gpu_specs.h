// Specs and comparisons for runs on fake GPUs.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "train/run_spec.h"

namespace dpt {

inline constexpr const char* kMlp = R"(
data:
  dataset: {synthetic_images: {samples: 83, test_samples: 57, shape: [1, 6, 6]}}
  transforms: [to_tensor]
  batch_size: 32
model:
  - flatten
  - {linear: 19}
  - layer_norm
  - gelu
  - {dropout: 0.3}
  - {linear: 13}
  - {residual: {body: [{linear: 13}, tanh]}}
  - {linear: 10}
loss: cross_entropy
optimizer: {adam: 0.01}
epochs: 3
log: {every: 1}
evaluate: {batch_size: 10}
)";

inline constexpr const char* kImages = R"(
data:
  dataset: {synthetic_images: {samples: 40, test_samples: 20, shape: [3, 8, 8]}}
  transforms: [to_tensor, {random_horizontal_flip: 0.5}]
  batch_size: 16
model:
  - {conv2d: {out_channels: 8, kernel_size: 3, padding: 1, bias: false}}
  - batch_norm2d
  - relu
  - residual:
      body:
        - {conv2d: {out_channels: 8, kernel_size: 3, padding: 1, bias: false}}
        - batch_norm2d
        - relu
        - {conv2d: {out_channels: 8, kernel_size: 3, padding: 1, bias: false}}
        - batch_norm2d
  - relu
  - {max_pool2d: 2}
  - {conv2d: {out_channels: 5, kernel_size: 3, stride: 2}}
  - {adaptive_avg_pool2d: 1}
  - flatten
  - {linear: 10}
loss: cross_entropy
optimizer: {sgd: {lr: 0.05, momentum: 0.9, weight_decay: 0.001}}
epochs: 2
log: {every: 1}
evaluate: {batch_size: 7}
)";

// Settings of kMlp's parameters: groups that lie between each other in the flat buffers.
inline const std::vector<std::string> kGroups = {
    "no_decay=[bias, norm]",
    "parameter_groups=[{match: '7.weight', lr: 0.1}, {match: [1.bias, 5.weight], weight_decay: "
    "0.5}]",
    "freeze=[5.bias, 2.weight]", "lr_scale={sqrt: 8}",
    "schedule={cosine_annealing: {eta_min: 0.001}, interval: step}"};

// Convolutions and linear layers with relu behind them.
inline constexpr const char* kRelu = R"(
data:
  dataset: {synthetic_images: {samples: 40, test_samples: 20, shape: [3, 8, 8]}}
  transforms: [to_tensor]
  batch_size: 16
model:
  - {conv2d: {out_channels: 6, kernel_size: 3}}
  - relu
  - {max_pool2d: 2}
  - flatten
  - {linear: 19}
  - relu
  - {linear: {out_features: 13, bias: false}}
  - relu
  - {linear: 10}
loss: cross_entropy
optimizer: {sgd: {lr: 0.05, momentum: 0.9}}
epochs: 2
log: {every: 1}
evaluate: {batch_size: 7}
)";

// A transformer, whose heads have 8 columns, as cuDNN takes them in halves.
inline constexpr const char* kAttention = R"(
data:
  dataset: {synthetic_tokens: {samples: 30, test_samples: 9, length: 5, vocabulary: 7}}
  batch_size: 12
model:
  - embedding: {num_embeddings: 7, embedding_dim: 16}
  - {residual: {body: [layer_norm, {multihead_attention: {num_heads: 2, causal: true}}]}}
  - {residual: {body: [layer_norm, {linear: 32}, gelu, {linear: 16}]}}
  - {multihead_attention: 2}
  - flatten
  - {linear: 7}
loss: cross_entropy
optimizer: {adam: 0.01}
epochs: 2
log: {every: 1}
evaluate: {batch_size: 4}
)";

// Losses of steps and epochs, and the weights that stay.
inline void agree(const Ran& gpu, const Ran& cpu, double tolerance) {
  REQUIRE_MESSAGE(cpu.code == 0, cpu.err);
  REQUIRE_MESSAGE(gpu.code == 0, gpu.err);
  const auto close = [&](const std::vector<double>& a, const std::vector<double>& b) {
    REQUIRE(a.size() == b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      INFO(i, ": ", a[i], " on the GPU, ", b[i], " on the CPU");
      CHECK(std::abs(a[i] - b[i]) <= tolerance * std::abs(b[i]));
    }
  };
  CHECK(gpu.step_losses().size() > 3);
  close(gpu.step_losses(), cpu.step_losses());
  close(gpu.losses(), cpu.losses());
}

// Sums of other orders and precision are 1e-7 apart; the ten steps that follow may make ten and
// more times as much of that.
inline constexpr double kSameNumbers = 2e-5;

}  // namespace dpt
