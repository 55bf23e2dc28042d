#include "graph/passes/fuse.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/half.h"
#include "graph/attrs.h"
#include "graph/norm_rows.h"
#include "graph/operator.h"
#include "graph/passes/uses.h"

namespace dpt {
namespace {

constexpr size_t kNoNode = Uses::kNoNode;

// The operators that fusion looks for and makes.
struct Operators {
  const OperatorType &add = op("add"), &all_reduce = op("all_reduce"),
                     &batch_norm = op("batch_norm"),
                     &batch_norm_backward = op("batch_norm_backward"),
                     &batch_norm_input_gradient = op("batch_norm_input_gradient"),
                     &batch_norm_sums = op("batch_norm_sums"),
                     &batch_norm_weight_gradient = op("batch_norm_weight_gradient"),
                     &channel_sums = op("channel_sums"), &convolution = op("convolution"),
                     &convolution_relu = op("convolution_relu"), &linear = op("linear"),
                     &linear_relu = op("linear_relu"), &linear_relu_mask = op("linear_relu_mask"),
                     &linear_weight_gradient = op("linear_weight_gradient"),
                     &linear_weight_bias_gradient = op("linear_weight_bias_gradient"),
                     &matmul = op("matmul"), &matmul_relu_gradient = op("matmul_relu_gradient"),
                     &max_pool = op("max_pool"), &max_pool_bytes = op("max_pool_bytes"),
                     &max_pool_bytes_gradient = op("max_pool_bytes_gradient"),
                     &max_pool_gradient = op("max_pool_gradient"), &moments = op("moments"),
                     &relu = op("relu"), &relu_gradient = op("relu_gradient"),
                     &sum_rows = op("sum_rows"), &update_running = op("update_running");
};
const Operators& ops() {
  static const Operators operators;
  return operators;
}

const BatchNorm& norm_of(const GraphNode& n) { return std::any_cast<const BatchNorm&>(n.attrs); }
BatchNorm& norm_of(GraphNode& n) { return std::any_cast<BatchNorm&>(n.attrs); }

class Fusion {
 public:
  explicit Fusion(Graph& graph) : graph_(graph), uses_(graph), dropped_(graph.nodes.size()) {}

  void run(void (Fusion::*fuse)(size_t node)) {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) (this->*fuse)(i);
    graph_.erase_nodes(dropped_);
  }

  // Fuses a relu with the batch_norm, or the batch_norm and add, before it.
  void relu(size_t node) {
    const GraphNode& n = graph_.nodes[node];
    if (n.op != &ops().relu) return;
    if (const size_t norm = plain_norm(n.in[0], node); norm != kNoNode) {
      take(node, ops().batch_norm, norm, graph_.nodes[norm].in);
      norm_of(graph_.nodes[node]).relu = true;
      return;
    }
    const size_t add = only_for(n.in[0], node, ops().add);
    if (add == kNoNode || graph_.nodes[add].in.size() != 2) return;
    const DType type = graph_[n.in[0]].desc.dtype;
    for (size_t i = 0; i < 2; ++i) {
      const size_t norm = plain_norm(graph_.nodes[add].in[i], node);
      if (norm == kNoNode) continue;
      std::vector<ValueId> in = graph_.nodes[norm].in;
      in.insert(in.begin() + 1, graph_.nodes[add].in[1 - i]);
      take(node, ops().batch_norm, norm, in);
      BatchNorm& attrs = norm_of(graph_.nodes[node]);
      attrs.add = attrs.relu = true;
      if (is_half(type)) attrs.between = type;
      dropped_[add] = true;
      return;
    }
  }

  void product_relu(size_t node) {
    GraphNode& n = graph_.nodes[node];
    if (n.op != &ops().relu) return;
    for (const auto& [product, fused] : {std::pair{&ops().linear, &ops().linear_relu},
                                         {&ops().convolution, &ops().convolution_relu}}) {
      const size_t made = only_for(n.in[0], node, *product);
      if (made == kNoNode || !(product == &ops().linear || has_bias(made))) continue;
      n.layer = graph_.nodes[made].layer;
      take(node, *fused, made, graph_.nodes[made].in);
      return;
    }
  }

  // Fuses a relu gradient with the input gradient of the linear layer before it. The linear_relu
  // whose result it needs then also writes a mask.
  void relu_gradient(size_t node) {
    GraphNode& n = graph_.nodes[node];
    if (n.op != &ops().relu_gradient) return;
    const ValueId y = n.in[0];
    const size_t made = uses_.maker(y), product = only_for(n.in[1], node, ops().matmul);
    if (made == kNoNode || product == kNoNode || graph_.nodes[product].in.size() != 2) return;
    GraphNode& forward = graph_.nodes[made];
    if (forward.op != &ops().linear_relu) return;
    const TensorDesc mask = ops().linear_relu_mask.infer(descs_of(forward.in), {})[1];
    graph_.values.push_back({.name = graph_[y].name + ".mask", .desc = mask});
    forward.op = &ops().linear_relu_mask;
    forward.out.push_back(static_cast<ValueId>(graph_.values.size()) - 1);
    std::vector<ValueId> in = graph_.nodes[product].in;
    in.insert(in.end(), {y, forward.out[1]});
    take(node, ops().matmul_relu_gradient, product, in);
    n.attrs = ReluMask{graph_[forward.in[0]].desc.shape.back(), forward.in.size() > 2};
  }

