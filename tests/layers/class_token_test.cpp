#include <doctest/doctest.h>

#include "graph/interpret.h"
#include "layers/golden.h"
#include "layers/lowered.h"

namespace dpt {

TEST_CASE("class_token puts its row in front of each sequence") {
  CHECK(torch_layer("model: [class_token]", {2, 7, 3}) == "ClassToken(3)");
  ModelText text("model: [class_token]");
  const Graph graph =
      build_graph(text.spec, {.input = real({2, 2, 3}), .loss = false, .differentiate = false},
                  text.diagnostics);
  REQUIRE_MESSAGE(text.diagnostics.ok(), text.diagnostics.render());
  const ValueId weight = graph.parameters.at(0);
  CHECK(graph[weight].name == "0.weight");
  CHECK(graph[weight].desc == real({1, 3}));
  CHECK(graph[weight].origin->init.kind == Init::Kind::constant);
  CHECK(graph[weight].origin->init.a == 0);

  std::vector<HostTensor> values = golden::in_double(graph);
  golden::fill(values[static_cast<size_t>(graph.input)], {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  golden::fill(values[static_cast<size_t>(weight)], {-1, -2, -3});
  run_graph(graph, values);
  HostTensor& y = values[static_cast<size_t>(graph.output)];
  CHECK(y.desc.shape == Shape{2, 3, 3});
  CHECK(golden::content(y) == std::vector<double>{-1, -2, -3, 1, 2, 3, 4, 5, 6,  //
                                                  -1, -2, -3, 7, 8, 9, 10, 11, 12});
}

TEST_CASE("class_token refuses what is no sequence") {
  CHECK(complaint(lowered("model: [class_token]", real({2, 7}))) ==
        "error: class_token takes sequences f32[N, L, E], not f32[2, 7]; an image [N, C, H, W] "
        "becomes one by flatten: {start_dim: 2} and permute: [0, 2, 1]");
}

}  // namespace dpt
