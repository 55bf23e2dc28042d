#include "train/bottlenecks.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/count.h"

namespace dpt {
namespace {

constexpr double kShortest = 2;  // s of training; less says little
constexpr double kMostData = 0.2, kMostDelay = 0.2, kMostBarriers = 0.25;

double percent(double share) { return 100 * std::min(1.0, share); }

std::string data_text(const SessionData& data, double share) {
  if (data.train.reader)
    return fmt::format(
        "warning: {:.0f} % of the training time is spent waiting for data: images are not decoded "
        "fast enough; give the run more cores, or store the images at the size used for training\n",
        percent(share));
  return fmt::format(
      "warning: {:.0f} % of the training time is spent making batches: the cores that train also "
      "apply the transforms; give the run more cores, or use fewer transforms\n",
      percent(share));
}

std::string delay_text(double share) {
  return fmt::format(
      "warning: for {:.0f} % of the time the first worker waited for a core that another "
      "program used, and all workers wait for the slowest; end the other programs, or use fewer "
      "cores\n",
      percent(share));
}

std::string barrier_text(const Devices& devices, const SessionBatches& batches,
                         const TrainingTimes& t) {
  const double ms = 1e3 * t.seconds / static_cast<double>(std::max<int64_t>(1, t.steps));
  const bool one_each = devices.topology.workers_per_device == 1;
  const int workers = devices.topology.total_workers();
  return fmt::format(
      "warning: steps of {:.3g} ms spend {:.0f} % of their time at barriers, where workers wait "
      "for each other: a batch of {} is too small for {}; use fewer, or a larger batch\n",
      ms, percent(t.barriers / t.seconds), batches.global_batch,
      counted(workers, one_each ? "device" : "core"));
}

}  // namespace

std::string Bottlenecks::after_epoch(const TrainingTimes& epoch) {
  since_ = since_ + epoch;
  if (since_.seconds < kShortest) return "";
  return cause(std::exchange(since_, {}));
}

// Late data and a lost core also make workers wait at barriers: only the first cause is named.
std::string Bottlenecks::cause(const TrainingTimes& t) {
  // A run with more workers than cores was warned of when it began.
  const bool crowded = session_.devices.topology.total_workers() > cores_;
  // The threads that decode images use the workers' cores, too.
  const bool alone = !session_.devices.on_gpu() && !session_.data.train.reader;
  const double delay = delay_();
  if (delay > kMostDelay && alone)
    return crowded || std::exchange(told_cores_, true) ? "" : delay_text(delay);
  if (t.data > kMostData * t.seconds)
    return std::exchange(told_data_, true) ? "" : data_text(session_.data, t.data / t.seconds);
  if (t.barriers > kMostBarriers * t.seconds && !crowded)
    return std::exchange(told_barriers_, true)
               ? ""
               : barrier_text(session_.devices, session_.batches, t);
  return "";
}

}  // namespace dpt