  // Fuses a bias gradient, the sum of dy's rows, with the weight gradient dy^T x.
  void bias_gradient(size_t node) {
    const GraphNode& sum = graph_.nodes[node];
    if (sum.op != &ops().sum_rows) return;
    for (const size_t i : uses_.readers(sum.in[0])) {
      GraphNode& n = graph_.nodes[i];
      if (i > node || n.op != &ops().linear_weight_gradient || n.in[0] != sum.in[0] ||
          n.part != sum.part)
        continue;
      n.op = &ops().linear_weight_bias_gradient;
      n.out.push_back(sum.out[0]);
      dropped_[node] = true;
      return;
    }
  }

  // Stores the indices of max pooling as bytes if only its gradient reads them.
  void pool_indices(size_t node) {
    GraphNode& n = graph_.nodes[node];
    if (n.op != &ops().max_pool) return;
    const Window& w = std::any_cast<const Pool&>(n.attrs).window;
    const ValueId indices = n.out[1];
    const size_t readers = uses_.count(indices);
    const size_t gradient = reader(indices, ops().max_pool_gradient);
    // cuDNN's indices are signed bytes.
    constexpr int64_t kMost = 128;
    int64_t elements = 1;
    for (const int64_t k : w.kernel) elements = std::min(elements * k, kMost + 1);
    if (elements > kMost || readers > 1 || (readers == 1) != (gradient != kNoNode)) return;
    n.op = &ops().max_pool_bytes;
    graph_.values[static_cast<size_t>(indices)].desc.dtype = DType::u8;
    if (readers == 1) graph_.nodes[gradient].op = &ops().max_pool_bytes_gradient;
  }

  // Fuses x -> channel_sums -> all_reduce -> moments and update_running with the norm that reads
  // the moments.
  void training(size_t node) {
    GraphNode& n = graph_.nodes[node];
    if (n.op != &ops().batch_norm || norm_of(n).training) return;
    const size_t images = norm_of(n).add ? 2 : 1;
    const size_t moments = made_by(n.in[images], node, ops().moments);
    if (moments == kNoNode) return;
    const ValueId all = graph_.nodes[moments].in[0];
    const size_t sum = made_by(all, node, ops().all_reduce);
    if (sum == kNoNode) return;
    const size_t sums = only_for(graph_.nodes[sum].in[0], node, ops().channel_sums);
    if (sums == kNoNode || graph_.nodes[sums].in[0] != n.in[0]) return;
    size_t update = kNoNode;
    for (const size_t i : uses_.readers(all))
      if (i < node && graph_.nodes[i].op == &ops().update_running) update = i;
    if (uses_.count(all) != (update == kNoNode ? 1 : 2)) return;
    n.in.erase(n.in.begin() + static_cast<std::ptrdiff_t>(images));
    n.out.push_back(graph_.nodes[moments].out[0]);
    if (update != kNoNode) {
      const GraphNode& u = graph_.nodes[update];
      n.in.insert(n.in.end(), u.in.begin() + 1, u.in.end());
      n.out.insert(n.out.end(), u.out.begin(), u.out.end());
      dropped_[update] = true;
    }
    norm_of(n).training = true;
    for (const size_t i : {sums, sum, moments}) dropped_[i] = true;
  }

  // Fuses the gradients of a batch_norm{training}: dy -> [dr] -> sums -> dw, db and dx.
  void batch_norm_backward(size_t node) {
    GraphNode& n = graph_.nodes[node];
    if (n.op != &ops().batch_norm_input_gradient) return;
    if (!norm_of(n).batch || n.in.size() < 5) return;
    const ValueId x = n.in[1], moments = n.in[2], w = n.in[4];
    const size_t all = only_for(n.in[3], node, ops().all_reduce);
    const size_t norm = uses_.maker(moments);
    if (all == kNoNode || norm == kNoNode) return;
    const GraphNode& forward = graph_.nodes[norm];
    if (forward.op != &ops().batch_norm) return;  // the moments are those of all shards
    const ValueId sums = graph_.nodes[all].in[0], y = forward.out[0];
    const size_t made = uses_.maker(sums), weight = reader(sums, ops().batch_norm_weight_gradient);
    if (weight == kNoNode || graph_.nodes[weight].part != graph_.nodes[node].part ||
        uses_.count(sums) != 2)
      return;
    const GraphNode& before = graph_.nodes[made];
    const bool adds = norm_of(before).add, relu = norm_of(forward).relu;
    norm_of(n).add = adds;
    norm_of(n).relu = relu;
    n.op = &ops().batch_norm_backward;
    n.in = {adds ? before.in[0] : n.in[0], x, moments, w};
    if (relu) n.in.push_back(y);
    if (adds && before.in.size() > 4) n.in.push_back(before.in[4]);
    const std::vector<ValueId>& weights = graph_.nodes[weight].out;
    n.out.insert(n.out.end(), weights.begin(), weights.end());
    if (adds) n.out.push_back(before.out[0]);
    for (const size_t i : {made, all, weight}) dropped_[i] = true;
  }

