#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("batch_norm1d sums over the shards in training and keeps statistics for evaluation") {
  CHECK(lowered("model: [{batch_norm1d: }]", real({4, 3})) ==
        "0.channel_sums f64[7] = channel_sums(input)\n"
        "0.all_reduce f64[7] = all_reduce(0.channel_sums)\n"
        "0.update_running f32[3] = update_running(0.all_reduce, 0.running_mean, 0.running_var, "
        "0.num_batches_tracked)\n"
        "0.moments f64[6] = moments(0.all_reduce)\n"
        "0.batch_norm f32[4, 3] = batch_norm(input, 0.moments, 0.weight, 0.bias)\n");
  CHECK(lowered("model: [{batch_norm1d: {affine: false}}]", real({4, 3, 5}), {.training = false}) ==
        "0.running_moments f64[6] = running_moments(0.running_mean, 0.running_var)\n"
        "0.batch_norm f32[4, 3, 5] = batch_norm(input, 0.running_moments)\n");
  CHECK(lowered("model: [{batch_norm1d: {bias: false, track_running_stats: false}}]", real({4, 3}),
                {.training = false}) ==
        "0.channel_sums f64[7] = channel_sums(input)\n"
        "0.all_reduce f64[7] = all_reduce(0.channel_sums)\n"
        "0.moments f64[6] = moments(0.all_reduce)\n"
        "0.batch_norm f32[4, 3] = batch_norm(input, 0.moments, 0.weight)\n");
  CHECK(torch_layer("model: [{batch_norm1d: {eps: 0.001, momentum: null, affine: false}}]",
                    {2, 4, 5}) == "nn.BatchNorm1d(4, eps=0.001, momentum=None, affine=False)");
  // PyTorch takes any eps and momentum; only `batch_norm1d: 4` is mistaken for channels.
  CHECK(torch_layer("model: [{batch_norm1d: {eps: 1.5, momentum: 2}}]", {2, 4}) ==
        "nn.BatchNorm1d(4, eps=1.5, momentum=2.0)");
  CHECK(complaint(lowered("model: [{batch_norm1d: 4}]", real({2, 4})))
            .find("the number of channels is inferred") != std::string::npos);
  CHECK(complaint(lowered("model: [{batch_norm1d: }]", real({2, 4, 5, 6}))) ==
        "error: batch_norm1d takes [N, C] or [N, C, L], not [2, 4, 5, 6]; for images use "
        "batch_norm2d");
  CHECK(complaint(lowered("model: [batch_norm1d]", real({2, 4, 5, 6, 7}))) ==
        "error: batch_norm1d takes [N, C] or [N, C, L], not [2, 4, 5, 6, 7]; for volumes use "
        "batch_norm3d");
}

}  // namespace dpt
