#include "session/update_partition.h"

#include <algorithm>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/kernels.h"
#include "graph/passes/layouts.h"
#include "layers/lowered.h"

namespace dpt {
namespace {

struct Compiled {
  FlatLayout layout;
  Program program;
};

Compiled compiled(const std::string& model, TensorDesc x, TensorDesc y, bool fuse) {
  ModelText text(model);
  Graph graph = build_graph(text.spec, {.input = x, .target = y}, text.diagnostics);
  REQUIRE(text.diagnostics.ok());
  choose_layouts(graph);
  Compiled out;
  out.layout = flat_layout(
      graph, fuse ? parameters_with_fusible_gradients(graph, cpu_kernels()) : std::vector<bool>());
  out.program = compile(std::move(graph), cpu_kernels(), out.layout);
  return out;
}

TEST_CASE("every element of every trained parameter is updated by one worker, once") {
  for (const bool fuse : {false, true})
    for (const int workers : {1, 2, 3, 7, 40}) {
      const Compiled c =
          compiled("model: [{linear: 70}, layer_norm, relu, {linear: 33}, {linear: 5}]",
                   real({6, 90}), real({6, 5}), fuse);
      CAPTURE(workers);
      CAPTURE(fuse);
      std::vector<int> times(c.layout.trainable);
      const auto shares =
          partition_update(c.program, c.layout, 100, Topology{.workers_per_device = workers});
      REQUIRE(shares.size() == static_cast<size_t>(workers));
      for (const auto& share : shares)
        for (const UpdatePiece& p : share) {
          if (p.gradient_instruction >= 0)
            CHECK(p.end - p.begin == static_cast<size_t>(p.rows * p.columns));
          for (size_t i = p.begin; i < p.end; ++i) ++times[i];
        }
      const Graph& graph = c.program.graph;
      for (size_t i = 0; i < graph.parameters.size(); ++i)
        for (int64_t k = 0; k < graph[graph.parameters[i]].desc.shape.elements(); ++k)
          if (times[c.layout.offset[i] + static_cast<size_t>(k)] != 1)
            FAIL("parameter ", i, " element ", k);
    }
}

TEST_CASE("a matrix that is updated as a whole is one piece of one worker") {
  for (const int workers : {1, 2, 3, 7, 40}) {
    const Compiled c =
        compiled("model: [{linear: 70}, layer_norm, relu, {linear: 33}, {linear: 5}]",
                 real({6, 90}), real({6, 5}), false);
    const Graph& graph = c.program.graph;
    std::vector<UpdatedMatrix> matrices;
    for (size_t i = 0; i < graph.parameters.size(); ++i)
      if (const Shape& shape = graph[graph.parameters[i]].desc.shape; shape.rank() == 2)
        matrices.push_back(
            {.begin = c.layout.offset[i], .rows = shape[0], .columns = shape[1], .group = 0});
    std::ranges::sort(matrices, {}, &UpdatedMatrix::begin);
    REQUIRE(matrices.size() == 3);
    const auto shares = partition_update(c.program, c.layout, 100,
                                         Topology{.workers_per_device = workers}, matrices);
    std::vector<int> times(c.layout.trainable), whole(matrices.size());
    size_t workspace = 0;
    for (const auto& share : shares) {
      workspace = std::max(workspace, matrix_workspace(share, matrices));
      for (const UpdatePiece& p : share) {
        for (size_t i = p.begin; i < p.end; ++i) ++times[i];
        if (p.matrix < 0) continue;
        ++whole[static_cast<size_t>(p.matrix)];
        CHECK(p.begin == matrices[static_cast<size_t>(p.matrix)].begin);
        CHECK(p.end == matrices[static_cast<size_t>(p.matrix)].end());
      }
    }
    CAPTURE(workers);
    CHECK(whole == std::vector<int>(matrices.size(), 1));
    CHECK(workspace == size_t{3} * 70 * 90 + size_t{2} * 70 * 70);
    for (size_t i = 0; i < graph.parameters.size(); ++i)
      for (int64_t k = 0; k < graph[graph.parameters[i]].desc.shape.elements(); ++k)
        if (times[c.layout.offset[i] + static_cast<size_t>(k)] != 1)
          FAIL("parameter ", i, " element ", k);
  }
}

TEST_CASE("weights of linear layers are fused where a kernel makes rows; nothing else is") {
  const Compiled c =
      compiled("model: [{linear: 70}, layer_norm, {linear: 5}]", real({6, 90}), real({6, 5}), true);
  const bool rows = !c.program.update.empty();  // not on a CPU without hand-written kernels
  const std::vector<bool> wanted =
      rows ? std::vector<bool>{true, false, false, false, true, false} : std::vector<bool>(6);
  CHECK(c.layout.gradient_in_update == wanted);
  CHECK(c.layout.stored <= c.layout.trainable);
  CHECK((c.layout.stored < c.layout.trainable) == rows);
}

TEST_CASE("workers get about the same work") {
  const Compiled c =
      compiled("model: [{linear: 256}, {linear: 256}]", real({6, 256}), real({6, 256}), true);
  if (c.program.update.empty()) return;
  const auto shares = partition_update(c.program, c.layout, 100, Topology{.workers_per_device = 2});
  // Two equal matrices, of which the first, where zeros are left out, counts 0.78 of the second in
  // what is not the update: the cut lies in the one that comes first in the buffers, the second.
  size_t first = 0;
  for (const UpdatePiece& p : shares[0]) first += p.end - p.begin;
  CHECK(first > 50000);
  CHECK(first < 65536);
}

}  // namespace
}  // namespace dpt
