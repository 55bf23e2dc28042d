#include "cli/fit_batch.h"

#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "base/byte_count.h"
#include "base/count.h"
#include "base/fail.h"
#include "base/stderr.h"
#include "base/stdout.h"
#include "describe/device_memory.h"

namespace dpt::commands {
namespace {

// The session of a batch size, of the whole batch or per replica: memory_limit does not count.
std::unique_ptr<const Session> session_with(const LoadedSpec& loaded, std::optional<int64_t> batch,
                                            std::optional<int64_t> per_replica, Diagnostics& d) {
  Spec spec = loaded.spec;
  spec.data.batch_size = batch;
  spec.data.batch_size_per_replica = per_replica;
  spec.data.auto_batch = false;
  spec.memory_limit.reset();
  return make_session(std::move(spec), {.runs = false, .sizes_only = true}, d);
}

struct Facts {
  int64_t samples = 1, replicas = 1;
};

// For a session with some batch size: not every size fits every spec.
Facts facts_of(const LoadedSpec& loaded) {
  std::string first;
  for (int64_t each = 1; each <= 1024; each *= 2) {
    Diagnostics d;
    if (const auto s = session_with(loaded, std::nullopt, each, d))
      return {.samples = s->data.train_samples(), .replicas = s->devices.topology.replicas()};
    if (first.empty()) first = d.render();
  }
  throw BadSpec{first};
}

size_t fullest(const std::vector<double>& memory) {
  return static_cast<size_t>(std::ranges::max_element(memory) - memory.begin());
}

// "device 1 needs 7.93 GiB"; of a single device "a device needs".
std::string need_text(const std::vector<double>& memory, std::string_view verb) {
  const size_t d = fullest(memory);
  return fmt::format("{} {} {}", memory.size() == 1 ? "a device" : fmt::format("device {}", d),
                     verb, bytes_text(memory[d]));
}

}  // namespace

void print_fitting_batch(const LoadedSpec& loaded, const std::string& size) {
  const std::optional<double> bytes = parse_bytes(size);
  if (!bytes)
    fail(Fault::spec, "--fit: '{}' is not a size; write a number of bytes, or 512MiB, 8GiB", size);
  const Facts facts = facts_of(loaded);
  const int64_t unit = facts.replicas * loaded.spec.accumulate;
  Diagnostics last;
  const BatchFit fit = fit_batch(*bytes, unit, facts.samples, [&](int64_t batch) {
    last = {};
    return session_with(loaded, batch, std::nullopt, last);
  });
  if (fit.batch == 0 && fit.next == 0) throw BadSpec{last.render()};
  if (fit.batch == 0)
    fail(Fault::memory,
         "a batch of {} does not fit: {}, but --fit gives it {}; put layers on more devices, "
         "recompute activations (`checkpoint`), or use a smaller model",
         counted(fit.next, "sample"), need_text(fit.next_memory, "needs"), bytes_text(*bytes));
  std::string why = "this is the whole training set";
  if (fit.next > 0)
    why = fit.next_memory.empty()
              ? fmt::format("the spec does not allow {}", fit.next)
              : fmt::format("with {} {}", fit.next, need_text(fit.next_memory, "would need"));
  print_stdout("{}\n", fit.batch);
  print_stderr(
      "data.batch_size: {} is the largest that fits into {} per device{}: {}; {}\n", fit.batch,
      bytes_text(*bytes),
      facts.replicas == 1 ? "" : fmt::format(", {} per replica", fit.batch / facts.replicas),
      need_text(fit.memory, "needs"), why);
}

}  // namespace dpt::commands
