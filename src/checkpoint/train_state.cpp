#include "checkpoint/train_state.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/fail.h"
#include "formats/json.h"

namespace dpt {
namespace {

// Keys that checkpoints of early versions lack.
constexpr std::string_view kSamples = "samples", kEvaluations = "evaluations",
                           kEvaluatedAfter = "evaluated_after_step", kNoise = "noise_scale",
                           kPreviousLr = "previous_lr";
constexpr std::string_view kBest[] = {"best_metric", "best_value", "best_epoch", "best_step",
                                      "evaluations_since_best"};
constexpr std::string_view kEarlyStop[] = {"early_stop_metric", "early_stop_value",
                                           "early_stop_epoch", "early_stop_step",
                                           "early_stop_waited"};

bool is_late(std::string_view name) {
  return name == kSamples || name == kEvaluations || name == kEvaluatedAfter || name == kNoise ||
         name == kPreviousLr || std::ranges::find(kBest, name) != std::end(kBest) ||
         std::ranges::find(kEarlyStop, name) != std::end(kEarlyStop);
}

template <class Best, class Keys>
void each_key_of(Best& best, const std::string_view (&names)[5], Keys&& key) {
  key(names[0], best.metric);
  key(names[1], best.value);
  key(names[2], best.epoch);
  key(names[3], best.step);
  key(names[4], best.waited);
}

// Lists each key once, for writing and reading.
template <class State, class Keys>
void each_key(State& s, Keys&& key) {
  key("step", s.step);
  key("epoch", s.epoch);
  key("steps_of_this_epoch", s.of_epoch);
  key("steps_of_an_epoch", s.steps_of_epoch);
  key("lr", s.lr);
  key("loss_sum", s.loss_sum);
  key("loss_weight", s.loss_weight);
  key("seconds", s.seconds);
  key("scale", s.scaler.scale);
  key("growth_tracker", s.scaler.growth_tracker);
  key("skipped", s.scaler.skipped);
  key("skipped_in_a_row", s.scaler.skipped_in_a_row);
  key("skipped_before_this_epoch", s.skipped_before);
  key("schedule", s.schedule);
  key("metrics_bytes", s.metrics_bytes);
  key("optimizer", s.optimizer);
  key("seed", s.seed);
  key("build", s.build);
  key("generator", s.generator);
  key("order_drawn_by", s.drawn_by);
  key(kSamples, s.samples);
  key(kEvaluations, s.evaluations);
  key(kEvaluatedAfter, s.evaluated_after);
  each_key_of(s.best, kBest, key);
  each_key_of(s.early_stop, kEarlyStop, key);
  key(kNoise, s.noise);
  key(kPreviousLr, s.previous_lr);
}

// JSON has no infinity or NaN: they become strings.
Json json_of(double x) { return std::isfinite(x) ? Json(x) : Json(fmt::format("{}", x)); }
Json json_of(int64_t x) { return x; }
Json json_of(const std::string& x) { return x; }
Json json_of(const Generator& x) { return x.state(); }
Json json_of(const std::vector<double>& x) {
  Json out = Json::array();
  for (const double v : x) out.push(json_of(v));
  return out;
}

bool read(const Json& json, int64_t& out) {
  const auto x = json.integer();
  if (x) out = *x;
  return x.has_value();
}
bool read(const Json& json, double& out) {
  if (const std::string* const text = json.text()) {
    const char* const end = text->data() + text->size();
    const auto [at, error] = std::from_chars(text->data(), end, out);
    return error == std::errc() && at == end;
  }
  const auto x = json.number();
  if (x) out = *x;
  return x.has_value();
}
bool read(const Json& json, std::string& out) {
  if (json.text()) out = *json.text();
  return json.text() != nullptr;
}
bool read(const Json& json, Generator& out) {
  const auto found = json.text() ? Generator::from_state(*json.text()) : std::nullopt;
  if (found) out = *found;
  return found.has_value();
}
bool read(const Json& json, std::vector<double>& out) {
  for (const Json& item : json.items())
    if (!read(item, out.emplace_back())) return false;
  return json.is_array();
}

}  // namespace

std::string to_json(const TrainState& state) {
  Json out;
  each_key(state, [&](std::string_view name, const auto& value) {
    out.add(std::string(name), json_of(value).on_line(2));
  });
  return out.dump() + "\n";
}

TrainState train_state_of(const std::string& json, const std::string& path) {
  JsonError error;
  const auto root = Json::parse(json, {}, &error);
  if (!root) fail(Fault::data, "{} is damaged: {} (byte {})", path, error.what, error.offset);
  TrainState out;
  each_key(out, [&](std::string_view name, auto& value) {
    const Json* const found = root->find(name);
    if (!found && is_late(name)) return;
    if (!found || !read(*found, value))
      fail(Fault::data,
           "{} has no valid '{}'; it is damaged or was written by another version of dptrain", path,
           name);
  });
  for (const int64_t count :
       {out.step, out.epoch, out.of_epoch, out.scaler.skipped, out.skipped_before,
        out.metrics_bytes, out.evaluations, out.best.waited, out.early_stop.waited})
    if (count < 0) fail(Fault::data, "{} is damaged: it has a negative count", path);
  if (out.of_epoch > out.steps_of_epoch || out.of_epoch > out.step)
    fail(Fault::data, "{} is damaged: it was written after step {} of an epoch of {} steps", path,
         out.of_epoch, out.steps_of_epoch);
  return out;
}

}  // namespace dpt
