// permute: torch.permute of the dimensions behind the batch, such as [N, C, H, W] -> [N, H, W, C].
#include <numeric>

#include <fmt/ranges.h>

#include "base/fail.h"
#include "formats/python_call.h"
#include "graph/attrs.h"
#include "layers/layer.h"

namespace dpt::layers {
namespace {

constexpr std::string_view kPermuteClass = R"py(class Permute(nn.Module):
    """Exchanges the dimensions of each sample."""

    def __init__(self, *dims):
        super().__init__()
        self.dims = dims

    def forward(self, x):
        return x.permute(0, *self.dims)
)py";

struct PermuteLayer {
  static constexpr std::string_view kTorchClass = kPermuteClass;
  static constexpr Usage kUsage{"torch.permute",
                                "- permute: [2, 3, 1]\n"
                                "- permute: {dims: [0, 2, 3, 1]}"};

  std::vector<int64_t> dims;

  static KeyTable<PermuteLayer> keys() {
    return KeyTable<PermuteLayer>().required(
        "dims", &PermuteLayer::dims,
        "the input's dimensions in their new order; 0, the batch, comes first and may be left out");
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    Permute s;
    const std::vector<int> order = order_for(g.shape(x));
    std::ranges::copy(order, s.order.begin());
    return std::ranges::is_sorted(order) ? x : g.apply("permute", {x}, s);
  }

  std::string torch(const Shape& x) const {
    PythonCall call("Permute");
    for (const int dim : order_for(x))
      if (dim != 0) call.arg(int64_t{dim});
    return call.str();
  }

 private:
  // Dimensions of x counted from 0, with the batch in front.
  std::vector<int> order_for(const Shape& x) const {
    std::vector<int> order;
    for (const int64_t dim : dims) {
      if (dim < -x.rank() || dim >= x.rank())
        fail(Fault::spec,
             "permute: dims [{}] name dimension {}, but the input {} has dimensions {} to {}",
             fmt::join(dims, ", "), dim, x.str(), -x.rank(), x.rank() - 1);
      order.push_back(static_cast<int>(dim < 0 ? dim + x.rank() : dim));
    }
    if (const auto batch = std::ranges::find(order, 0); batch == order.end())
      order.insert(order.begin(), 0);
    else if (batch != order.begin())
      fail(Fault::spec,
           "permute: dims [{}] move dimension 0, the batch of the input {}: it must stay in front",
           fmt::join(dims, ", "), x.str());
    std::vector<int> all(static_cast<size_t>(x.rank())), sorted = order;
    std::iota(all.begin(), all.end(), 0);
    std::ranges::sort(sorted);
    if (sorted != all)
      fail(Fault::spec,
           "permute: dims [{}] must name each of the dimensions 1 to {} of the input {} once",
           fmt::join(dims, ", "), x.rank() - 1, x.str());
    return order;
  }
};

}  // namespace

LayerType permute() {
  return layer_type<PermuteLayer>(
      "permute", "Exchanges the dimensions of each sample: [N, C, H, W] to [N, H, W, C].");
}

}  // namespace dpt::layers
