#include "session/parameter_groups.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/count.h"
#include "layers/parameter_pattern.h"
#include "optim/schedule.h"
#include "session/compiled_model.h"
#include "session/run_settings.h"
#include "session/session_batches.h"

namespace dpt {
namespace {

// The batch for which the spec's learning rates are meant; 0: unknown.
int64_t reference_batch(const Spec& spec) {
  return spec.lr_scale.batch.value_or(spec.data.batch_size_per_replica.value_or(0));
}

// The factor of all learning rates.
double lr_factor(const Spec& spec, const SessionBatches& batches) {
  const std::string& rule = spec.lr_scale.rule;
  const int64_t reference = reference_batch(spec);
  if (rule == "none" || reference == 0) return 1;
  const double k = static_cast<double>(batches.global_batch) / static_cast<double>(reference);
  return rule == "sqrt" ? std::sqrt(k) : k;
}

// A schedule that sets the learning rate of all parameters by itself; null: none.
const ScheduleType* own_rate(const Spec& spec) {
  if (!spec.schedule.schedule) return nullptr;
  const auto* type = static_cast<const ScheduleType*>(spec.schedule.schedule.what);
  return type->own_rate ? type : nullptr;
}

// See ScheduleType::rates.
std::vector<double> rates_of_schedule(const Spec& spec) {
  const ScheduleType* schedule = own_rate(spec);
  return schedule && schedule->rates ? schedule->rates(spec.schedule.schedule.settings)
                                     : std::vector<double>{};
}

void check_rates(const Spec& spec, const OptimizerType& optimizer, Diagnostics& d) {
  const bool scales = spec.lr_scale.rule != "none";
  if (scales && reference_batch(spec) == 0)
    d.error(spec.lr_scale.where,
            fmt::format("lr_scale needs the batch size for which the learning rate is meant; write "
                        "`lr_scale: {{{}: 256}}`, or give batch_size_per_replica instead of "
                        "batch_size",
                        spec.lr_scale.rule));
  const ScheduleType* schedule = own_rate(spec);
  if (!schedule) return;
  if (optimizer.of_elements)
    d.error(spec.schedule.schedule.where,
            fmt::format("schedule '{}' sets one learning rate for all parameters, but optimizer "
                        "'{}' has two: choose another schedule, such as cosine_annealing",
                        schedule->name, optimizer.name));
  if (scales)
    d.error(spec.lr_scale.where,
            fmt::format("lr_scale has no effect: schedule '{0}' sets the learning rate by its own "
                        "max_lr; leave lr_scale out and scale max_lr",
                        schedule->name));
  const size_t rates = rates_of_schedule(spec).size(), groups = spec.parameter_groups.size();
  if (rates > 1 && rates != groups + 1)
    d.error(spec.schedule.schedule.where,
            fmt::format("'max_lr' has {}, but the spec has {}; write one number, or one for "
                        "parameters in no group and one for each group",
                        counted(rates, "number"), counted(groups, "parameter group")));
  for (const ParameterGroupSpec& group : spec.parameter_groups)
    if (group.lr)
      d.error(group.where, fmt::format("the 'lr' of this group has no effect: schedule '{}' sets "
                                       "the learning rate of all parameters; leave 'lr' out, or "
                                       "choose another schedule",
                                       schedule->name));
}

void check_weight_decay(const Spec& spec, const OptimizerType& optimizer, Diagnostics& d) {
  if (optimizer.weight_decay(spec.optimizer.settings)) return;
  const auto refuse = [&](Span where, std::string_view key) {
    d.error(where,
            fmt::format("optimizer '{}' has no weight decay; leave '{}' out", optimizer.name, key));
  };
  if (!spec.no_decay.empty()) refuse(spec.at("no_decay"), "no_decay");
  for (const ParameterGroupSpec& group : spec.parameter_groups)
    if (group.weight_decay) refuse(group.where, "weight_decay");
}

// For each parameter the entry of parameter_groups that matches it; null: none.
std::vector<const ParameterGroupSpec*> entries_of(const Spec& spec, const CompiledModel& model,
                                                  const NamedParameters& named, Diagnostics& d) {
  std::vector<const ParameterGroupSpec*> out(model.graph.parameters.size());
  for (const ParameterGroupSpec& group : spec.parameter_groups) {
    bool told = false;
    for (const size_t p : named.matching(group.match)) {
      if (out[p] && !told)
        d.error(group.where,
                fmt::format("'{}' is in this parameter group and in the one on line {}; as in "
                            "PyTorch, groups must not share parameters: make the patterns of one "
                            "narrower",
                            model.graph[model.graph.parameters[p]].name, out[p]->where.line));
      told = told || out[p] != nullptr;
      out[p] = &group;
    }
  }
  return out;
}

size_t index_of(std::vector<double>& values, double value) {
  const auto at = std::ranges::find(values, value);
  if (at != values.end()) return static_cast<size_t>(at - values.begin());
  values.push_back(value);
  return values.size() - 1;
}

// The trained parameters in the order of the flat buffers.
std::vector<size_t> in_memory_order(const CompiledModel& model) {
  std::vector<size_t> out;
  for (size_t p = 0; p < model.graph.parameters.size(); ++p)
    if (model.graph.gradients[p] != kNoValue) out.push_back(p);
  std::ranges::sort(out, {}, [&](size_t p) { return model.layout.offset[p]; });
  return out;
}

std::vector<ParameterGroups::Segment> segments_of(const CompiledModel& model,
                                                  const std::vector<int>& of_parameter) {
  std::vector<ParameterGroups::Segment> out;
  const std::vector<size_t> order = in_memory_order(model);
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t end =
        i + 1 < order.size() ? model.layout.offset[order[i + 1]] : model.layout.trainable;
    const int group = of_parameter[order[i]];
    if (!out.empty() && out.back().group == group)
      out.back().end = end;
    else
      out.push_back({.end = end, .group = group});
  }
  return out;
}

UpdatedMatrix matrix_of(const TensorDesc& parameter, size_t begin, int group) {
  const bool transposed = parameter.layout == Layout::transposed;
  return {.begin = begin,
          .rows = parameter.shape[transposed ? 1 : 0],
          .columns = parameter.shape[transposed ? 0 : 1],
          .transposed = transposed,
          .group = group};
}

std::vector<UpdatedMatrix> matrices_of(const CompiledModel& model, const ParameterGroups& all) {
  std::vector<UpdatedMatrix> out;
  for (const size_t p : in_memory_order(model))
    if (all.groups[static_cast<size_t>(all.of_parameter[p])].matrices)
      out.push_back(matrix_of(model.graph[model.graph.parameters[p]].desc, model.layout.offset[p],
                              all.of_parameter[p]));
  return out;
}

}  // namespace

