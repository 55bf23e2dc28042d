// A spec with weights of its own, and samples for it.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "data/folder.h"
#include "formats/safetensors.h"
#include "inference/evaluation_graph.h"
#include "session/session.h"
#include "spec/spec.h"

namespace dpt {

// What a whole spec says.
struct LoadedText {
  std::vector<std::unique_ptr<SourceFile>> files;
  Spec spec;
  explicit LoadedText(const std::string& yaml) {
    const Folder folder;
    Diagnostics d;
    spec = load_spec(folder.write("t.yaml", yaml), {}, registries(), files, d);
    REQUIRE_MESSAGE(d.ok(), d.render());
  }
};

// A spec of this model with a loss; its data do not matter.
inline std::string with_model(const std::string& model, const std::string& loss = "mse_loss") {
  return "data: {dataset: {random: {samples: 2, in_features: 2, out_features: 2}}, batch_size: 1}\n"
         "model: " +
         model + "\nloss: " + loss + "\noptimizer: sgd\n";
}

// The tensors of a graph's state_dict in memory, each with its values.
struct Weights {
  std::vector<std::vector<float>> values;
  std::vector<NamedTensor> list;

  // Values of a wave, so that no two are equal; running variances are above 0.
  Weights(const Spec& spec, const TensorDesc& sample) {
    const Graph graph = evaluation_graph(spec, sample, 1);
    int n = 0;
    for (const ValueId v : graph.state()) {
      const Value& value = graph[v];
      const auto count = static_cast<size_t>(value.desc.shape.elements());
      std::vector<float>& x = values.emplace_back(std::max<size_t>(count, 2));
      for (float& e : x) e = 0.5F * static_cast<float>((++n * 37) % 41 - 20) / 20;
      if (value.name.ends_with("running_var"))
        for (float& e : x) e = 1 + std::abs(e);
      list.push_back({.name = value.name,
                      .desc = {value.desc.dtype, value.desc.shape},
                      .data = reinterpret_cast<const std::byte*>(x.data())});
    }
  }
};

}  // namespace dpt
