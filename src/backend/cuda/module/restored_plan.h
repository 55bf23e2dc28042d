// A cuDNN plan from the user's plan cache that is made again if cuDNN cannot execute it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "backend/cuda/interface/plan_cache.h"
#include "backend/cuda/module/dnn_plan.h"
#include "base/fail.h"

namespace dpt::cuda {

// cuDNN may restore a plan and only refuse it when it is executed. If the first execution fails,
// the plan is removed from the cache, and a new plan is made and executed. The new plan is written
// to the cache if it works; otherwise the run ends with its error. A plan that worked once is not
// replaced. The first execution is never captured (engine/gpu/executor.h), so a plan can be made
// then. Thread: one.
class RestoredPlan final : public DnnPlan {
 public:
  // Makes the plan with a handle, without the cache.
  using Make = std::function<std::unique_ptr<DnnPlan>(void* handle)>;

  // plan: restored from the entry `key` of the cache, which must outlive this plan.
  RestoredPlan(std::unique_ptr<DnnPlan> plan, PlanCache& cache, std::string key, Make make)
      : plan_(std::move(plan)),
        cache_(cache),
        key_(std::move(key)),
        make_(std::move(make)),
        workspace_(plan_->workspace_bytes()) {}

  size_t workspace_bytes() const override { return workspace_; }
  std::string name() const override { return plan_->name(); }
  bool from_cache() const override { return plan_->from_cache(); }
  std::string saved() const override { return plan_->saved(); }

  void run(void* handle, std::span<std::byte* const> tensors, std::byte* workspace) override {
    if (!make_) return plan_->run(handle, tensors, workspace);
    const Make make = std::exchange(make_, nullptr);
    std::string why;
    try {
      return plan_->run(handle, tensors, workspace);
    } catch (const Error& e) {
      why = e.what();
    }
    cache_.remove(key_);
    try {
      plan_ = make(handle);
      // The workspace was allocated for the restored plan.
      if (plan_->workspace_bytes() > workspace_)
        fail(Fault::device,
             "the new plan needs {} bytes of workspace instead of {}; start the run again",
             plan_->workspace_bytes(), workspace_);
      plan_->run(handle, tensors, workspace);
    } catch (Error& e) {
      e.during("replacing a plan of the cuDNN plan cache that failed: " + why);
      throw;
    }
    cache_.reject(key_, why);
    cache_.write(key_, plan_->saved());
  }

 private:
  std::unique_ptr<DnnPlan> plan_;
  PlanCache& cache_;
  std::string key_;
  Make make_;  // null after the first execution
  size_t workspace_;
};

}  // namespace dpt::cuda
