#include "graph/passes/stages.h"

#include <map>
#include <utility>

#include <fmt/format.h>

#include "graph/attrs.h"
#include "graph/passes/rewriter.h"

namespace dpt {
namespace {

class Copies : Rewriter {
 public:
  explicit Copies(Graph& graph) : Rewriter(graph), home_(graph.homes()) {}

  void run() {
    bool loss = false;
    each_node([&](GraphNode& n) {
      if (part_ == Part::loss && !std::exchange(loss, true)) move_output();
      for (ValueId& v : n.in) v = at(v, n.stage, n);
      push(std::move(n));
    });
  }

 private:
  // Copies the output to the last stage, where the loss reads it. The copy belongs to the forward
  // part.
  void move_output() {
    part_ = Part::forward;
    const GraphNode last = graph_.nodes.back();
    graph_.output = at(graph_.output, graph_.stages() - 1, last);
    part_ = Part::loss;
  }

  // v, or its copy in `stage`.
  ValueId at(ValueId v, int stage, const GraphNode& user) {
    const int home = home_[static_cast<size_t>(v)];
    const Role role = graph_[v].role;
    if (home == stage || (role != Role::activation && role != Role::input)) return v;
    const auto [made, first] = copies_.try_emplace({v, stage}, kNoValue);
    if (first) {
      made->second = add({.name = fmt::format("{}.on{}", graph_[v].name,
                                              graph_.stage_device[static_cast<size_t>(stage)]),
                          .desc = graph_[v].desc});
      home_.push_back(stage);
      push({.op = &op("copy"),
            .attrs = Copy{home, stage},
            .in = {v},
            .out = {made->second},
            .layer = user.layer,
            .where = user.where,
            .stage = stage});
    }
    return made->second;
  }

  std::vector<int> home_;
  std::map<std::pair<ValueId, int>, ValueId> copies_;
};

}  // namespace

void copy_between_stages(Graph& graph) {
  if (graph.stages() > 1) Copies(graph).run();
}

}  // namespace dpt
