// class_token (Dosovitskiy et al., "An Image is Worth 16x16 Words", 2021): puts a learned row in
// front of each sequence, [N, L, E] -> [N, L + 1, E]. The output at this position, which attends to
// all others, is what a classifier reads (select). PyTorch has no such module; the parameter is
// torchvision's VisionTransformer.class_token, and starts at 0 as there.
#include "base/fail.h"
#include "formats/python_call.h"
#include "graph/attrs.h"
#include "layers/layer.h"

namespace dpt::layers {
namespace {

constexpr std::string_view kClassTokenTorch = R"py(class ClassToken(nn.Module):
    """Puts a learned row in front of each sequence [N, L, E]."""

    def __init__(self, embed_dim):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1, embed_dim))

    def forward(self, x):
        return torch.cat([self.weight.expand(x.shape[0], 1, -1), x], dim=1)
)py";

struct ClassToken {
  static constexpr std::string_view kTorchClass = kClassTokenTorch;
  static constexpr Usage kUsage{"torchvision.models.VisionTransformer.class_token",
                                "- class_token"};

  static KeyTable<ClassToken> keys() { return {}; }

  ValueId build(GraphBuilder& g, ValueId x) const {
    const TensorDesc in = g.desc(x);
    if (in.dtype != DType::f32 || in.shape.rank() != 3)
      fail(Fault::spec,
           "class_token takes sequences f32[N, L, E], not {}{}; an image [N, C, H, W] becomes one "
           "by flatten: {{start_dim: 2}} and permute: [0, 2, 1]",
           name_of(in.dtype), in.shape.str());
    const ValueId weight = g.parameter("weight", {1, in.shape[2]}, {.a = 0});
    // The row for every sample: a sequence of one zero row (`pad` removes all rows of x and adds
    // one), to which position_embedding adds the weight.
    Pad one_row;
    one_row.before[1] = 1;
    one_row.behind[1] = -in.shape[1];
    const ValueId zeros = g.apply("pad", {x}, one_row);
    const ValueId token = g.apply("position_embedding", {zeros, weight}, PositionEmbedding{1});
    return g.apply("concat", {token, x}, Concat{1});
  }

  std::string torch(const Shape& x) const { return PythonCall("ClassToken").arg(x.back()).str(); }
};

}  // namespace

LayerType class_token() {
  return layer_type<ClassToken>(
      "class_token", "Puts a learned row in front of each sequence: [N, L, E] to [N, L + 1, E].");
}

}  // namespace dpt::layers
