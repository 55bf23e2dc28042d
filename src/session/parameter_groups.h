// Which learning rate and weight decay each parameter has: `parameter_groups`, `no_decay` and
// `lr_scale` of a spec, resolved.
#pragma once

#include <algorithm>
#include <any>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "graph/program/program.h"
#include "spec/spec.h"

namespace dpt {

struct CompiledModel;
struct OptimizerType;
struct RunSettings;
struct SessionBatches;

// Parameters that are updated with the same settings.
struct ParameterGroup {
  std::any settings;  // of the optimizer, with this group's learning rate and weight decay
  size_t rate = 0;    // index in ParameterGroups::rates
  double weight_decay = 0;
  bool matrices = false;  // the optimizer updates them as whole matrices
  int64_t tensors = 0;
};

// A parameter that the optimizer updates as a whole.
struct UpdatedMatrix {
  size_t begin = 0;               // in the flat buffers
  int64_t rows = 0, columns = 0;  // in memory
  bool transposed = false;        // whether its shape is [columns, rows]
  int group = 0;
  size_t elements() const { return static_cast<size_t>(rows * columns); }
  size_t end() const { return begin + elements(); }
};

struct ParameterGroups {
  // Distinct base learning rates, after lr_scale. The first is the optimizer's own, which metrics
  // show.
  std::vector<double> rates;
  std::vector<ParameterGroup> groups;   // at least one
  std::vector<UpdatedMatrix> matrices;  // in memory order
  std::vector<int> of_parameter;        // for each of graph.parameters; -1: frozen
  // The group of each trained element of the flat buffers: ascending, without gaps, so that the
  // last one ends at layout.trainable. Groups of neighbors differ.
  struct Segment {
    size_t end = 0;  // it begins where the one before ends
    int group = 0;
  };
  std::vector<Segment> segments;

  bool several() const { return groups.size() > 1; }
  // Calls f(begin, end, group) for each segment that overlaps elements [begin, end).
  template <class F>
  void each(size_t begin, size_t end, F f) const;

 private:
  size_t segment_of(size_t element) const;  // the last one for elements behind it
};

// Reports settings of groups, `no_decay` and `lr_scale` that the optimizer or the schedule cannot
// use. optimizer: that of the spec.
void check_parameter_settings(const Spec& spec, const OptimizerType& optimizer, Diagnostics& d);

// Reports parameters of two groups. REQUIRES: check_parameter_settings() reported nothing.
ParameterGroups parameter_groups_of(const RunSettings& settings, const SessionBatches& batches,
                                    const CompiledModel& model, Diagnostics& d);

// "learning rate: 0.4 = 0.1 * 1024/256 (lr_scale: linear)"; empty without lr_scale.
std::string lr_scale_text(const RunSettings& settings, const SessionBatches& batches,
                          const ParameterGroups& parameter_groups);
// "parameter groups: 62 tensors with lr 0.1, weight_decay 0.0001; 53 with lr 0.1, weight_decay 0";
// empty for one group.
std::string groups_text(const ParameterGroups& parameter_groups);
// "frozen: 60 of 62 tensors"; empty if all are trained.
std::string frozen_text(const CompiledModel& model);

template <class F>
void ParameterGroups::each(size_t begin, size_t end, F f) const {
  for (size_t i = segment_of(begin); begin < end; ++i) {
    const bool last = i + 1 >= segments.size();
    const size_t until = last ? end : std::min(end, segments[i].end);
    f(begin, until, segments[i].group);
    begin = until;
  }
}

}  // namespace dpt
