// multihead_attention (Vaswani et al., 2017): self-attention, [N, T, E] -> [N, T, E]. Same as
// nn.MultiheadAttention with batch_first=True; dropout of attention weights is not supported.
#include "base/fail.h"
#include "formats/python_call.h"
#include "graph/attrs.h"
#include "layers/kaiming.h"
#include "layers/layer.h"
#include "layers/xavier.h"

namespace dpt::layers {
namespace {

constexpr std::string_view kClass = R"py(class MultiheadAttention(nn.MultiheadAttention):
    """Self-attention; causal: a position attends to itself and earlier ones."""

    def __init__(self, embed_dim, num_heads, bias=True, causal=False):
        super().__init__(embed_dim, num_heads, bias=bias, batch_first=True)
        self.causal = causal

    def forward(self, x):
        mask = None
        if self.causal:
            mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], dtype=x.dtype)
        return super().forward(
            x, x, x, need_weights=False, attn_mask=mask, is_causal=self.causal
        )[0]
)py";

struct MultiheadAttention {
  static constexpr std::string_view kTorchClass = kClass;
  static constexpr Usage kUsage{"torch.nn.MultiheadAttention",
                                "- multihead_attention: {num_heads: 4, causal: true, bias: false}"};

  int64_t num_heads = 0;
  bool causal = false, bias = true;

  static KeyTable<MultiheadAttention> keys() {
    return KeyTable<MultiheadAttention>()
        .required("num_heads", &MultiheadAttention::num_heads,
                  "number of heads; it divides the number of features", kSize)
        .optional("causal", &MultiheadAttention::causal,
                  "whether a position sees only itself and earlier positions")
        .optional("bias", &MultiheadAttention::bias,
                  "whether the input and output projections have a learned bias");
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    const TensorDesc in = g.desc(x);
    if (in.dtype != DType::f32 || in.shape.rank() != 3)
      fail(
          Fault::spec,
          "multihead_attention takes real numbers (f32) [N, positions, features], not {}{}: put an "
          "embedding before it?",
          name_of(in.dtype), in.shape.str());
    const int64_t features = in.shape.back();
    if (features % num_heads != 0)
      fail(Fault::spec,
           "multihead_attention: the {} features of {} cannot be divided evenly into {} heads",
           features, in.shape.str(), num_heads);
    // nn.MultiheadAttention creates out_proj as a linear layer and draws its weight and bias, then
    // draws in_proj_weight, and finally sets the bias of out_proj to 0.
    const auto fan_in = static_cast<double>(features);
    Init first = xavier_uniform(fan_in, 3 * fan_in);
    first.after = bias ? 3 : 1;
    std::vector<ValueId> project = {x,
                                    g.parameter("in_proj_weight", {3 * features, features}, first)};
    if (bias) project.push_back(g.parameter("in_proj_bias", {3 * features}, {.a = 0}));
    std::vector<ValueId> gather = {
        kNoValue, g.parameter("out_proj.weight", {features, features}, weight_init(fan_in))};
    if (bias) {
      gather.push_back(g.parameter("out_proj.bias", {features}, bias_init(fan_in)));
      g.graph().values.back().reinitialise({.a = 0});
    }
    gather[0] = g.apply("attention", {g.apply("linear", project)}, Attention{num_heads, causal});
    return g.apply("linear", gather);
  }

  std::string torch(const Shape& x) const {
    return PythonCall("MultiheadAttention")
        .arg(x.back())
        .arg(num_heads)
        .keys(keys().arguments(*this), 1)
        .str();
  }
};

}  // namespace

LayerType multihead_attention() {
  return layer_type<MultiheadAttention>("multihead_attention",
                                        "Self-attention over a sequence: [N, L, E] to [N, L, E].");
}

}  // namespace dpt::layers
