// For tests that are text in, text out: a spec of which only the model and the loss are looked at.
#pragma once

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "layers/initialisation.h"
#include "layers/model.h"

namespace dpt {

struct NoKeys {
  static KeyTable<NoKeys> keys() { return {}; }
};

// All layers and losses; of everything else one word that does nothing.
inline Registries model_words() {
  static const RegistryEntry nothing = registry_entry<NoKeys>("nothing", "");
  return {.layers = layer_registry(),
          .losses = loss_registry(),
          .optimizers = {&nothing},
          .datasets = {&nothing},
          .initialisations = initialisation_registry()};
}

// A spec with what its places point into.
struct ModelText {
  SourceFile file;
  Diagnostics diagnostics{};
  Spec spec{};

  // `loss` comes last, so that places in `model` are those in the text that the test wrote.
  explicit ModelText(const std::string& model, const std::string& loss = "mse_loss")
      : file{"t.yaml", model + "\nloss: " + loss +
                           "\ndata: {dataset: nothing, batch_size: 4}\noptimizer: nothing\n"} {
    spec = read_spec(read_yaml(file, diagnostics), model_words(), diagnostics);
  }
};

inline TensorDesc real(Shape s) { return {DType::f32, s}; }
inline TensorDesc numbers(Shape s) { return {DType::i32, s}; }

// The graph that a model asks for, or what is wrong with it. Not differentiated.
inline std::string lowered(const std::string& model, TensorDesc x,
                           GraphBuilder::Mode mode = GraphBuilder::Mode{}) {
  ModelText text(model);
  if (!text.diagnostics.ok()) return text.diagnostics.render();
  const Graph graph =
      build_graph(text.spec, {.input = x, .mode = mode, .loss = false, .differentiate = false},
                  text.diagnostics);
  return text.diagnostics.ok() ? graph.str() : text.diagnostics.render();
}

// The same with the loss, on the output of `model`.
inline std::string lowered_loss(const std::string& loss, TensorDesc output, TensorDesc target,
                                int64_t classes = 0) {
  ModelText text("model: [identity]", loss);
  if (!text.diagnostics.ok()) return text.diagnostics.render();
  const Graph graph = build_graph(
      text.spec, {.input = output, .target = target, .differentiate = false, .classes = classes},
      text.diagnostics);
  return text.diagnostics.ok() ? graph.str() : text.diagnostics.render();
}

// The first layer as PyTorch, for an input of `x`.
inline std::string torch_layer(const std::string& model, Shape x) {
  ModelText text(model);
  REQUIRE_MESSAGE(text.diagnostics.ok(), text.diagnostics.render());
  const Choice& layer = text.spec.model.at(0).layer;
  return static_cast<const LayerType*>(layer.what)->torch(layer.settings, x);
}

inline std::string torch_loss(const std::string& loss) {
  ModelText text("model: [identity]", loss);
  REQUIRE_MESSAGE(text.diagnostics.ok(), text.diagnostics.render());
  return static_cast<const LossType*>(text.spec.loss.what)->torch(text.spec.loss.settings);
}

inline Divisor divisor_word(const std::string& loss) {
  ModelText text("model: [identity]", loss);
  REQUIRE_MESSAGE(text.diagnostics.ok(), text.diagnostics.render());
  return static_cast<const LossType*>(text.spec.loss.what)->divisor(text.spec.loss.settings);
}

// The first line of what lowered() says, without its place: "error: ...".
inline std::string complaint(const std::string& said) {
  const size_t at = said.find("error: ");
  return at == said.npos ? "no error:\n" + said : said.substr(at, said.find('\n') - at);
}

}  // namespace dpt
