#include "train/checkpoint.h"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>

#include "backend/cpu/half_kernels.h"
#include "base/fail.h"
#include "base/safetensors.h"

namespace dpt {
namespace {

// A parameter's or buffer's memory: every program has them at the same place.
std::span<std::byte> bytes_of(const Session& s, const Buffers& buffers, ValueId v) {
  const size_t offset = s.programs.begin()->second.place[static_cast<size_t>(v)].offset;
  return {reinterpret_cast<std::byte*>(buffers.weights()) + offset, s.graph[v].desc.bytes()};
}

std::span<float> weights_of(const Session& s, const Buffers& buffers, ValueId v) {
  const std::span<std::byte> bytes = bytes_of(s, buffers, v);
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

// To and from memory; `bytes` as in torch's file.
void put(const Session& s, const Buffers& buffers, ValueId v, std::span<const std::byte> bytes) {
  const TensorDesc& d = s.graph[v].desc;
  copy_layout(d.shape, size_of(d.dtype), Layout::plain, bytes.data(), d.layout,
              bytes_of(s, buffers, v).data());
}

std::vector<std::byte> get(const Session& s, const Buffers& buffers, ValueId v) {
  const TensorDesc& d = s.graph[v].desc;
  const std::span<const std::byte> from = bytes_of(s, buffers, v);
  std::vector<std::byte> out(from.size());
  copy_layout(d.shape, size_of(d.dtype), d.layout, from.data(), Layout::plain, out.data());
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
  const std::vector<ValueId> state = s.graph.state();
  for (ValueId id : state) {
    const Value& v = s.graph[id];
    const TensorDesc wanted{v.desc.dtype, v.desc.shape};
    const SafeTensors::Entry* e = find(file, v.name);
    if (!e)
      wrong.push_back(fmt::format("it has no '{}'", v.name));
    else if (e->desc != wanted)
      wrong.push_back(fmt::format("its '{}' is {}{}, the model's is {}{}", v.name,
                                  name_of(e->desc.dtype), e->desc.shape.str(),
                                  name_of(wanted.dtype), wanted.shape.str()));
    else
      put(s, buffers, id, {e->data, wanted.bytes()});
  }
  if (file.entries().size() > state.size() && wrong.empty())
    wrong.push_back(
        fmt::format("it has {} tensors, the model has {}", file.entries().size(), state.size()));
  if (!wrong.empty())
    fail(Fault::data, "{} does not fit the model: {}", path, fmt::join(wrong, "; "));
}

// Copies of the largest parameter would stay in the heap for the whole run.
void give_heap_back() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

// As torch.nn.init.trunc_normal_: all are drawn again as long as one is outside.
void draw_truncated(const Init& init, Generator& generator, std::span<float> out) {
  const auto low = static_cast<float>(init.low), high = static_cast<float>(init.high);
  const auto outside = [&](float v) { return v < low || v > high; };
  generator.normal_(out, init.a, init.b);
  std::vector<float> more(out.size());
  while (std::ranges::any_of(out, outside)) {
    generator.normal_(more, init.a, init.b);
    for (size_t i = 0; i < out.size(); ++i)
      if (outside(out[i])) out[i] = more[i];
  }
}

}  // namespace

void draw(const Init& init, const Shape& shape, Generator& generator, std::span<float> out) {
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
    case Init::Kind::truncated:
      draw_truncated(init, generator, out);
      break;
  }
  if (init.zero_row >= 0) {
    const auto row = static_cast<size_t>(shape.tail(1).elements());
    std::ranges::fill(out.subspan(static_cast<size_t>(init.zero_row) * row, row), 0.0F);
  }
}

void draw_parameters(const Graph& graph, Generator& generator,
                     const std::function<void(ValueId, std::span<const float>)>& put) {
  const auto draw_one = [&](ValueId v, const Init& init) {
    const Shape shape = graph[v].desc.shape;
    std::vector<float> values(static_cast<size_t>(shape.elements()));
    draw(init, shape, generator, values);
    put(v, values);
  };
  for (ValueId v : graph.parameters) draw_one(v, graph[v].init);
  for (ValueId v : graph.parameters)
    if (graph[v].reinit) draw_one(v, *graph[v].reinit);
}

void initialise(const Session& s, const Buffers& buffers, Generator& generator) {
  draw_parameters(s.graph, generator, [&](ValueId v, std::span<const float> values) {
    put(s, buffers, v, std::as_bytes(values));
  });
  // The memory is zeroed, and only real numbers begin with another one.
  for (ValueId v : s.graph.buffers)
    if (s.graph[v].init.a != 0)
      std::ranges::fill(weights_of(s, buffers, v), static_cast<float>(s.graph[v].init.a));
  if (!s.spec.initial_weights.empty()) load(s, buffers);
  if (s.precision.level == PrecisionPolicy::Level::pure)
    round_weights(s.precision.half, buffers.weights(), s.layout.trainable);
  const auto first = static_cast<float>(s.optimizer->initial_state(s.spec.optimizer.settings));
  if (first != 0)
    for (int i = 0; i < buffers.sizes().states; ++i)
      std::fill_n(buffers.state(i), buffers.sizes().trainable, first);
  give_heap_back();
}

void save_model(const Session& s, const Buffers& buffers, const Outcome& outcome,
                const std::string& path) {
  std::vector<NamedTensor> tensors;
  std::vector<std::vector<std::byte>> values;  // moving one leaves its elements where they are
  for (ValueId v : s.graph.state()) {
    values.push_back(get(s, buffers, v));
    tensors.push_back(
        {s.graph[v].name, {s.graph[v].desc.dtype, s.graph[v].desc.shape}, values.back().data()});
  }
  std::map<std::string, std::string> facts = {
      {"format", "pt"}, {"producer", "dptrain"}, {"spec", s.spec.name}};
  if (s.scaler.on) {  // as torch.amp.GradScaler's state_dict names them
    facts["scaler.scale"] = fmt::format("{}", outcome.scale);
    facts["scaler._growth_tracker"] = fmt::format("{}", outcome.growth_tracker);
  }
  write_safetensors(path, tensors, facts);
}

}  // namespace dpt
