#include "bench/reasons.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/count.h"

namespace dpt {
namespace {

struct Cause {
  double ms = 0;  // of the time of a sample
  std::string text;
};

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

std::string samples(int64_t n) { return counted(n, "sample"); }

// What all workers together compute for one sample, in ms, as far as other programs let them.
double compute_ms(const RowResult& r) {
  return r.ms_per_sample * r.facts.workers *
         (r.share(&WorkerSeconds::compute) - r.share(&WorkerSeconds::taken));
}

// How much longer the busiest worker computes than the mean.
double imbalance(const RowResult& r) {
  return r.spent.compute > 0 ? r.spent.slowest * r.facts.workers / r.spent.compute - 1 : 0;
}

std::string waiting_text(const RowResult& r) {
  const std::string share = percent(r.share(&WorkerSeconds::waiting));
  if (r.facts.bubble > 0)
    return fmt::format(
        "waits {} of the time for the stage before or behind: its schedule leaves {} to wait, with "
        "stages that compute equally long",
        share, percent(r.facts.bubble));
  if (r.facts.most > r.facts.fewest && imbalance(r) > 0.05)
    return fmt::format(
        "waits {} of the time for the worker that has {} of a batch, where another has {}", share,
        samples(r.facts.most), r.facts.fewest);
  if (r.facts.loss_on_one && imbalance(r) > 0.05)
    return fmt::format("waits {} of the time for one device, which computes the loss for all",
                       share);
  if (imbalance(r) > 0.05)
    return fmt::format(
        "waits {} of the time for the slower worker, which computes for {} longer than the mean",
        share, percent(imbalance(r)));
  const double step_us = 1000 * r.ms_per_sample * static_cast<double>(r.row.batch_size);
  return fmt::format(
      "spends {} of the time in the {} meetings of a step, which takes only {:.3g} us", share,
      r.facts.meetings, step_us);
}

std::string compute_text(const RowResult& r, const RowResult& single) {
  const double ratio = compute_ms(r) / compute_ms(single);
  if (r.facts.most < single.facts.most)
    return fmt::format(
        "has a batch of only {} per worker: computing a sample costs {:.2g} times "
        "what it does in batches of {}",
        r.facts.most, ratio, single.facts.most);
  return fmt::format(
      "has workers that hinder each other: computing a sample costs {:.2g} times what it does in "
      "single",
      ratio);
}

// What workers share where they are more than these.
struct Places {
  int count;
  std::string_view name;
  std::string text() const { return counted(count, name); }
};
Places places_of(const RowResult& r, int cores) {
  return r.facts.gpus > 0 ? Places{r.facts.gpus, "GPU"} : Places{cores, "core"};
}

std::vector<Cause> causes(const RowResult& r, const RowResult& single, const Places& places) {
  std::vector<Cause> out;
  const auto add = [&](double ms, std::string text) {
    if (ms > 0) out.push_back({ms, std::move(text)});
  };
  const double workers = r.facts.workers;
  const auto more = [&](double WorkerSeconds::*what) {
    return r.ms_per_sample * r.share(what) - single.ms_per_sample * single.share(what);
  };
  // Where workers take turns on a core, what they wait and compute for are both that.
  if (r.facts.workers > places.count)
    return {{1, fmt::format("has more workers than {}s: {} on {}", places.name, r.facts.workers,
                            places.count)}};
  if (r.facts.workers < single.facts.workers)
    add(compute_ms(single) * (1 / workers - 1.0 / single.facts.workers),
        fmt::format("has {}, single {}", counted(r.facts.workers, "worker"), single.facts.workers));
  add(more(&WorkerSeconds::waiting), waiting_text(r));
  add(more(&WorkerSeconds::communication),
      fmt::format("spends {} of the time on what other workers made: their gradients and losses",
                  percent(r.share(&WorkerSeconds::communication))));
  add(more(&WorkerSeconds::taken),
      fmt::format("had no core for {} of the time, which other programs took",
                  percent(r.share(&WorkerSeconds::taken))));
  add((compute_ms(r) - compute_ms(single)) / workers, compute_text(r, single));
  std::ranges::stable_sort(out, std::ranges::greater{}, &Cause::ms);
  return out;
}

std::string sentence(const RowResult& r, const RowResult& single, int cores) {
  const std::string head = fmt::format("{}: {:.3g}x slower than single", name_of(r.row),
                                       r.ms_per_sample / single.ms_per_sample);
  if (r.fastest <= single.slowest) return head + ", within the variation between rounds.";
  const std::vector<Cause> found = causes(r, single, places_of(r, cores));
  std::vector<std::string_view> told;
  for (const Cause& c : found)
    if (c.ms >= found.front().ms / 3) told.push_back(c.text);
  return told.empty() ? head + "." : fmt::format("{}: it {}.", head, fmt::join(told, "; and "));
}

}  // namespace

std::string name_of(const BenchRow& row) {
  return fmt::format("{} on {}, batch {}{}", row.mode, counted(row.devices, "device"),
                     row.batch_size, row.precision == "fp32" ? "" : ", " + row.precision);
}

const RowResult* single_of(const RowResult& r, std::span<const RowResult> all) {
  if (r.row.mode == "single" || !r.refused.empty()) return nullptr;
  const auto at = std::ranges::find_if(all, [&](const RowResult& s) {
    return s.row.mode == "single" && s.refused.empty() && s.row.batch_size == r.row.batch_size &&
           s.row.precision == r.row.precision;
  });
  return at == all.end() ? nullptr : &*at;
}

std::vector<std::string> reasons(std::span<const RowResult> rows, int cores) {
  std::vector<std::string> out;
  for (const RowResult& r : rows) {
    const RowResult* single = single_of(r, rows);
    if (single && r.ms_per_sample > single->ms_per_sample)
      out.push_back(sentence(r, *single, cores));
    else if (const Places places = places_of(r, cores);
             r.refused.empty() && r.facts.workers > places.count)
      out.push_back(fmt::format("{}: {} workers share {}, so they take turns.", name_of(r.row),
                                r.facts.workers, places.text()));
  }
  return out;
}

}  // namespace dpt
