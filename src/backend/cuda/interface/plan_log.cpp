#include "backend/cuda/interface/plan_log.h"

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/fail.h"

namespace dpt::cuda {
namespace {

[[noreturn]] void cannot_write(const std::string& path) {
  fail(Fault::failed, "DPTRAIN_LOG_PLANS: {} cannot be written: {}", path,
       std::generic_category().message(errno));
}

}  // namespace

PlanLog::PlanLog(int gpu) : gpu_(fmt::format("cuda:{}", gpu)) {
  const char* const path = std::getenv("DPTRAIN_LOG_PLANS");
  if (path == nullptr || *path == 0) return;
  path_ = path;
  fd_ = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd_ < 0) cannot_write(path_);
}

PlanLog::~PlanLog() {
  if (on()) ::close(fd_);
}

void PlanLog::plan(std::string_view operation, std::string_view answer, size_t workspace_bytes,
                   double milliseconds, bool from_cache) {
  if (!on()) return;
  write(fmt::format("plan\t{}\t{}\t{}\t{} bytes\t{:.2f} ms{}\n", gpu_, operation, answer,
                    workspace_bytes, milliseconds, from_cache ? " from cache" : ""));
}

void PlanLog::node(std::string_view layer, std::string_view op, std::string_view implementation,
                   std::span<const std::string> answers) {
  if (!on()) return;
  std::string line =
      fmt::format("node\t{}\t{}\t{}\t{}\t{}\n", gpu_, layer.empty() ? "-" : layer, op,
                  implementation, answers.empty() ? "-" : fmt::to_string(fmt::join(answers, "; ")));
  if (nodes_.insert(line).second) write(line);
}

void PlanLog::write(const std::string& line) {
  if (::write(fd_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    cannot_write(path_);
}

}  // namespace dpt::cuda
