#include "report/reasons.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/count.h"
#include "report/baseline.h"
#include "report/numbers.h"

namespace dpt {
namespace {

struct Cause {
  double ms = 0;  // per sample
  std::string text;
};

// Computing time of all workers together for one sample, in ms, without what other programs took.
double compute_ms(const RowResult& r) {
  return r.ms_per_sample * r.facts.workers *
         (r.share(&WorkerSeconds::compute) - r.share(&WorkerSeconds::taken));
}

// By which fraction the busiest worker computes longer than the mean.
double imbalance(const RowResult& r) {
  return r.spent.compute > 0 ? r.spent.slowest * r.facts.workers / r.spent.compute - 1 : 0;
}

bool is_pipeline(const RowResult& r) { return r.row.mode == "pipeline"; }

// "dp on 2 devices", for rows of the same batch size; `single` is only "single".
std::string short_name(const RowResult& r) {
  if (r.row.mode == "single") return r.row.mode;
  return fmt::format("{} on {}", r.row.mode, counted(r.row.devices, "device"));
}

std::string waiting_text(const RowResult& r) {
  const double waits = r.share(&WorkerSeconds::waiting);
  const std::string share = percent_text(waits);
  // The share of the time that the other workers wait for the busiest one.
  const double for_busiest = 1 - 1 / (1 + imbalance(r));
  const bool uneven = imbalance(r) > 0.05 && for_busiest > waits / 3;
  if (r.facts.bubble > 0)
    return fmt::format(
        "stages wait {} of the time for each other (the schedule alone makes stages of equal "
        "length wait {})",
        share, percent_text(r.facts.bubble));
  if (r.facts.most > r.facts.fewest && uneven)
    return fmt::format(
        "workers wait {} of the time because one has {} of each batch and another has {}", share,
        counted(r.facts.most, "sample"), r.facts.fewest);
  if (r.facts.loss_on_one && uneven)
    return fmt::format("workers wait {} of the time for the one device that computes the loss",
                       share);
  if (uneven)
    return fmt::format(
        "workers wait {} of the time for the slowest worker, which computes {} longer than the "
        "mean",
        share, percent_text(imbalance(r)));
  const std::string barriers = fmt::format("workers wait {} of the time at the {} of a step", share,
                                           counted(r.facts.barriers, "barrier"));
  const double step_ms = r.ms_per_sample * static_cast<double>(r.row.batch_size);
  // Workers with cores of their own leave a barrier within microseconds.
  constexpr double kLongBarrier = 0.1;  // ms
  if (r.facts.gpus == 0 && step_ms * waits > kLongBarrier * std::max(1, r.facts.barriers))
    return barriers + (r.share(&WorkerSeconds::taken) > waits / 3  // named in the same sentence
                           ? ", longer than barriers take"
                           : ", longer than barriers take: other programs may use the cores");
  return step_ms >= 1 ? barriers
                      : fmt::format("{}, which lasts only {}", barriers, time_text(step_ms));
}

std::string communication_text(const RowResult& r) {
  return fmt::format("{} takes {} of the time",
                     is_pipeline(r) ? "passing data between stages"
                                    : "exchanging gradients and losses between workers",
                     percent_text(r.share(&WorkerSeconds::communication)));
}

std::string compute_text(const RowResult& r, const RowResult& base) {
  const std::string ratio = ratio_text(compute_ms(r) / compute_ms(base));
  if (r.facts.most < base.facts.most && !is_pipeline(r))
    return fmt::format(
        "each worker has only {} of a batch, so computing a sample takes {} as long as with {}",
        counted(r.facts.most, "sample"), ratio, base.facts.most);
  return fmt::format("{}computing a sample takes {} as long as in {}",
                     r.facts.workers > 1 ? "workers slow each other down: " : "", ratio,
                     short_name(base));
}

std::string join(const std::vector<std::string>& texts) {
  return fmt::format("{}", fmt::join(texts, "; "));
}

// What a row loses to an ideal speed-up: the worst, and the second if it costs at least a third of
// the worst.
std::string losses(const RowResult& r, const RowResult& base, double ideal) {
  std::vector<Cause> all;
  const auto add = [&](double ms, std::string text) {
    if (ms > 0) all.push_back({ms, std::move(text)});
  };
  const auto more = [&](double WorkerSeconds::*what) {
    return r.ms_per_sample * r.share(what) - base.ms_per_sample * base.share(what);
  };
  add(more(&WorkerSeconds::waiting), waiting_text(r));
  add(more(&WorkerSeconds::communication), communication_text(r));
  add(more(&WorkerSeconds::taken), fmt::format("other programs use the cores for {} of the time",
                                               percent_text(r.share(&WorkerSeconds::taken))));
  add((compute_ms(r) - compute_ms(base)) / r.facts.workers, compute_text(r, base));
  std::ranges::stable_sort(all, std::ranges::greater{}, &Cause::ms);
  // Short steps are timed before they are looked at, and a busy machine may have changed meanwhile.
  const double lost = r.ms_per_sample - base.ms_per_sample / ideal;
  if (!all.empty() && all.front().ms > lost + r.ms_per_sample / 4)
    return "the time that workers spend in a step does not explain this: other programs may be "
           "using the machine; measure again while it is idle";
  std::vector<std::string> out;
  for (const Cause& c : all)
    if (out.size() < 2 && c.ms >= all.front().ms / 3) out.push_back(c.text);
  return join(out);
}

// Reasons why a row is faster than its baseline.
std::string gains(const RowResult& r, const RowResult& base) {
  std::vector<std::string> out;
  if (r.facts.workers > base.facts.workers)
    out.push_back(fmt::format("{} {} compute in parallel", r.facts.workers,
                              is_pipeline(r)     ? "workers on stages"
                              : r.facts.gpus > 0 ? "GPUs"
                                                 : "workers"));
  const double compute = compute_ms(r) / compute_ms(base);
  if (compute < 0.95)
    out.push_back(fmt::format("computing a sample takes only {} as long as in {}",
                              ratio_text(compute), short_name(base)));
  if (out.empty() && base.share(&WorkerSeconds::taken) > r.share(&WorkerSeconds::taken) + 0.01)
    out.push_back(fmt::format("other programs use the cores of {} for {} of the time",
                              short_name(base), percent_text(base.share(&WorkerSeconds::taken))));
  if (out.empty() && base.share(&WorkerSeconds::waiting) > r.share(&WorkerSeconds::waiting) + 0.01)
    out.push_back(fmt::format("workers wait {} of the time, in {} {}",
                              percent_text(r.share(&WorkerSeconds::waiting)), short_name(base),
                              percent_text(base.share(&WorkerSeconds::waiting))));
  return join(out);
}

std::string ideal_text(double ideal) { return fmt::format("{:.3g}x", ideal); }

// "1.26x faster than single", and the share of the ideal speed-up.
std::string comparison(const RowResult& r, const RowResult& base, double ideal) {
  const double ratio = speedup(r, base);
  const bool equal = r.lower <= base.upper && base.lower <= r.upper;
  std::string out;
  if (std::abs(ratio - 1) < 0.005)
    out = "as fast as " + short_name(base);
  else
    out = fmt::format("{} {} than {}", ratio_text(ratio > 1 ? ratio : 1 / ratio),
                      ratio > 1 ? "faster" : "slower", short_name(base));
  if (equal) out += ", within the variation between rounds";
  if (ratio > 1 && ideal > 1 && !equal)
    out += fmt::format(" ({} of the ideal {})", percent_text(ratio / ideal), ideal_text(ideal));
  return out;
}

}  // namespace

std::string name_of(const BenchRow& row) {
  return fmt::format("{} on {}, batch {}{}", row.mode, counted(row.devices, "device"),
                     row.batch_size, row.precision == "fp32" ? "" : ", " + row.precision);
}

std::string reason(const RowResult& r, std::span<const RowResult> all, int cores) {
  const RowResult& base = baseline_of(r, all);
  const Processors processors = processors_of(r, cores);
  const double ideal = ideal_speedup(r, base, cores);
  std::vector<std::string> parts;
  if (&base != &r) parts.push_back(comparison(r, base, ideal));
  if (r.facts.workers > processors.count) {
    // Both their waiting and their computing include time without a core.
    parts.push_back(
        fmt::format("{} workers take turns on {}{}", r.facts.workers,
                    counted(processors.count, processors.name),
                    ideal > 1 ? fmt::format(", which allow {} at most", ideal_text(ideal)) : ""));
  } else if (&base != &r) {
    const bool equal = r.lower <= base.upper && base.lower <= r.upper;
    const bool faster = !equal && r.ms_per_sample < base.ms_per_sample;
    const bool loses = r.lower > base.upper / ideal && speedup(r, base) < 0.95 * ideal;
    const std::string gained = faster ? gains(r, base) : "";
    std::string lost = loses || (!equal && !faster) ? losses(r, base, ideal) : "";
    if (r.facts.workers < base.facts.workers)
      lost =
          fmt::format("{} instead of {}", counted(r.facts.workers, "worker"), base.facts.workers);
    if (!gained.empty() || !lost.empty())
      parts.push_back(gained + (gained.empty() || lost.empty() ? "" : ", but ") + lost);
  }
  return parts.empty() ? "" : fmt::format("{}: {}.", name_of(r.row), fmt::join(parts, ": "));
}

}  // namespace dpt
