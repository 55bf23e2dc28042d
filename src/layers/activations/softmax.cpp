// softmax: exp(x) / sum of exp(x) over one dimension; log_softmax: its logarithm. Any shape.
#include "formats/python_call.h"
#include "graph/attrs.h"
#include "layers/dimension.h"
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct SoftmaxNames {
  std::string_view layer, torch;
  Usage usage;
};

template <const SoftmaxNames& kNames>
struct SoftmaxLayer {
  static constexpr Usage kUsage = kNames.usage;

  std::optional<int64_t> dim;

  static KeyTable<SoftmaxLayer> keys() {
    return KeyTable<SoftmaxLayer>().optional(
        "dim", &SoftmaxLayer::dim, "dimension whose probabilities sum to 1; none: dimension 1");
  }
  ValueId build(GraphBuilder& g, ValueId x) const {
    return g.apply(kNames.layer, {x}, Softmax{dimension(g.shape(x))});
  }
  std::string torch(const Shape&) const {
    return PythonCall(kNames.torch).key("dim", dim.value_or(1)).str();
  }

 private:
  // nn.Softmax's rules: without `dim` PyTorch uses dimension 0 for inputs of rank 1 or 3, and 1 for
  // others. Dimension 0 is the batch, so it is an error here.
  int dimension(const Shape& x) const {
    if (dim) return sample_dimension(kNames.layer, "dim", *dim, x);
    if (x.rank() == 1 || x.rank() == 3)
      fail(Fault::spec,
           "{} of an input of {} needs 'dim': torch's default would be the batch dimension",
           kNames.layer, x.str());
    return 1;
  }
};

constexpr SoftmaxNames kSoftmax{"softmax",
                                "nn.Softmax",
                                {"torch.nn.Softmax",
                                 "- softmax\n"
                                 "- softmax: {dim: -1}"}};
constexpr SoftmaxNames kLogSoftmax{"log_softmax",
                                   "nn.LogSoftmax",
                                   {"torch.nn.LogSoftmax",
                                    "- log_softmax\n"
                                    "- log_softmax: {dim: -1}"}};

}  // namespace

std::vector<LayerType> softmaxes() {
  return {
      layer_type<SoftmaxLayer<kSoftmax>>(kSoftmax.layer,
                                         "exp(x) / (sum of exp(x)) along one dimension."),
      layer_type<SoftmaxLayer<kLogSoftmax>>(
          kLogSoftmax.layer, "Logarithm of softmax: x - log(sum of exp(x)) along one dimension.")};
}

}  // namespace dpt::layers
