#include "train/checkpoint.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/fail.h"
#include "base/safetensors.h"

namespace dpt {
namespace {

std::span<float> weights_of(const Session& s, const Buffers& buffers, size_t parameter) {
  const Value& v = s.graph[s.graph.parameters[parameter]];
  return {buffers.weights() + s.layout.offset[parameter],
          static_cast<size_t>(v.desc.shape.elements())};
}

// "module." is what torch's DataParallel writes in front of every name.
const SafeTensors::Entry* find(const SafeTensors& file, const std::string& name) {
  const SafeTensors::Entry* e = file.find(name);
  return e ? e : file.find("module." + name);
}

void load(const Session& s, const Buffers& buffers) {
  const std::string& path = s.spec.initial_weights;
  const SafeTensors file = SafeTensors::read(path);
  std::vector<std::string> wrong;
  for (size_t i = 0; i < s.graph.parameters.size(); ++i) {
    const Value& v = s.graph[s.graph.parameters[i]];
    const SafeTensors::Entry* e = find(file, v.name);
    if (!e)
      wrong.push_back(fmt::format("it has no '{}'", v.name));
    else if (e->desc != v.desc)
      wrong.push_back(fmt::format("its '{}' is {}{}, the model's is {}{}", v.name,
                                  name_of(e->desc.dtype), e->desc.shape.str(),
                                  name_of(v.desc.dtype), v.desc.shape.str()));
    else
      std::copy_n(reinterpret_cast<const float*>(e->data), v.desc.shape.elements(),
                  weights_of(s, buffers, i).begin());
  }
  if (file.entries().size() > s.graph.parameters.size() && wrong.empty())
    wrong.push_back(fmt::format("it has {} tensors, the model has {}", file.entries().size(),
                                s.graph.parameters.size()));
  if (!wrong.empty())
    fail(Fault::data, "{} does not fit the model: {}", path, fmt::join(wrong, "; "));
}

}  // namespace

void draw_initial(const Value& v, Generator& generator, std::span<float> out) {
  const Init& init = v.init;
  switch (init.kind) {
    case Init::Kind::constant:
      std::ranges::fill(out, static_cast<float>(init.a));
      break;
    case Init::Kind::uniform:
      generator.uniform_(out, init.a, init.b);
      break;
    case Init::Kind::normal:
      generator.normal_(out, init.a, init.b);
      break;
  }
  if (init.zero_row >= 0) {
    const auto row = static_cast<size_t>(v.desc.shape.tail(1).elements());
    std::ranges::fill(out.subspan(static_cast<size_t>(init.zero_row) * row, row), 0.0F);
  }
}

void initialise(const Session& s, const Buffers& buffers, Generator& generator) {
  for (size_t i = 0; i < s.graph.parameters.size(); ++i)
    draw_initial(s.graph[s.graph.parameters[i]], generator, weights_of(s, buffers, i));
  if (!s.spec.initial_weights.empty()) load(s, buffers);
  const auto first = static_cast<float>(s.optimizer->initial_state(s.spec.optimizer.settings));
  if (first != 0)
    for (int i = 0; i < buffers.sizes().states; ++i)
      std::fill_n(buffers.state(i), buffers.sizes().trainable, first);
}

void save_model(const Session& s, const Buffers& buffers, const std::string& path) {
  std::vector<NamedTensor> tensors;
  for (size_t i = 0; i < s.graph.parameters.size(); ++i) {
    const Value& v = s.graph[s.graph.parameters[i]];
    tensors.push_back(
        {v.name, v.desc, reinterpret_cast<const std::byte*>(weights_of(s, buffers, i).data())});
  }
  write_safetensors(path, tensors,
                    {{"format", "pt"}, {"producer", "dptrain"}, {"spec", s.spec.name}});
}

}  // namespace dpt
