#include "cli/plan_json.h"

#include "formats/json.h"
#include "layers/model.h"
#include "session/memory.h"
#include "train/memory_estimate.h"

namespace dpt {
namespace {

Json count(double n) { return Json::decimals(n, 0); }

Json tensors_of(const CompiledModel& model) {
  Json out = Json::array();
  const auto add = [&](ValueId id, std::string_view kind) {
    const Value& v = model.graph[id];
    const Shape& shape = v.desc.shape;
    out.push(Json{
        {"name", v.name},
        {"shape", Json::array_of(shape.extents())},
        {"elements", v.desc.shape.elements()},
        {"kind",
         kind}}.on_line(1));
  };
  for (size_t i = 0; i < model.graph.parameters.size(); ++i)
    add(model.graph.parameters[i], model.graph.gradients[i] == kNoValue ? "frozen" : "trained");
  for (const ValueId v : model.graph.buffers) add(v, "buffer");
  return out;
}

Json memory_of(const Session& s) {
  const MemoryEstimate m = estimate_memory(s);
  return {{"weights", count(m.weights)},
          {"gradients", count(m.gradients)},
          {"states", count(m.states)},
          {"shared", count(m.shared)},
          {"activations", count(m.activations)},
          {"data", count(m.data)},
          {"program", count(m.program)},
          {"workers", count(m.workers)},
          {"peak", count(m.peak())}};
}

Json devices_of(const Session& s) {
  Json out = Json::array();
  for (const DeviceUse& use : device_uses(s))
    out.push(Json{{"weights", count(use.weights)},
                  {"gradients", count(use.gradients)},
                  {"states", count(use.states)},
                  {"activations", count(use.activations)}}
                 .on_line(1));
  return out;
}

}  // namespace

std::string plan_json(const Session& s) {
  const Topology& t = s.devices.topology;
  const Program& program = s.model.programs.begin()->second;
  Json out = {{"spec", s.settings.spec.name},
              {"data", s.data.train.description},
              {"device", s.devices.device},
              {"mode", s.plan.mode},
              {"ranks", t.ranks},
              {"hosts", t.hosts()},
              {"devices", int64_t{t.ranks} * t.devices_per_rank},
              {"workers", t.total_workers()},
              {"shards", t.shards},
              {"batch_size", s.batches.global_batch},
              {"steps_of_epoch", s.batches.train->steps()},
              {"steps", s.length.steps},
              {"epochs", s.length.epochs},
              {"parameters", s.model.parameters()},
              {"flops", count(program.graph.flops())},
              {"flops_samples", program.rows.total()}};
  out.add("tensors", tensors_of(s.model));
  if (!s.devices.on_gpu()) out.add("memory_bytes", memory_of(s));
  out.add("device_bytes", devices_of(s));
  return out.dump() + "\n";
}

}  // namespace dpt
