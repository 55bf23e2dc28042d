#include "backend/cuda/real_nodes.h"

#include <set>
#include <string>

#include <fmt/format.h>

#include "base/fail.h"
#include "cli/spec_argument.h"
#include "data/folder.h"
#include "graph/operator.h"

namespace dpt::cuda {
namespace {

constexpr const char* kImages = R"(
data:
  dataset: {synthetic_images: {samples: 4, classes: 100, shape: [3, 32, 32]}}
  batch_size: 2
model:
  - {conv2d: {out_channels: 64, kernel_size: 7, stride: 2, padding: 3, bias: false}}
  - batch_norm2d
  - relu
  - {max_pool2d: {kernel_size: 3, stride: 2, padding: 1}}
  - residual:
      body:
        - {conv2d: {out_channels: 64, kernel_size: 3, padding: 1, bias: false}}
        - batch_norm2d
        - relu
        - {conv2d: {out_channels: 64, kernel_size: 3, padding: 1, bias: false}}
        - batch_norm2d
  - relu
  - {conv2d: {out_channels: 128, kernel_size: 3, stride: 2, padding: 1}}
  - relu
  - {conv2d: {out_channels: 128, kernel_size: 1}}
  - {avg_pool2d: 2}
  - flatten
  - {linear: 256}
  - relu
  - {linear: 100}
loss: cross_entropy
optimizer: {sgd: {lr: 0.1, momentum: 0.9}}
)";

constexpr const char* kText = R"(
data:
  dataset: {synthetic_tokens: {samples: 4, length: 33, vocabulary: 65, targets: next}}
  batch_size: 2
model:
  - {embedding: {num_embeddings: 65, embedding_dim: 256}}
  - {multihead_attention: {num_heads: 2, causal: true}}
  - layer_norm
  - {linear: 128}
  - gelu
  - {multihead_attention: {num_heads: 2}}
  - {linear: 32}
  - {multihead_attention: {num_heads: 4, causal: true}}
  - {linear: 65}
loss: {cross_entropy: {class_dim: -1}}
optimizer: {adam: 0.001}
)";

std::string key_of(const KernelQuery& q, bool tf32) {
  std::string out = fmt::format("{} {}", q.op, tf32);
  for (const auto* side : {&q.in, &q.out})
    for (const TensorDesc& d : *side)
      out += fmt::format(" {} {} {}", name_of(d.dtype), d.shape.str(), static_cast<int>(d.layout));
  return out;
}

}  // namespace

std::vector<RealNode> real_nodes() {
  const Folder folder;
  std::vector<RealNode> out;
  std::set<std::string> known;
  for (const char* yaml : {kImages, kText})
    for (const char* precision : {"fp32", "tf32", "bf16", "fp16"}) {
      const SpecArgument argument{folder.write("t.yaml", yaml),
                                  {"device=cuda", fmt::format("precision={}", precision)}};
      const auto session =
          open_session(load(argument), {.runs = false, .gpus = GpuSurvey{}, .sizes_only = true});
      for (const auto& [rows, program] : session->model.programs)
        for (const Part part : {Part::prologue, Part::forward, Part::loss, Part::backward})
          for (const Instruction& i : program.part(part)) {
            const GraphNode& n = program.graph.nodes[i.node];
            if (n.op->is(Trait::view) || n.op->name == "copy") continue;
            const KernelQuery q = query_of(program.graph, i.node, rows);
            if (known.insert(key_of(q, session->precision.tf32)).second)
              out.push_back({q, session->precision.tf32});
          }
    }
  return out;
}

}  // namespace dpt::cuda
