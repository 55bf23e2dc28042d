// What the kernels of one GPU share, while they are prepared and while they run.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "backend/cuda/interface/device_api.h"
#include "backend/cuda/interface/plan_log.h"
#include "backend/cuda/interface/work_text.h"
#include "backend/cuda/kernels/step_state.h"

namespace dpt::cuda {

// Kernels that are prepared while a context is current keep a reference to it. Whoever made it
// allocates `workspace` once all are prepared, before the first one runs. Thread: one.
class DeviceContext {
 public:
  DeviceContext(DeviceApi& device, Stream& on, StepState* step_state)
      : api(device), stream(on), state(step_state), log_(device.properties().index) {}

  DeviceApi& api;
  Stream& stream;     // what kernels enqueue on
  StepState* state;   // device memory
  bool tf32 = false;  // products of f32 may round their factors to TF32
  std::byte* workspace = nullptr;

  // What a kernel wants for itself between its own launches; all share it, since a stream does one
  // after the other.
  void reserve(size_t bytes) { workspace_bytes_ = std::max(workspace_bytes_, bytes); }
  size_t workspace_bytes() const { return workspace_bytes_; }

  // Work that a library does, made once for all nodes of the same shapes; null where the library
  // has no algorithm, and its words.
  struct Prepared {
    std::shared_ptr<DeviceWork> work;
    std::string why;
    std::string answer() const { return work ? work->algorithm() : "refused: " + why; }
  };
  template <class Description>
  Prepared prepared(const Description& d) {
    auto& known = std::get<Known<Description>>(prepared_);
    for (const auto& [description, before] : known)
      if (description == d) return answered(before);
    Prepared made;
    const auto start = std::chrono::steady_clock::now();
    try {
      made.work = api.prepare(d);
      reserve(made.work->workspace_bytes());
    } catch (const NoAlgorithm& e) {
      made.why = e.what();
    }
    if (log_.on())
      log_.plan(describe(d), made.answer(), made.work ? made.work->workspace_bytes() : 0,
                std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
                    .count());
    return answered(known.emplace_back(d, std::move(made)).second);
  }

  // Records that an own kernel computes what the plan gives to a library, and the reason.
  void fall_back(std::string sentence) {
    reasons_.insert(std::move(sentence));
    ++fallbacks_;
  }
  int64_t fallbacks() const { return fallbacks_; }  // kernels of all programs
  // How the kernels differ from the plan, one line per difference.
  std::vector<std::string> not_as_planned() const;

  // The libraries' answers since the last call: algorithms, or "refused: ...".
  std::vector<std::string> take_answers() { return std::exchange(answers_, {}); }
  // Logs the operation whose kernel was prepared last.
  void log_node(std::string_view layer, std::string_view op, std::string_view row) {
    log_.node(layer, op, row, take_answers());
  }

  static DeviceContext& current();  // REQUIRES: there is one

  // Makes a context the current one of this thread.
  class Use {
   public:
    explicit Use(DeviceContext& context);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    DeviceContext* before_;
  };

 private:
  size_t workspace_bytes_ = 0;
  template <class Description>
  using Known = std::vector<std::pair<Description, Prepared>>;
  std::tuple<Known<Matmul>, Known<DnnConvolution>, Known<DnnNorm>, Known<DnnPool>,
             Known<DnnAttention>>
      prepared_;
  const Prepared& answered(const Prepared& p) {
    answers_.push_back(p.answer());
    return p;
  }

  PlanLog log_;
  std::vector<std::string> answers_;  // of libraries, for the operation that is being prepared
  std::set<std::string> reasons_;
  int64_t fallbacks_ = 0;
};

}  // namespace dpt::cuda
