// embedding: looks up a learned row for each index, i32 [N, ...] -> [N, ..., embedding_dim].
#include "base/fail.h"
#include "formats/python_call.h"
#include "graph/attrs.h"
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct EmbeddingLayer {
  static constexpr Usage kUsage{
      "torch.nn.Embedding",
      "- embedding: {num_embeddings: 1000, embedding_dim: 64, padding_idx: 0}"};

  int64_t num_embeddings = 0, embedding_dim = 0;
  std::optional<int64_t> padding_idx;

  static KeyTable<EmbeddingLayer> keys() {
    return KeyTable<EmbeddingLayer>()
        .required("num_embeddings", &EmbeddingLayer::num_embeddings,
                  "number of rows, which is the size of the vocabulary", kSize)
        .required("embedding_dim", &EmbeddingLayer::embedding_dim, "size of each row", kSize)
        .optional(
            "padding_idx", &EmbeddingLayer::padding_idx,
            "a row that starts as zeros and is never trained; negative: counted from the end");
  }

  static void check(const EmbeddingLayer& e, const Owner& owner, Diagnostics& d) {
    if (e.padding_idx && (*e.padding_idx < -e.num_embeddings || *e.padding_idx >= e.num_embeddings))
      d.error(owner.at("padding_idx"), fmt::format("padding_idx is {}, but there are {} rows",
                                                   *e.padding_idx, e.num_embeddings));
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    const TensorDesc in = g.desc(x);
    if (in.dtype != DType::i32)
      fail(Fault::spec,
           "embedding takes row indices (i32), not {}{}: use a data set of tokens, without "
           "transforms",
           name_of(in.dtype), in.shape.str());
    if (in.shape.rank() == Shape::kMaxRank)
      fail(Fault::spec, "embedding: an input of {} already has the largest number of dimensions",
           in.shape.str());
    const ValueId weight =
        g.parameter("weight", {num_embeddings, embedding_dim},
                    {.kind = Init::Kind::normal, .a = 0, .b = 1, .zero_row = padding_row()});
    return g.apply("embedding", {x, weight}, Embedding{padding_row(), num_embeddings});
  }

  std::string torch(const Shape&) const {
    return PythonCall("nn.Embedding")
        .arg(num_embeddings)
        .arg(embedding_dim)
        .keys(keys().arguments(*this), 2)
        .str();
  }

 private:
  int64_t padding_row() const {  // -1: none
    if (!padding_idx) return -1;
    return *padding_idx < 0 ? *padding_idx + num_embeddings : *padding_idx;
  }
};

}  // namespace

LayerType embedding() {
  return layer_type<EmbeddingLayer>(
      "embedding",
      "Replaces each token number with a learned row: [N, L] to [N, L, embedding_dim].");
}

}  // namespace dpt::layers
