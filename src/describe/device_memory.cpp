#include "describe/device_memory.h"

#include <algorithm>

#include "engine/gpu/batch_input.h"
#include "engine/gpu/executor.h"
#include "engine/gpu/gather.h"
#include "session/memory.h"

namespace dpt {
std::vector<double> device_memory(const Session& s) {
  std::vector<double> out;
  if (!s.devices.on_gpu()) {
    for (const DeviceUse& use : device_uses(s)) out.push_back(use.total());
    return out;
  }
  const size_t outputs = s.devices.topology.loss_device >= 0 ? GpuGather::bytes(s) : 0;
  for (int d = 0; d < s.devices.topology.devices_per_replica; ++d)
    out.push_back(static_cast<double>(GpuExecutor::needs(s, d).all() +
                                      kStagedBatches * staged_bytes(s.data, s.batches, s.model, d) +
                                      (d == s.devices.topology.loss_device ? outputs : 0)));
  return out;
}

BatchFit fit_batch(double bytes, int64_t unit, int64_t most,
                   const std::function<std::unique_ptr<const Session>(int64_t batch)>& session_of) {
  BatchFit out;
  int64_t fits = 0, fails = 0;  // in units
  const auto accepts = [&](int64_t units) {
    const std::unique_ptr<const Session> s = session_of(units * unit);
    std::vector<double> memory = s ? device_memory(*s) : std::vector<double>{};
    const bool ok = s && std::ranges::max(memory) <= bytes;
    if (ok) {
      fits = units;
      out.batch = units * unit;
      out.memory = std::move(memory);
    } else if (s || fits > 0) {
      fails = units;
      out.next = units * unit;
      out.next_memory = std::move(memory);
    }
    return ok;
  };
  const int64_t last = std::max<int64_t>(1, most / unit);
  // Small batches that the spec does not allow neither fit nor fail.
  for (int64_t units = 1; fails == 0; units = std::min(last, 2 * units)) {
    accepts(units);
    if (units == last) break;
  }
  while (fails > fits + 1 && fits > 0) accepts(fits + (fails - fits) / 2);
  return out;
}

}  // namespace dpt
