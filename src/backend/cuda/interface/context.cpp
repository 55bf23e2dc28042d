#include "backend/cuda/interface/context.h"

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include "base/count.h"
#include "base/error.h"
#include "base/fail.h"
#include "base/machine.h"
#include "comm/heartbeat.h"

namespace dpt::cuda {
namespace {

thread_local DeviceContext* now = nullptr;

// In place of a plan that is not made yet.
class LaterWork final : public DeviceWork {
 public:
  size_t workspace_bytes() const override { return 0; }
  std::string algorithm() const override { return ""; }
};

// Joins what it holds, also where a thread cannot be started.
struct Threads {
  std::vector<std::thread> all;
  Threads() = default;
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  ~Threads() {
    for (std::thread& t : all) t.join();
  }
};

}  // namespace

size_t plan_threads() {
  constexpr size_t kMost = 16, kMostGiven = 256;
  const char* const given = std::getenv("DPTRAIN_PLAN_THREADS");
  if (given == nullptr || *given == 0) return std::min(kMost, usable_cores().size());
  const std::string_view text = given;
  size_t threads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
  if (error != std::errc() || end != text.data() + text.size() || threads == 0 ||
      threads > kMostGiven)
    fail(Fault::failed,
         "DPTRAIN_PLAN_THREADS is '{}', but must be a number of threads from 1 to {}", text,
         kMostGiven);
  return threads;
}

DeviceContext& DeviceContext::current() {
  require(now != nullptr, "a kernel of a GPU is prepared for a DeviceContext");
  return *now;
}

void DeviceContext::make_plans(const std::function<void()>& prepare) {
  if (plan_threads() == 1) return;
  do {
    make_wanted();
    const Use use(*this);
    collecting_ = true;
    try {
      prepare();
    } catch (...) {
      collecting_ = false;
      wanted_.clear();
      throw;
    }
    collecting_ = false;
  } while (!wanted_.empty());
}

DeviceContext::Prepared DeviceContext::wanted(const DnnDescription& d) {
  static const auto later = std::make_shared<LaterWork>();
  if (std::ranges::find(wanted_, d) == wanted_.end()) wanted_.push_back(d);
  return {later, ""};
}

void DeviceContext::make_wanted() {
  const std::vector<DnnDescription> wanted = std::exchange(wanted_, {});
  std::vector<Made> results(wanted.size());
  std::vector<std::exception_ptr> failures(wanted.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < wanted.size(); i = next++) try {
        results[i] = std::visit([&](const auto& d) { return made(d); }, wanted[i]);
      } catch (...) {
        failures[i] = std::current_exception();
        next = wanted.size();
      }
  };
  {
    Threads threads;
    for (size_t i = 1; i < std::min(plan_threads(), wanted.size()); ++i)
      threads.all.push_back(start_without_signals(work));
    work();
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  for (size_t i = 0; i < wanted.size(); ++i)
    std::visit(
        [&]<class Description>(const Description& d) {
          std::get<Known<Description>>(prepared_).emplace_back(d,
                                                               finished(d, std::move(results[i])));
        },
        wanted[i]);
}

std::vector<std::string> DeviceContext::not_as_planned() const {
  std::vector<std::string> out(reasons_.begin(), reasons_.end());
  if (fallbacks_ > 0)
    out.push_back(
        fmt::format("{} of this GPU's programs {} dptrain's own instead of a library's; set "
                    "DPTRAIN_LOG_PLANS=FILE to log the algorithm of every operation",
                    counted(fallbacks_, "kernel"), fallbacks_ == 1 ? "is" : "are"));
  return out;
}

DeviceContext::Use::Use(DeviceContext& context) : before_(now) { now = &context; }
DeviceContext::Use::~Use() { now = before_; }

}  // namespace dpt::cuda