  // Fuses the gradients of a layer or group norm's input and weights.
  void norm_backward(size_t node) {
    GraphNode& n = graph_.nodes[node];
    const auto* s = std::any_cast<RowNorm>(&n.attrs);
    if (s == nullptr) return;
    const RowNormNames& names = names_of(*s);
    if (names.backward.empty() || n.op->name != names.input_gradient || n.in.size() < 5) return;
    const size_t weight = reader(n.in[2], op(names.weight_gradient));
    if (weight == kNoNode || graph_.nodes[weight].part != n.part ||
        !std::equal(n.in.begin(), n.in.begin() + 4, graph_.nodes[weight].in.begin()))
      return;
    const std::vector<ValueId>& weights = graph_.nodes[weight].out;
    n.op = &op(names.backward);
    n.out.insert(n.out.end(), weights.begin(), weights.end());
    dropped_[weight] = true;
  }

  void sum_of_gradients(size_t node) {
    GraphNode& n = graph_.nodes[node];
    if (n.op != &ops().batch_norm_sums || !norm_of(n).add) return;
    const size_t add = only_for(n.in[0], node, ops().add);
    if (add == kNoNode || graph_.nodes[add].in.size() != 2) return;
    n.in[0] = graph_.nodes[add].in[0];
    n.in.push_back(graph_.nodes[add].in[1]);
    dropped_[add] = true;
  }

 private:
  // The node that computes v if it is an `op` in the same part as `reader`, else kNoNode.
  size_t made_by(ValueId v, size_t reader, const OperatorType& op) const {
    const size_t made = uses_.maker(v);
    const bool fits = made != kNoNode && graph_.nodes[made].op == &op &&
                      graph_.nodes[made].part == graph_.nodes[reader].part;
    return fits ? made : kNoNode;
  }
  // A node with operator `op` that reads v, or kNoNode.
  size_t reader(ValueId v, const OperatorType& op) const {
    for (const size_t i : uses_.readers(v))
      if (graph_.nodes[i].op == &op) return i;
    return kNoNode;
  }
  // As made_by(), if v has no other reader.
  size_t only_for(ValueId v, size_t reader, const OperatorType& op) const {
    return uses_.count(v) == 1 ? made_by(v, reader, op) : kNoNode;
  }
  // As only_for(), for a batch norm that does nothing else.
  size_t plain_norm(ValueId v, size_t reader) const {
    const size_t norm = only_for(v, reader, ops().batch_norm);
    return norm != kNoNode && !norm_of(graph_.nodes[norm]).relu ? norm : kNoNode;
  }

  std::vector<TensorDesc> descs_of(const std::vector<ValueId>& values) const {
    std::vector<TensorDesc> out;
    for (ValueId v : values) out.push_back(graph_[v].desc);
    return out;
  }

  bool has_bias(size_t node) const { return graph_.nodes[node].in.size() > 2; }

  // Turns `node`, the last of the fused nodes, into `op` with the attributes of `first`, and drops
  // `first`.
  void take(size_t node, const OperatorType& op, size_t first, std::vector<ValueId> in) {
    graph_.nodes[node].op = &op;
    graph_.nodes[node].attrs = graph_.nodes[first].attrs;
    graph_.nodes[node].in = std::move(in);
    dropped_[first] = true;
  }

  Graph& graph_;
  Uses uses_;
  std::vector<bool> dropped_;  // for each node
};

}  // namespace

void fuse(Graph& graph) { Fusion(graph).run(&Fusion::relu); }

void fuse_gradients(Graph& graph) { Fusion(graph).run(&Fusion::sum_of_gradients); }

void fuse_batch_norms(Graph& graph) {
  Fusion(graph).run(&Fusion::training);
  Fusion(graph).run(&Fusion::batch_norm_backward);
}

void fuse_products(Graph& graph) {
  Fusion(graph).run(&Fusion::product_relu);
  Fusion(graph).run(&Fusion::relu_gradient);
  Fusion(graph).run(&Fusion::bias_gradient);
  Fusion(graph).run(&Fusion::norm_backward);
  Fusion(graph).run(&Fusion::pool_indices);
}

}  // namespace dpt
