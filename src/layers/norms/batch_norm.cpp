// batch_norm1d, batch_norm2d and batch_norm3d: (x - mean) / sqrt(variance + eps) for each channel,
// then scaled and shifted. In training, mean and biased variance are those of the batch, over the
// shards of the replica, or of all replicas with `sync_batch_norm`. In evaluation the running
// statistics are used. Ioffe and Szegedy, 2015; formulas are PyTorch's.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/fail.h"
#include "formats/python_call.h"
#include "graph/attrs.h"
#include "layers/layer.h"
#include "layers/norms/norm_epsilon.h"

namespace dpt::layers {
namespace {

// "; for volumes use batch_norm3d", for an input of this rank that another batch norm is for.
std::string_view batch_norm_for(int rank) {
  return rank == 2 || rank == 3 ? "; use batch_norm1d"
         : rank == 4            ? "; for images use batch_norm2d"
         : rank == 5            ? "; for volumes use batch_norm3d"
                                : "";
}

template <int kDims>
struct BatchNormLayer {
  static constexpr bool kNorm = true;
  static constexpr std::string_view kName = kDims == 1   ? "batch_norm1d"
                                            : kDims == 2 ? "batch_norm2d"
                                                         : "batch_norm3d";
  static constexpr Usage kUsage =
      kDims == 1 ? Usage{"torch.nn.BatchNorm1d",
                         "- batch_norm1d\n"
                         "- batch_norm1d: {eps: 0.001, momentum: 0.01, affine: true, bias: false,\n"
                         "    track_running_stats: false}"}
      : kDims == 2
          ? Usage{"torch.nn.BatchNorm2d",
                  "- batch_norm2d\n"
                  "- batch_norm2d: {eps: 0.001, momentum: 0.01, affine: true, bias: false,\n"
                  "    track_running_stats: false}"}
          : Usage{"torch.nn.BatchNorm3d",
                  "- batch_norm3d\n"
                  "- batch_norm3d: {eps: 0.001, momentum: 0.01, affine: true, bias: false,\n"
                  "    track_running_stats: false}"};

  double eps = 1e-5;
  std::optional<double> momentum = 0.1;
  bool affine = true, bias = true, track_running_stats = true;

  static KeyTable<BatchNormLayer> keys() {
    using L = BatchNormLayer;
    return KeyTable<L>()
        .optional("eps", &L::eps, "small number added to the variance", kNotNegative)
        .optional(
            "momentum", &L::momentum,
            "weight of a new batch in the running statistics; none: all batches count equally",
            kNotNegative)
        .optional("affine", &L::affine, "whether each channel has a learned scale and offset")
        .optional("bias", &L::bias, "whether a learned bias is added")
        .optional("track_running_stats", &L::track_running_stats,
                  "whether running statistics are kept for evaluation; false: evaluation uses "
                  "the batch's own");
  }

  static void check(const BatchNormLayer& c, const Owner& owner, Diagnostics& d) {
    check_epsilon(c.eps, owner, d);
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    const Shape shape = g.shape(x);
    const bool taken = shape.rank() == kDims + 2 || (kDims == 1 && shape.rank() == 2);
    if (!taken)
      fail(Fault::spec, "{} takes {}, not {}{}", kName,
           kDims == 1   ? "[N, C] or [N, C, L]"
           : kDims == 2 ? "[N, C, H, W]"
                        : "[N, C, D, H, W]",
           shape.str(), batch_norm_for(shape.rank()));
    const int64_t channels = shape[1];
    BatchNorm settings{.eps = eps, .momentum = momentum.value_or(-1)};
    std::vector<ValueId> affine_values;
    if (affine) {
      affine_values.push_back(g.parameter("weight", {channels}, {.a = 1}));
      if (bias) affine_values.push_back(g.parameter("bias", {channels}, {.a = 0}));
    }
    std::vector<ValueId> running;
    if (track_running_stats) {
      running = {g.buffer("running_mean", {DType::f32, {channels}}, 0),
                 g.buffer("running_var", {DType::f32, {channels}}, 1),
                 g.buffer("num_batches_tracked", {DType::i64, {}}, 0)};
      if (g.mode().deferred_batch_norm)
        running.push_back(g.buffer("pending", {DType::f64, {2 * channels + 1}}, 0, false));
    }
    settings.batch = g.mode().training || !track_running_stats;
    ValueId moments = kNoValue;
    if (settings.batch) {
      const ValueId sums = g.apply("all_reduce", {g.apply("channel_sums", {x})});
      if (track_running_stats) {
        std::vector<ValueId> in = running;
        in.insert(in.begin(), sums);
        g.apply("update_running", in, settings);
        for (size_t i = 0; i < running.size(); ++i) g.update(running[i], g.results()[i]);
      }
      moments = g.apply("moments", {sums}, settings);
    } else {
      moments = g.apply("running_moments", {running[0], running[1]}, settings);
    }
    std::vector<ValueId> in = {x, moments};
    in.insert(in.end(), affine_values.begin(), affine_values.end());
    return g.apply("batch_norm", in, settings);
  }

  std::string torch(const Shape& x) const {
    return PythonCall(fmt::format("nn.BatchNorm{}d", kDims))
        .arg(x[1])
        .keys(keys().arguments(*this))
        .str();
  }
};

}  // namespace

std::vector<LayerType> batch_norms() {
  return {layer_type<BatchNormLayer<1>>(
              "batch_norm1d", "Normalizes each channel over the batch: [N, C] or [N, C, L]."),
          layer_type<BatchNormLayer<2>>("batch_norm2d",
                                        "Normalizes each channel over the batch: [N, C, H, W]."),
          layer_type<BatchNormLayer<3>>(
              "batch_norm3d", "Normalizes each channel over the batch: [N, C, D, H, W].")};
}

}  // namespace dpt::layers
