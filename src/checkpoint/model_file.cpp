#include "checkpoint/model_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <malloc.h>

#include "backend/cpu/half_kernels.h"
#include "base/fail.h"
#include "checkpoint/named_tensors.h"
#include "formats/safetensors.h"

namespace dpt {
namespace {

std::span<float> weights_of(const CompiledModel& model, const Buffers& buffers, ValueId v) {
  const size_t offset = model.programs.begin()->second.location[static_cast<size_t>(v)].offset;
  return {buffers.weights() + offset / sizeof(float), model.graph[v].desc.bytes() / sizeof(float)};
}

// Returns freed memory to the system: copies of the largest parameter would stay in the heap
// otherwise.
void give_heap_back() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

// Calls `f` and adds to its errors where the spec names the file.
template <class F>
void naming_the_key(const RunSettings& settings, F f) {
  try {
    f();
  } catch (Error& e) {
    if (!settings.initial_weights_location.empty())
      e.during(fmt::format("reading `initial_weights` ({})", settings.initial_weights_location));
    throw;
  }
}

constexpr std::string_view kPartial =
    "; to take only what fits, write `initial_weights: {file: ..., partial: true}`";

// Only where the spec names the file: `dptrain eval` takes whole models.
std::string_view remedy_of_misfit(const RunSettings& settings) {
  return settings.initial_weights_location.empty() ? std::string_view() : kPartial;
}

// Like torch.nn.init.trunc_normal_: redraws the whole tensor while any element is outside.
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

// Draws a large parameter in parts, so that it is not in memory twice.
void draw_rows(const Graph& graph, ValueId v, const Init& init, Generator& generator,
               const PutRows& put) {
  const Shape shape = graph[v].desc.shape;
  const int64_t all = shape.rank() > 0 ? shape[0] : 1;
  const int64_t row = shape.elements() / all;
  // As many elements as a block of normal_() has, or a multiple: then parts have the values of the
  // whole, whose last 16 elements are drawn together.
  constexpr int64_t kBlock = 16, kPart = 1 << 20;
  const bool parts = init.kind != Init::Kind::truncated && shape.elements() >= 2 * kPart;
  const int64_t rows = parts ? std::max<int64_t>(1, kPart / row / kBlock) * kBlock : all;
  std::vector<float> values;
  for (int64_t first = 0, count = 0; first < all; first += count) {
    count = all - first < 2 * rows ? all - first : rows;
    Init own = init;
    if (own.zero_row < first || own.zero_row >= first + count) own.zero_row = -1;
    if (own.zero_row >= 0) own.zero_row -= first;
    values.resize(static_cast<size_t>(count * row));
    draw(own, shape.rank() > 0 ? shape.with(0, count) : shape, generator, values);
    put(v, first, values);
  }
}

std::vector<ValueId> in_order_of_draws(const Graph& graph) {
  std::vector<std::pair<size_t, ValueId>> order;
  for (size_t i = 0; i < graph.parameters.size(); ++i) {
    const ValueId v = graph.parameters[i];
    const auto after = static_cast<size_t>(graph[v].origin->init.after);
    order.emplace_back(2 * (i + after) + (after > 0 ? 1 : 0), v);
  }
  std::ranges::sort(order);
  std::vector<ValueId> out;
  for (const auto& [index, v] : order) out.push_back(v);
  return out;
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

void draw_parameters(const Graph& graph, Generator& generator, const PutRows& put) {
  for (ValueId v : in_order_of_draws(graph))
    draw_rows(graph, v, graph[v].origin->init, generator, put);
  for (ValueId v : graph.parameters)
    if (graph[v].origin->reinit) draw_rows(graph, v, *graph[v].origin->reinit, generator, put);
}

void start_average(const RunSettings& settings, const Devices& devices, const Buffers& buffers) {
  if (settings.averages() && !devices.own_states())
    std::copy_n(buffers.weights(), buffers.sizes().trainable,
                buffers.state(settings.average_state()));
}

void initialise(const RunSettings& settings, const Devices& devices, const RunPrecision& precision,
                const CompiledModel& model, const Buffers& buffers, Generator& generator,
                bool weights_of_file) {
  draw_parameters(
      model.graph, generator, [&](ValueId v, int64_t first, std::span<const float> values) {
        const TensorDesc& d = model.graph[v].desc;
        const auto to = std::as_writable_bytes(weights_of(model, buffers, v));
        if (d.shape.rank() == 0)
          std::memcpy(to.data(), values.data(), values.size_bytes());
        else
          copy_rows_to(d.shape, sizeof(float), first, std::as_bytes(values), d.layout, to.data());
      });
  // The memory is zeroed already; only nonzero initial values need writing.
  for (ValueId v : model.graph.buffers)
    if (model.graph[v].origin->init.a != 0)
      std::ranges::fill(weights_of(model, buffers, v),
                        static_cast<float>(model.graph[v].origin->init.a));
  if (weights_of_file && !settings.spec.initial_weights.empty())
    naming_the_key(settings, [&] {
      if (settings.spec.partial_weights)
        read_fitting(model, settings.spec.initial_weights, buffers, Fault::data);
      else
        read_model(model, settings.spec.initial_weights, buffers, Fault::data,
                   remedy_of_misfit(settings));
    });
  if (precision.policy.level == PrecisionPolicy::Level::pure)
    round_weights(precision.policy.half, buffers.weights(), model.layout.trainable);
  const auto first =
      static_cast<float>(settings.optimizer->initial_state(settings.spec.optimizer.settings));
  if (first != 0)
    for (int i = 0; i < buffers.sizes().states; ++i)
      std::fill_n(buffers.state(i), buffers.sizes().trainable, first);
  start_average(settings, devices, buffers);
  buffers.copy_to_replicas();
  give_heap_back();
}

void check_initial_weights(const RunSettings& settings, const CompiledModel& model) {
  if (settings.spec.initial_weights.empty()) return;
  naming_the_key(settings, [&] {
    if (settings.spec.partial_weights)
      (void)fitting_tensors(model, settings.spec.initial_weights, Fault::data);
    else
      check_model(model, settings.spec.initial_weights, Fault::data, remedy_of_misfit(settings));
  });
}

std::string partial_weights_text(const RunSettings& settings, const CompiledModel& model) {
  if (!settings.spec.partial_weights || settings.spec.initial_weights.empty()) return "";
  std::string out;
  naming_the_key(settings, [&] {
    out = fmt::format("initial weights: {}\n",
                      fitting_tensors(model, settings.spec.initial_weights, Fault::data).text);
  });
  return out;
}

void check_weights_file(const Spec& spec) {
  if (spec.initial_weights.empty()) return;
  try {
    (void)open_tensor_file(spec.initial_weights);
  } catch (Error& e) {
    e.during("reading `initial_weights`");
    throw;
  }
}

void check_weight_values(const RunSettings& settings, const CompiledModel& model) {
  if (settings.spec.initial_weights.empty()) return;
  naming_the_key(settings, [&] {
    const std::unique_ptr<const TensorFile> file = open_tensor_file(settings.spec.initial_weights);
    std::vector<std::string> taken;
    if (settings.spec.partial_weights)
      taken = fitting_tensors(model, settings.spec.initial_weights, Fault::data).names;
    std::vector<float> values;
    for (const TensorFile::Entry& e : file->entries()) {
      if (!readable_as_floats(e.desc.dtype)) continue;
      if (settings.spec.partial_weights && std::ranges::find(taken, e.name) == taken.end())
        continue;
      values.resize(static_cast<size_t>(e.desc.shape.elements()));
      read_floats(*file, e, values);
      const auto broken = std::ranges::count_if(values, [](float v) { return !std::isfinite(v); });
      if (broken > 0)
        fail(Fault::data,
             "{}: {} of the {} values of '{}' are not finite, so the loss would not be finite "
             "either; start from other weights",
             settings.spec.initial_weights, broken, values.size(), e.name);
    }
  });
}

void check_finite(const CompiledModel& model, const Buffers& buffers, int64_t epoch, int64_t step) {
  const auto broken = [](std::span<const float> values) {
    constexpr uint32_t kExponent = 0x7f800000;  // all ones: infinite or nan
    int64_t out = 0;
    for (const float v : values) out += (std::bit_cast<uint32_t>(v) & kExponent) == kExponent;
    return out;
  };
  if (broken({buffers.weights(), model.layout.trainable}) == 0) return;
  for (const NamedTensor& t : model_tensors(model, buffers)) {
    if (t.desc.dtype != DType::f32) continue;
    const auto count = static_cast<size_t>(t.desc.shape.elements());
    if (const int64_t n = broken({reinterpret_cast<const float*>(t.data), count}); n > 0)
      fail(Fault::diverged,
           "{} of the {} values of '{}' are not finite after epoch {}, step {}. These weights are "
           "not saved; lower the learning rate, or limit gradients with clip_grad_norm",
           n, count, t.name, epoch, step);
  }
}

std::map<std::string, std::string> model_facts(const RunPrecision& precision,
                                               const GradientScaler::State& scaler) {
  // Nothing from the spec: equal weights give equal files.
  std::map<std::string, std::string> facts = {{"format", "pt"}, {"producer", "dptrain"}};
  if (precision.scaler.on) {  // the names in torch.amp.GradScaler's state_dict
    facts["scaler.scale"] = fmt::format("{}", scaler.scale);
    facts["scaler._growth_tracker"] = fmt::format("{}", scaler.growth_tracker);
  }
  return facts;
}

void save_model(const RunPrecision& precision, const CompiledModel& model, const Buffers& buffers,
                const GradientScaler::State& scaler, const std::string& path, Disk& disk,
                const std::map<std::string, std::string>& more) {
  const std::vector<NamedTensor> tensors = model_tensors(model, buffers);
  // The folder may have been removed; if this fails, writing the file reports why.
  make_folders(disk, path.substr(0, path.rfind('/')));
  std::map<std::string, std::string> facts = model_facts(precision, scaler);
  facts.insert(more.begin(), more.end());
  write_safetensors(path, tensors, facts, &disk);
}

}  // namespace dpt
