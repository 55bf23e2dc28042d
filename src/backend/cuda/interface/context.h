// Shared state of the kernels of one GPU, while they are prepared and while they run.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "backend/cuda/interface/device_api.h"
#include "backend/cuda/interface/plan_log.h"
#include "backend/cuda/interface/work_text.h"
#include "backend/cuda/kernels/step_state.h"

namespace dpt::cuda {

// Kernels that are prepared while a context is current keep a reference to it. The owner allocates
// `workspace` (workspace_bytes()) after all kernels are prepared and before the first one runs.
// Thread: one.
class DeviceContext {
 public:
  DeviceContext(DeviceApi& device, Stream& on, StepState* step_state)
      : api(device), stream(on), state(step_state), log_(device.properties().index) {}

  DeviceApi& api;
  Stream& stream;     // on which kernels are enqueued
  StepState* state;   // device memory
  bool tf32 = false;  // products of f32 may round their operands to TF32
  std::byte* workspace = nullptr;
  // Bytes that the gradient of attention may take before it is made in pieces of the batch.
  size_t attention_workspace = kAttentionWorkspace;

  // Requests scratch memory for a kernel's own use during its launches. All kernels share it, since
  // a stream runs them one after another.
  void reserve(size_t bytes) {
    if (!collecting_) workspace_bytes_ = std::max(workspace_bytes_, bytes);
  }
  size_t workspace_bytes() const { return workspace_bytes_; }

  // A library's prepared work, shared by all nodes with the same description. work is null if the
  // library has no algorithm; why: its message.
  struct Prepared {
    std::shared_ptr<DeviceWork> work;
    std::string why;
    std::string answer() const { return work ? work->algorithm() : "refused: " + why; }
  };
  // Prepares the work at the first call for each description.
  template <class Description>
  Prepared prepared(const Description& d) {
    auto& known = std::get<Known<Description>>(prepared_);
    for (const auto& [description, before] : known)
      if (description == d) return answered(before);
    if constexpr (kIsOfCudnn<Description>)
      if (collecting_) return wanted(d);
    return answered(known.emplace_back(d, finished(d, made(d))).second);
  }

  // Makes cuDNN's plans on plan_threads() threads, since cuDNN takes up to half a second for each.
  // `prepare` prepares all kernels of the program; the caller prepares them again afterwards, to
  // keep them. Calls `prepare` until no plan is missing, because a refused plan may lead to another
  // request. Kernels of these calls must not be run. Must not be called during a capture.
  void make_plans(const std::function<void()>& prepare);

  // Records that an own kernel computes what the plan gives to a library. sentence: the reason.
  void fall_back(std::string sentence) {
    if (collecting_) return;
    reasons_.insert(std::move(sentence));
    ++fallbacks_;
  }
  int64_t fallbacks() const { return fallbacks_; }  // number of such kernels in all programs
  // How the kernels differ from the plan, one line per difference.
  std::vector<std::string> not_as_planned() const;

  // The libraries' answers since the last call: algorithms, or "refused: ...".
  std::vector<std::string> take_answers() { return std::exchange(answers_, {}); }
  // Logs the operation whose kernel was prepared last.
  void log_node(std::string_view layer, std::string_view op, std::string_view implementation) {
    if (collecting_) return;
    log_.node(layer, op, implementation, take_answers());
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
  template <class Description>
  using Known = std::vector<std::pair<Description, Prepared>>;
  // What cuDNN plans. cuBLASLt only chooses, which takes less time than starting a thread.
  using DnnDescription = std::variant<DnnConvolution, DnnNorm, DnnPool, DnnAttention>;
  template <class Description>
  static constexpr bool kIsOfCudnn = std::is_constructible_v<DnnDescription, Description>;
  struct Made {
    Prepared prepared;
    double milliseconds = 0;
  };

  template <class Description>
  Made made(const Description& d) const {  // Thread: any
    Made out;
    const auto start = std::chrono::steady_clock::now();
    try {
      out.prepared.work = api.prepare(d);
    } catch (const NoAlgorithm& e) {
      out.prepared.why = e.what();
    }
    out.milliseconds =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return out;
  }
  template <class Description>
  Prepared finished(const Description& d, Made made) {
    Prepared& p = made.prepared;
    if (p.work) workspace_bytes_ = std::max(workspace_bytes_, p.work->workspace_bytes());
    if (log_.on())
      log_.plan(describe(d), p.answer(), p.work ? p.work->workspace_bytes() : 0, made.milliseconds,
                p.work && p.work->from_cache());
    return std::move(p);
  }
  const Prepared& answered(const Prepared& p) {
    if (!collecting_) answers_.push_back(p.answer());
    return p;
  }
  Prepared wanted(const DnnDescription& d);
  void make_wanted();

  size_t workspace_bytes_ = 0;
  std::tuple<Known<Matmul>, Known<DnnConvolution>, Known<DnnNorm>, Known<DnnPool>,
             Known<DnnAttention>>
      prepared_;
  bool collecting_ = false;             // within make_plans
  std::vector<DnnDescription> wanted_;  // and not known yet
  PlanLog log_;
  std::vector<std::string> answers_;  // of the libraries, for the operation that is being prepared
  std::set<std::string> reasons_;
  int64_t fallbacks_ = 0;
};

// How many threads make plans: $DPTRAIN_PLAN_THREADS, or as many as there are cores, 16 at most.
size_t plan_threads();

}  // namespace dpt::cuda
