#include "cli/reported_training.h"

#include <cstdio>
#include <utility>

#include "base/disk.h"
#include "base/error.h"
#include "base/stderr.h"
#include "base/units.h"
#include "describe/device_usage.h"
#include "describe/gantt.h"
#include "describe/plan_text.h"
#include "report/reported_run.h"
#include "report/run_environment.h"
#include "report/run_report.h"

namespace dpt {
namespace {

constexpr uint64_t kMostHashed = 16 * kMiB;  // some 50 ms

bool write(const std::string& path, const std::string& text) {
  try {
    UnsyncedDisk disk;
    write_file(disk, path, text);
    return true;
  } catch (const Error& e) {
    print_stderr("{}; the run is not affected\n", e.what());
    return false;
  }
}

void write_beginning(const Session& s, const RunRequest& request, const std::string& folder) try {
  write(folder + "/env.json", environment_json(s, request.identity, request.location.resume));
  write(folder + "/plan.txt", describe(s, false));
  const std::string picture = folder + "/plan.svg";
  if (s.plan.schedule.empty())
    std::remove(picture.c_str());  // of an earlier run in this directory
  else
    write(picture, gantt_svg(s.plan.schedule, predicted_timing(s.model, s.plan)));
} catch (const Error& e) {
  print_stderr("the plan of this run cannot be described: {}; the run continues\n", e.what());
}

// speaks: print where it is. After a failure the error is what stays on the screen.
void write_report(const std::string& folder, bool speaks) {
  if (folder.empty()) return;  // not rank 0, or it has not begun
  const std::string path = folder + "/report.html";
  if (write(path, run_report(read_reported(folder, folder, kMostHashed))) && speaks)
    print_note("report: {}\n", path);
}

}  // namespace

int run_and_report(const Session& session, RunRequest request, std::string& folder) {
  folder.clear();
  const RunRequest& asked = request;
  request.begun = [&](const std::string& run) {
    folder = run;
    write_beginning(session, asked, run);
  };
  try {
    const int code = run(session, request);
    const bool failed = code > 0 && code <= static_cast<int>(Fault::diverged);
    write_report(folder, !failed);
    return code;
  } catch (const Error&) {
    write_report(folder, false);
    throw;
  }
}

}  // namespace dpt
