#include "train/run_identity.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

#include "base/version.h"

namespace dpt {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown host";
}

// The job id of the batch system: SLURM, PBS or Torque, LSF, Flux, Cobalt, OAR, or Fujitsu's.
std::string job() {
  constexpr size_t kLongest = 100;
  for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "COBALT_JOBID",
                           "OAR_JOB_ID", "PJM_JOBID"})
    if (const char* value = std::getenv(name); value && *value)
      return fmt::format("job {} ({})", std::string_view(value).substr(0, kLongest), name);
  return "";
}

// One step of SplitMix64 (Steele, Lea and Flood).
uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

RunIdentity make_run_identity() {
  RunIdentity out{.id = {}, .host = host_name(), .job = job()};
  const auto time =
      static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  const uint64_t bits =
      mixed(mixed(time + static_cast<uint64_t>(::getpid())) ^ std::hash<std::string>{}(out.host));
  out.id = fmt::format("{:x}{:07x}", 10 + bits % 6, (bits >> 8) & 0xfffffff);
  return out;
}

std::string first_line(const RunIdentity& identity) {
  return fmt::format("{} on {}{}{}, run {}\n", version(), identity.host,
                     identity.job.empty() ? "" : ", ", identity.job, identity.id);
}

}  // namespace dpt
