#include "train/warnings.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "base/count.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "spec/excerpt.h"
#include "train/data_warnings.h"

namespace dpt {
namespace {

using Warnings = std::vector<Warning>;

// Appends the layers in order. A null marks a place where a layer does not simply take the previous
// output: before a residual, and before an entry with `from`.
void add_layers(const std::vector<ModelItem>& items, std::vector<const Choice*>& out) {
  for (const ModelItem& item : items) {
    if (!item.from.empty() || item.kind == ModelItem::Kind::residual) out.push_back(nullptr);
    if (item.kind == ModelItem::Kind::layer) out.push_back(&item.layer);
    if (item.kind == ModelItem::Kind::sequence) add_layers(item.body, out);
  }
}

// The layer that computes the loss's input, skipping layers like `dropout` that keep its meaning.
// Null if the input is a sum of several layers, or the data itself.
const Choice* last_layer(const Spec& spec) {
  std::vector<const Choice*> layers;
  add_layers(spec.model, layers);
  for (auto l = layers.rbegin(); l != layers.rend() && *l; ++l) {
    const std::string_view name = (*l)->what->name;
    if (name != "dropout" && name != "flatten" && name != "identity") return *l;
  }
  return nullptr;
}

// A loss and the last layers that do not suit it.
struct Mismatch {
  std::string_view loss;
  std::vector<std::string_view> layers;
  bool in_layer;          // the layer is wrong; otherwise the loss is
  std::string_view text;  // {0}: the layer's name
};

const std::vector<Mismatch>& mismatches() {
  static const std::vector<Mismatch> rows = {
      {.loss = "cross_entropy",
       .layers = {"softmax"},
       .in_layer = true,
       .text = "cross_entropy takes raw scores and applies log_softmax itself; a {0} before it "
               "makes gradients small and training slow: delete this layer"},
      {.loss = "cross_entropy",
       .layers = {"log_softmax"},
       .in_layer = true,
       .text = "cross_entropy applies log_softmax itself, so this one is redundant: delete it, or "
               "write `loss: nll_loss`"},
      {.loss = "cross_entropy",
       .layers = {"sigmoid"},
       .in_layer = true,
       .text = "cross_entropy takes raw scores; a {0} keeps them between 0 and 1, so no class can "
               "become much more probable than another: delete this layer"},
      {.loss = "cross_entropy",
       .layers = {"relu", "relu6"},
       .in_layer = true,
       .text = "cross_entropy takes raw scores of either sign; a {0} sets negative ones to 0, "
               "where they have no gradient: delete this layer"},
      {.loss = "bce_with_logits_loss",
       .layers = {"sigmoid"},
       .in_layer = true,
       .text = "bce_with_logits_loss applies a sigmoid itself; after a second one every "
               "probability is above 0.5: delete this layer, or write `loss: bce_loss`"},
      {.loss = "bce_with_logits_loss",
       .layers = {"softmax", "relu", "relu6"},
       .in_layer = true,
       .text = "bce_with_logits_loss takes raw scores and applies a sigmoid; after a {0} no "
               "probability is below 0.5: delete this layer"},
      {.loss = "focal_loss",
       .layers = {"softmax", "log_softmax", "sigmoid"},
       .in_layer = true,
       .text = "focal_loss takes raw scores and applies log_softmax itself: delete this {0}"},
      {.loss = "dice_loss",
       .layers = {"softmax", "log_softmax", "sigmoid"},
       .in_layer = true,
       .text = "dice_loss takes raw scores and applies softmax itself: delete this {0}"},
      {.loss = "sigmoid_focal_loss",
       .layers = {"sigmoid", "softmax", "relu", "relu6"},
       .in_layer = true,
       .text = "sigmoid_focal_loss takes raw scores and applies a sigmoid itself; after a {0} no "
               "probability is below 0.5: delete this layer"},
      {.loss = "multilabel_soft_margin_loss",
       .layers = {"sigmoid", "softmax", "relu", "relu6"},
       .in_layer = true,
       .text = "multilabel_soft_margin_loss takes raw scores and applies a sigmoid itself; after a "
               "{0} no probability is below 0.5: delete this layer"},
      {.loss = "sigmoid_dice_loss",
       .layers = {"sigmoid", "softmax", "relu", "relu6"},
       .in_layer = true,
       .text = "sigmoid_dice_loss takes raw scores and applies a sigmoid itself; after a {0} no "
               "probability is below 0.5: delete this layer"},
      {.loss = "nll_loss",
       .layers = {"softmax"},
       .in_layer = true,
       .text = "nll_loss takes log-probabilities, but {0} gives probabilities: write `log_softmax` "
               "instead"},
      {.loss = "kl_div",
       .layers = {"softmax"},
       .in_layer = true,
       .text = "kl_div takes log-probabilities, but {0} gives probabilities: write `log_softmax` "
               "instead"},
      {.loss = "nll_loss",
       .layers = {"linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
                  "conv_transpose3d", "batch_norm1d", "batch_norm2d", "batch_norm3d", "relu",
                  "relu6", "sigmoid", "tanh"},
       .in_layer = false,
       .text =
           "nll_loss takes log-probabilities, but the model ends with {0}, which does not give "
           "them: end it with log_softmax, or write `loss: cross_entropy`, which takes raw scores"},
      {.loss = "kl_div",
       .layers = {"linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
                  "conv_transpose3d", "batch_norm1d", "batch_norm2d", "batch_norm3d", "relu",
                  "relu6", "sigmoid", "tanh"},
       .in_layer = false,
       .text = "kl_div takes log-probabilities, but the model ends with {0}, which does not give "
               "them: end it with log_softmax"},
      {.loss = "bce_loss",
       .layers = {"linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
                  "conv_transpose3d", "batch_norm1d", "batch_norm2d", "batch_norm3d", "relu",
                  "relu6", "tanh", "log_softmax"},
       .in_layer = false,
       .text = "bce_loss takes probabilities between 0 and 1, but the model ends with {0}, which "
               "also gives values outside this range: end it with sigmoid, or write `loss: "
               "bce_with_logits_loss`, which takes raw scores"}};
  return rows;
}

void check_last_layer(const Spec& spec, Warnings& out) {
  const Choice* layer = last_layer(spec);
  if (!layer) return;
  const std::string_view name = layer->what->name;
  for (const Mismatch& m : mismatches())
    if (m.loss == spec.loss.what->name && std::ranges::find(m.layers, name) != m.layers.end())
      out.push_back(
          {m.in_layer ? layer->where : spec.loss.where, fmt::format(fmt::runtime(m.text), name)});
}

// Why there is only one class.
std::string single_class(const Session& s) {
  const Dataset& d = s.data.train;
  if (d.ignored > 0)
    return "all targets that the loss does not ignore have class 0; if the ignored ones are "
           "another "
           "class, give them its number, 1, and leave `ignore_index` out";
  if (s.settings.spec.data.dataset.what->name == "image_folder")
    return fmt::format(
        "all images are in one subfolder, '{}', and each subfolder is a class; put the images of "
        "each class into a subfolder of its own",
        d.class_names.empty() ? "" : d.class_names[0]);
  return "all targets are one class; add samples of another";
}

// torch's cross_entropy of one class: -t log(softmax(x)) is 0 for any x and t.
void check_single_class(const Session& s, Warnings& out) {
  if (s.settings.loss->name != "cross_entropy" || s.model.graph.output == kNoValue) return;
  const Shape& y = s.model.graph[s.model.graph.output].desc.shape;
  const bool other_dim = s.settings.spec.locations.contains("loss.cross_entropy.class_dim");
  if (y.rank() < 2 || y[1] != 1 || (y.rank() > 2 && other_dim)) return;
  const int64_t classes = s.data.train.classes;
  out.push_back({s.settings.spec.loss.where,
                 fmt::format("the model has one output, and the softmax of one value is always 1, "
                             "so the loss is 0 and nothing is learned: {}",
                             classes == 1  ? single_class(s)
                             : classes > 0 ? "give the model an output for each class"
                                           : "for real targets write `loss: mse_loss`; for classes "
                                             "give the data class numbers and the model an output "
                                             "for each class")});
}

// Real targets as the data holds them, of the first samples; empty: they are classes, or not made.
std::span<const float> real_targets(const SessionData& data) {
  constexpr int64_t kMostLookedAt = int64_t{1} << 22;
  const Table& y = data.train.targets;
  const bool follow = y.step() == y.sample().elements();
  if (!data.train.made || !y.data || y.desc.dtype != DType::f32 || !follow) return {};
  const int64_t samples = std::min(y.size(), kMostLookedAt / std::max<int64_t>(1, y.step()));
  return {reinterpret_cast<const float*>(y.data.get()), static_cast<size_t>(samples * y.step())};
}

// A loss and the targets that do not suit it.
struct TargetRange {
  std::string_view loss;
  bool (*outside)(float);
  std::string_view takes, remedy;
};
constexpr TargetRange kTargetRanges[] = {
    {.loss = "bce_with_logits_loss",  // bce_loss refuses them
     .outside = [](float t) { return t < 0 || t > 1; },
     .takes = "targets between 0 and 1",
     .remedy = "the loss has no minimum; scale the targets, or write `loss: mse_loss`"},
    {.loss = "multilabel_soft_margin_loss",
     .outside = [](float t) { return t < 0 || t > 1; },
     .takes = "targets between 0 and 1",
     .remedy = "the loss has no minimum; scale the targets, or write `loss: mse_loss`"},
    {.loss = "hinge_embedding_loss",
     .outside = [](float t) { return t != -1 && t != 1; },
     .takes = "targets of -1 and 1",
     .remedy = "a target other than these counts as both"},
    {.loss = "soft_margin_loss",
     .outside = [](float t) { return t != -1 && t != 1; },
     .takes = "targets of -1 and 1",
     .remedy = "for targets of 0 and 1 write `loss: bce_with_logits_loss`"},
    {.loss = "poisson_nll_loss",
     .outside = [](float t) { return t < 0; },
     .takes = "counts",
     .remedy = "the loss has no minimum; write `loss: mse_loss`"}};

// torch takes such targets, too. A bce of them has no lower bound.
void check_target_range(const Session& s, Warnings& out) {
  const std::string_view loss = s.settings.loss->name;
  const auto* range = std::ranges::find(kTargetRanges, loss, &TargetRange::loss);
  if (range == std::end(kTargetRanges)) return;
  const std::span<const float> values = real_targets(s.data);
  const auto first = std::ranges::find_if(values, range->outside);
  if (first == values.end()) return;
  out.push_back(
      {s.settings.spec.loss.where,
       fmt::format("{} takes {}, but a target of sample {} of the training set (counted "
                   "from 0) is {:g}: {}",
                   loss, range->takes, (first - values.begin()) / s.data.train.targets.step(),
                   *first, range->remedy)});
}

// Rows of real targets that are no probabilities, as those of a regression.
void check_probabilities(const Session& s, Warnings& out) {
  constexpr float kTolerance = 1e-2F;
  const std::span<const float> values = real_targets(s.data);
  const int64_t classes = s.data.train.targets.sample().elements();
  if (s.settings.loss->name != "cross_entropy" || s.data.train.targets.sample().rank() != 1 ||
      classes < 2)
    return;
  for (size_t at = 0; at < values.size(); at += static_cast<size_t>(classes)) {
    const auto row = values.subspan(at, static_cast<size_t>(classes));
    float sum = 0;
    for (const float v : row) sum += v;
    const bool negative = std::ranges::any_of(row, [](float v) { return v < 0; });
    if (!negative && !(std::abs(sum - 1) > kTolerance)) continue;
    return out.push_back(
        {s.settings.spec.loss.where,
         fmt::format(
             "cross_entropy reads real targets as class probabilities, but the targets of sample "
             "{} of the training set (counted from 0) {}: for regression write `loss: mse_loss`, "
             "for several labels per sample `loss: bce_with_logits_loss`",
             at / static_cast<size_t>(classes),
             negative ? std::string("include a negative value")
                      : fmt::format("sum to {:g}", sum))});
  }
}

const ScheduleType* schedule_of(const Spec& spec) {
  return static_cast<const ScheduleType*>(spec.schedule.schedule.what);
}

void check_zero_rate(const Spec& spec, Warnings& out) {
  const auto& optimizer = static_cast<const OptimizerType&>(*spec.optimizer.what);
  const ScheduleType* schedule = schedule_of(spec);
  if (optimizer.lr(spec.optimizer.settings) != 0 || (schedule && schedule->own_rate)) return;
  out.push_back({spec.at(fmt::format("optimizer.{}.lr", optimizer.name)),
                 "the learning rate is 0, so no weight changes: set a positive one"});
}

void check_batch_size(const Session& s, Warnings& out) {
  const int64_t samples = s.data.train_samples();
  if (s.batches.global_batch <= samples) return;
  const std::optional<int64_t> each = s.settings.spec.data.batch_size_per_replica;
  const std::string_view key = each ? "batch_size_per_replica" : "batch_size";
  const int64_t replicas = each ? s.batches.global_batch / *each : 1;
  out.push_back(
      {s.settings.spec.at(fmt::format("data.{}", key)),
       fmt::format("a batch of {} samples is larger than the training set, which has {}{}: each "
                   "epoch is a single step on all of them; set {} to at most {}",
                   s.batches.global_batch, samples,
                   s.settings.spec.data.limit > 0 ? " after `limit`" : "", key,
                   std::max<int64_t>(1, samples / replicas))});
}

// Only if somebody asked for so many: `parallel: ddp` alone has two devices on any machine.
void check_cores(const Session& s, int cores, bool launched, Warnings& out) {
  const DeviceSpec& asked = s.settings.spec.devices;
  const Topology& topology = s.devices.topology;
  const int ranks = static_cast<int>(topology.ranks_of_host(topology.host).count()),
            devices = ranks * topology.devices_per_rank, workers = topology.workers_per_device;
  if (s.devices.on_gpu() || devices * workers <= cores) return;
  if (workers > 1) {
    const std::string threads =
        devices == 1 ? counted(workers, "thread")
                     : fmt::format("{} devices with {} threads each", devices, workers);
    out.push_back({s.settings.spec.at("cores"),
                   fmt::format("{} share {}: the threads take turns, and training is slower; set "
                               "cores to at most {}",
                               threads, counted(cores, "core"), std::max(1, cores / devices))});
  } else if (asked.count || launched || topology.devices_per_replica > 1) {
    const auto written = [&](const char* key) { return s.settings.spec.locations.contains(key); };
    const char* key = written("devices") ? "devices" : written("parallel") ? "parallel" : "model";
    out.push_back({s.settings.spec.at(key),
                   fmt::format("{} share {}: they take turns, and training is slower than on {}",
                               counted(devices, "device"), counted(cores, "core"),
                               counted(cores, "device"))});
  }
}

// The number of intervals in the whole run that the schedule counts, from 0.
int64_t intervals(const Session& s) {
  return schedule_interval(s.settings.spec.schedule) == "step" ? s.length.steps : s.length.epochs;
}

// Whether `steps` ends the run before its `epochs`: a trial run, whose schedule is not meant for
// it.
bool cut_short(const Session& s) {
  return s.settings.spec.steps && s.settings.spec.epochs &&
         *s.settings.spec.steps / s.batches.train->steps() < *s.settings.spec.epochs;
}

// Warns of a warm-up that is longer than the run.
void check_warmup_end(const Session& s, Warnings& out) {
  const ScheduleSpec& schedule = s.settings.spec.schedule;
  const int64_t total = intervals(s);
  if (schedule.warmup < total || schedule.warmup == 0 || cut_short(s)) return;
  const std::string_view interval = schedule_interval(schedule);
  out.push_back(
      {s.settings.spec.at("schedule.warmup"),
       fmt::format("the warm-up takes {}, and the run has {}: the learning rate never reaches its "
                   "full value; {}",
                   counted(schedule.warmup, interval), counted(total, interval),
                   interval == "epoch" ? "count it in steps: `interval: step`" : "shorten it")});
}

// Warns of a warm-up of one epoch: PyTorch's LinearLR then uses the lowest rate for all of it.
void check_warmup_epoch(const Session& s, Warnings& out) {
  const ScheduleSpec& schedule = s.settings.spec.schedule;
  const int64_t steps = s.batches.train->steps();
  const bool chosen = s.settings.spec.locations.contains("schedule.warmup_factor");
  if (schedule.warmup != 1 || s.length.epochs <= 1 || steps <= 1 || chosen || cut_short(s)) return;
  if (schedule_interval(schedule) != "epoch") return;
  out.push_back(
      {s.settings.spec.at("schedule.warmup"),
       fmt::format("a warm-up of one epoch does not ramp: all {} of the first epoch use {:g} times "
                   "the learning rate; count it in steps: `interval: step, warmup: {}`",
                   counted(steps, "step"), schedule.warmup_factor, std::min<int64_t>(steps, 500))});
}

// PyTorch's users give mode: max where they pass an accuracy to step().
void check_plateau_mode(const Session& s, Warnings& out) {
  const ScheduleType* type = schedule_of(s.settings.spec);
  if (!type || type->takes_larger == nullptr) return;
  const Choice& schedule = s.settings.spec.schedule.schedule;
  if (!type->takes_larger(schedule.settings)) return;
  out.push_back(
      {schedule.where,
       fmt::format("{} monitors the loss, and `mode: max` treats a larger loss as better; write "
                   "`mode: min`",
                   type->name)});
}

// Whether the schedule has the same rate in all `total` intervals.
bool is_constant(const ScheduleType& type, const Choice& choice, int64_t total) {
  constexpr int64_t kMostLookedAt = 100000;  // longer runs are not checked
  if (total > kMostLookedAt) return false;
  const std::unique_ptr<Schedule> schedule = type.make(choice.settings, 1, total);
  const double first = schedule->lr(0);
  for (int64_t k = 1; k < total; ++k)
    if (schedule->lr(k) != first) return false;
  return true;
}

void check_schedule_effect(const Session& s, Warnings& out) {
  const ScheduleType* type = schedule_of(s.settings.spec);
  if (!type || type->name == "constant" || type->needs_metric || cut_short(s)) return;
  if (s.settings.optimizer->name == "rprop")
    return out.push_back(
        {s.settings.spec.schedule.schedule.where,
         fmt::format("schedule '{}' has no effect: rprop uses the learning rate in its first step "
                     "alone; delete the schedule, or take another optimizer",
                     type->name)});
  const int64_t total = intervals(s) - s.settings.spec.schedule.warmup;
  if (total < 1 || !is_constant(*type, s.settings.spec.schedule.schedule, total)) return;
  const std::string_view interval = schedule_interval(s.settings.spec.schedule);
  out.push_back(
      {s.settings.spec.schedule.schedule.where,
       fmt::format(
           "schedule '{}' never changes the learning rate: it counts {}s, and the run has {}{}; {}",
           type->name, interval, counted(total, interval),
           s.settings.spec.schedule.warmup > 0 ? " after its warm-up" : "",
           interval == "epoch" && total == 1 ? "count steps: `interval: step`"
                                             : "change its settings, or train longer")});
}

// Warns of an average of asgd that is the weights to the end: t0 is a million by default.
void check_average(const Session& s, Warnings& out) {
  const Choice& optimizer = s.settings.spec.optimizer;
  if (s.settings.optimizer->average_state(optimizer.settings) < 0 || cut_short(s)) return;
  if (static_cast<double>(s.length.steps) >
      s.settings.optimizer->averages_after(optimizer.settings))
    return;
  out.push_back(
      {optimizer.where,
       fmt::format("`average` has no effect: {} averages weights after step t0 + 1, and the "
                   "run has {}; set t0 to the step after which weights are to be "
                   "averaged",
                   optimizer.what->name, counted(s.length.steps, "step"))});
}

void check_no_decay(const Session& s, Warnings& out) {
  const auto& groups = s.parameter_groups.groups;
  const bool decays =
      std::ranges::any_of(groups, [](const ParameterGroup& g) { return g.weight_decay != 0; });
  if (s.settings.spec.no_decay.empty() || decays) return;
  out.push_back({s.settings.spec.at("no_decay"),
                 "no_decay changes nothing: no parameter has a weight decay; give the optimizer "
                 "or a group a weight_decay"});
}

}  // namespace

std::vector<Warning> warnings_of(const Spec& spec) {
  Warnings out;
  check_last_layer(spec, out);
  check_zero_rate(spec, out);
  return out;
}

std::vector<Warning> warnings_of(const Session& session, std::optional<int> cores, bool launched) {
  Warnings out = warnings_of(session.settings.spec);
  for (std::string& text : data_warnings(session))
    out.push_back({session.settings.spec.data.dataset.where, std::move(text)});
  check_single_class(session, out);
  check_target_range(session, out);
  check_probabilities(session, out);
  check_batch_size(session, out);
  if (cores) check_cores(session, *cores, launched, out);
  check_warmup_end(session, out);
  check_warmup_epoch(session, out);
  check_schedule_effect(session, out);
  check_plateau_mode(session, out);
  check_average(session, out);
  check_no_decay(session, out);
  return out;
}

std::string render(std::vector<Warning> warnings) {
  const auto place = [](const Warning& w) {
    const std::string_view path = w.where.file ? std::string_view(w.where.file->path) : "";
    return std::tuple(path, w.where.line, w.where.column);
  };
  std::stable_sort(warnings.begin(), warnings.end(),
                   [&](const Warning& a, const Warning& b) { return place(a) < place(b); });
  std::string out;
  for (const Warning& w : warnings) {
    const auto [path, line, column] = place(w);
    out += fmt::format("{}:{}:{}: warning: {}\n", path, line, column, w.message);
    if (w.where.file && !w.where.file->text.empty()) out += excerpt(w.where);
  }
  return out;
}

}  // namespace dpt
