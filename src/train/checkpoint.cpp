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

// A parameter's values in torch's layout, to or from memory.
void transpose(std::span<const float> from, const Shape& shape, std::span<float> to) {
  const auto rows = static_cast<size_t>(shape[0]), columns = static_cast<size_t>(shape[1]);
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c) to[c * rows + r] = from[r * columns + c];
}

void put(const Session& s, const Buffers& buffers, size_t parameter,
         std::span<const float> values) {
  const ValueId v = s.graph.parameters[parameter];
  const std::span<float> to = weights_of(s, buffers, parameter);
  if (s.graph[v].transposed)
    transpose(values, s.graph.torch_shape(v), to);
  else
    std::ranges::copy(values, to.begin());
}

std::vector<float> get(const Session& s, const Buffers& buffers, size_t parameter) {
  const Value& v = s.graph[s.graph.parameters[parameter]];
  const std::span<const float> from = weights_of(s, buffers, parameter);
  std::vector<float> out(from.begin(), from.end());
  if (v.transposed) transpose(from, v.desc.shape, out);
  return out;
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
    const TensorDesc wanted{v.desc.dtype, s.graph.torch_shape(s.graph.parameters[i])};
    const SafeTensors::Entry* e = find(file, v.name);
    if (!e)
      wrong.push_back(fmt::format("it has no '{}'", v.name));
    else if (e->desc != wanted)
      wrong.push_back(fmt::format("its '{}' is {}{}, the model's is {}{}", v.name,
                                  name_of(e->desc.dtype), e->desc.shape.str(),
                                  name_of(wanted.dtype), wanted.shape.str()));
    else
      put(s, buffers, i,
          {reinterpret_cast<const float*>(e->data), static_cast<size_t>(wanted.shape.elements())});
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
  for (size_t i = 0; i < s.graph.parameters.size(); ++i) {
    std::vector<float> values(weights_of(s, buffers, i).size());
    draw_initial(s.graph[s.graph.parameters[i]], generator, values);
    put(s, buffers, i, values);
  }
  if (!s.spec.initial_weights.empty()) load(s, buffers);
  const auto first = static_cast<float>(s.optimizer->initial_state(s.spec.optimizer.settings));
  if (first != 0)
    for (int i = 0; i < buffers.sizes().states; ++i)
      std::fill_n(buffers.state(i), buffers.sizes().trainable, first);
}

void save_model(const Session& s, const Buffers& buffers, const std::string& path) {
  std::vector<NamedTensor> tensors;
  std::vector<std::vector<float>> values;  // moving one leaves its elements where they are
  for (size_t i = 0; i < s.graph.parameters.size(); ++i) {
    const ValueId v = s.graph.parameters[i];
    values.push_back(get(s, buffers, i));
    tensors.push_back({s.graph[v].name,
                       {s.graph[v].desc.dtype, s.graph.torch_shape(v)},
                       reinterpret_cast<const std::byte*>(values.back().data())});
  }
  write_safetensors(path, tensors,
                    {{"format", "pt"}, {"producer", "dptrain"}, {"spec", s.spec.name}});
}

}  // namespace dpt
