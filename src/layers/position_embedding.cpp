// position_embedding: adds a learned row to each position of a sequence, [N, T, E] -> [N, T, E], as
// in GPT (Radford et al., 2018). PyTorch has no such module; it corresponds to an nn.Embedding of
// the positions, and is initialized like one.
#include "base/fail.h"
#include "formats/python_call.h"
#include "graph/attrs.h"
#include "layers/layer.h"

namespace dpt::layers {
namespace {

constexpr std::string_view kTorch = R"py(class PositionEmbedding(nn.Embedding):
    """Adds a learned row for each place of a sequence [N, T, E]."""

    def forward(self, x):
        return x + self.weight[: x.shape[1]]
)py";

struct PositionEmbeddingLayer {
  static constexpr std::string_view kTorchClass = kTorch;
  static constexpr Usage kUsage{"",
                                "- position_embedding\n"
                                "- position_embedding: {num_embeddings: 256}"};

  int64_t num_embeddings = 0;

  static KeyTable<PositionEmbeddingLayer> keys() {
    return KeyTable<PositionEmbeddingLayer>().optional(
        "num_embeddings", &PositionEmbeddingLayer::num_embeddings,
        "number of rows, at least the sequence length; 0: the sequence length", kSizeOrZero);
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    const TensorDesc in = g.desc(x);
    if (in.dtype != DType::f32 || in.shape.rank() != 3)
      fail(Fault::spec,
           "position_embedding takes sequences f32[N, T, E], not {}{}: put an embedding before it?",
           name_of(in.dtype), in.shape.str());
    if (rows(in.shape) < in.shape[1])
      fail(Fault::spec,
           "position_embedding: num_embeddings is {}, but sequences of {} have {} positions",
           num_embeddings, in.shape.str(), in.shape[1]);
    const ValueId weight = g.parameter("weight", {rows(in.shape), in.shape[2]},
                                       {.kind = Init::Kind::normal, .a = 0, .b = 1});
    return g.apply("position_embedding", {x, weight}, PositionEmbedding{rows(in.shape)});
  }

  std::string torch(const Shape& x) const {
    return PythonCall("PositionEmbedding").arg(rows(x)).arg(x[2]).str();
  }

 private:
  int64_t rows(const Shape& x) const { return num_embeddings > 0 ? num_embeddings : x[1]; }
};

}  // namespace

LayerType position_embedding() {
  return layer_type<PositionEmbeddingLayer>("position_embedding",
                                            "Adds a learned row for each position of a sequence.");
}

}  // namespace dpt::layers
