#include "session/own_weights.h"

#include <utility>

#include <fmt/format.h>

namespace dpt {
namespace {

std::vector<UpdateRange> buffers(const CompiledModel& model, bool f32) {
  std::vector<UpdateRange> out;
  for (size_t i = 0; i < model.graph.buffers.size(); ++i) {
    const TensorDesc& desc = model.graph[model.graph.buffers[i]].desc;
    const size_t begin = model.layout.buffer_offset[i];
    if ((desc.dtype == DType::f32) == f32)
      out.push_back({begin, begin + desc.bytes() / sizeof(float)});
  }
  return out;
}

}  // namespace

void check_own_weights(const RunSettings& settings, const Devices& devices,
                       const RunPrecision& precision, Diagnostics& d) {
  const Spec& spec = settings.spec;
  if (!devices.topology.replicas_own_weights()) return;
  const std::string_view mode = settings.mode->name;
  const auto refuse = [&](std::string_view key, std::string_view why) {
    d.error(spec.at(key), fmt::format("{} {}", key, why));
  };
  if (spec.sync_batch_norm)
    refuse("sync_batch_norm",
           fmt::format("sums over all replicas in every step, but in mode '{}' replicas only meet "
                       "to average their weights: leave it out, or write `parallel: ddp`",
                       mode));
  if (precision.scaler.on)
    d.error(spec.at("precision"),
            fmt::format("precision: in mode '{}' one replica's gradients may overflow while the "
                        "others' do not, so there is no common loss scale; use bf16",
                        mode));
  for (const auto& [key, wanted] : {std::pair("log.grad_norms", spec.log.grad_norms),
                                    std::pair("log.noise_scale", spec.log.noise_scale)})
    if (wanted)
      refuse(key, fmt::format("measures the sum of all replicas' gradients, which mode '{}' never "
                              "computes: leave it out, or write `parallel: ddp`",
                              mode));
  const int64_t every = devices.topology.average_every;
  for (const auto& [key, steps] : {std::pair("evaluate.every_steps", spec.evaluate.every_steps),
                                   std::pair("save.every_steps", spec.save.every_steps)})
    if (steps % every != 0)
      refuse(key,
             fmt::format("is {}, but replicas only have equal weights after every {} steps and "
                         "at the end of an epoch: use a multiple of {}",
                         steps, every, every));
}

UpdateRange averaged_parameters(const CompiledModel& model, const Topology& topology, int worker) {
  return part_of({0, model.layout.trainable}, topology, worker);
}

std::vector<UpdateRange> averaged_buffers(const CompiledModel& model, const Topology& topology,
                                          int worker) {
  std::vector<UpdateRange> out = buffers(model, true);
  for (UpdateRange& range : out) range = part_of(range, topology, worker);
  return out;
}

std::vector<UpdateRange> copied_buffers(const CompiledModel& model, int worker) {
  return worker == 0 ? buffers(model, false) : std::vector<UpdateRange>();
}

}  // namespace dpt