size_t ParameterGroups::segment_of(size_t element) const {
  if (segments.size() == 1) return 0;
  const auto at = std::ranges::upper_bound(segments, element, {}, &Segment::end);
  return std::min(static_cast<size_t>(at - segments.begin()), segments.size() - 1);
}

void check_parameter_settings(const Spec& spec, const OptimizerType& optimizer, Diagnostics& d) {
  check_rates(spec, optimizer, d);
  check_weight_decay(spec, optimizer, d);
}

ParameterGroups parameter_groups_of(const RunSettings& settings, const SessionBatches& batches,
                                    const CompiledModel& model, Diagnostics& d) {
  const Spec& spec = settings.spec;
  const OptimizerType& optimizer = *settings.optimizer;
  const std::any& given = spec.optimizer.settings;
  const NamedParameters named(spec, model.graph);
  const auto entries = entries_of(spec, model, named, d);
  const std::vector<bool> undecayed = named.marked(spec.no_decay);
  const double factor = lr_factor(spec, batches);
  std::any of_elements = given;
  std::vector<bool> alone(entries.size());
  if (optimizer.of_elements) {
    of_elements = optimizer.of_elements(given);
    named.check(optimizer.elementwise(given), d);
    alone = named.marked(optimizer.elementwise(given));
  }
  const std::vector<double> own_rates = rates_of_schedule(spec);
  const bool rate_each = own_rates.size() > 1;
  ParameterGroups out;
  out.rates = {rate_each ? own_rates[0] : optimizer.lr(given) * factor};
  out.of_parameter.assign(model.graph.parameters.size(), -1);
  for (size_t p = 0; p < entries.size(); ++p) {
    if (model.graph.gradients[p] == kNoValue) continue;
    const ParameterGroupSpec* entry = entries[p];
    const bool matrix = optimizer.of_elements && !alone[p] &&
                        model.graph[model.graph.parameters[p]].desc.shape.rank() == 2;
    const std::any& own = matrix ? given : of_elements;
    const double own_decay = optimizer.weight_decay(own).value_or(0);
    const double lr =
        rate_each
            ? own_rates[entry ? static_cast<size_t>(entry - spec.parameter_groups.data()) + 1 : 0]
            : (entry && entry->lr ? *entry->lr : optimizer.lr(own)) * factor;
    const double decay = undecayed[p] ? 0
                         : entry      ? entry->weight_decay.value_or(own_decay)
                                      : own_decay;
    const size_t rate = index_of(out.rates, lr);
    auto group = std::ranges::find_if(out.groups, [&](const ParameterGroup& g) {
      return g.rate == rate && g.weight_decay == decay && g.matrices == matrix;
    });
    if (group == out.groups.end())
      group = out.groups.insert(group, {.settings = optimizer.with(own, lr, decay),
                                        .rate = rate,
                                        .weight_decay = decay,
                                        .matrices = matrix});
    ++group->tensors;
    out.of_parameter[p] = static_cast<int>(group - out.groups.begin());
  }
  out.segments = segments_of(model, out.of_parameter);
  out.matrices = matrices_of(model, out);
  return out;
}

std::string lr_scale_text(const RunSettings& settings, const SessionBatches& batches,
                          const ParameterGroups& parameter_groups) {
  const std::string& rule = settings.spec.lr_scale.rule;
  if (rule == "none") return "";
  const double given = settings.optimizer->lr(settings.spec.optimizer.settings);
  const std::string ratio =
      fmt::format("{}/{}", batches.global_batch, reference_batch(settings.spec));
  return fmt::format("learning rate: {:.6g} = {:.6g} * {} (lr_scale: {})\n",
                     parameter_groups.rates[0], given,
                     rule == "sqrt" ? fmt::format("sqrt({})", ratio) : ratio, rule);
}

std::string groups_text(const ParameterGroups& all) {
  if (!all.several()) return "";
  std::string out;
  for (const ParameterGroup& g : all.groups)
    out += fmt::format("{}{}{} with lr {:.6g}, weight_decay {:.6g}", out.empty() ? "" : "; ",
                       counted(g.tensors, "tensor"), g.matrices ? " as matrices" : "",
                       all.rates[g.rate], g.weight_decay);
  return fmt::format("parameter groups: {}\n", out);
}

std::string frozen_text(const CompiledModel& model) {
  const auto frozen = std::ranges::count(model.graph.gradients, kNoValue);
  if (frozen == 0) return "";
  return fmt::format("frozen: {} of {} tensors\n", frozen, model.graph.parameters.size());
}

}  // namespace dpt
