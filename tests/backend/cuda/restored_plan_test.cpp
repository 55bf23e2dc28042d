// Plans of the cache that cuDNN restores but cannot execute.
#include "backend/cuda/module/restored_plan.h"

#include <memory>
#include <string>

#include <doctest/doctest.h>

#include "data/folder.h"

namespace dpt::cuda {
namespace {

struct Calls {
  int made = 0, run = 0;
};

class SomePlan final : public DnnPlan {
 public:
  SomePlan(std::string name, bool executes, Calls& calls, size_t workspace = 100)
      : name_(std::move(name)), executes_(executes), calls_(calls), workspace_(workspace) {}
  size_t workspace_bytes() const override { return workspace_; }
  std::string name() const override { return name_; }
  bool from_cache() const override { return name_ == "old"; }
  std::string saved() const override { return name_; }
  void run(void*, std::span<std::byte* const>, std::byte*) override {
    ++calls_.run;
    if (!executes_) fail(Fault::device, "cudnnBackendExecute: {} fails", name_);
  }

 private:
  std::string name_;
  bool executes_;
  Calls& calls_;
  size_t workspace_;
};

// A cache that holds the plan "old" with the key "key".
struct Restored {
  Folder folder;
  PlanCache cache{folder.file("plans")};
  Calls calls;
  std::unique_ptr<RestoredPlan> plan;

  explicit Restored(bool executes, const RestoredPlan::Make& make) {
    cache.write("key", "old");
    plan = std::make_unique<RestoredPlan>(std::make_unique<SomePlan>("old", executes, calls), cache,
                                          "key", [this, make](void* handle) {
                                            ++calls.made;
                                            return make(handle);
                                          });
  }
  void run() { plan->run(nullptr, {}, nullptr); }
};

TEST_CASE("a restored plan that cannot be executed is made again at its first execution") {
  Calls of_new;
  Restored r(false, [&](void*) { return std::make_unique<SomePlan>("new", true, of_new); });
  CHECK(r.plan->from_cache());
  r.run();
  CHECK(r.calls.made == 1);
  CHECK(of_new.run == 1);
  CHECK(r.cache.read("key") == "new");
  CHECK(r.plan->name() == "new");
  CHECK(!r.plan->from_cache());
  r.run();
  CHECK(r.calls.made == 1);
  CHECK(r.calls.run == 1);
  CHECK(of_new.run == 2);
}

TEST_CASE("a restored plan that was executed once stays in the cache") {
  Restored r(true, [](void*) -> std::unique_ptr<DnnPlan> { return nullptr; });
  r.run();
  r.run();
  CHECK(r.calls.made == 0);
  CHECK(r.calls.run == 2);
  CHECK(r.cache.read("key") == "old");
}

TEST_CASE("a plan that cannot be executed leaves the cache, also if there is no new one") {
  Calls of_new;
  {
    Restored r(false, [&](void*) { return std::make_unique<SomePlan>("new", false, of_new); });
    CHECK_THROWS_WITH(r.run(), "cudnnBackendExecute: new fails");
    CHECK(!r.cache.read("key"));
    CHECK_THROWS_WITH(r.run(), "cudnnBackendExecute: new fails");
    CHECK(r.calls.made == 1);
  }
  {
    Restored r(false, [](void*) -> std::unique_ptr<DnnPlan> {
      fail(Fault::device, "cuDNN failed to make a plan");
    });
    CHECK_THROWS_WITH(r.run(), "cuDNN failed to make a plan");
    CHECK(!r.cache.read("key"));
  }
  Restored r(false, [&](void*) { return std::make_unique<SomePlan>("new", true, of_new, 101); });
  try {
    r.run();
    FAIL("a plan ran with too small a workspace");
  } catch (const Error& e) {
    CHECK(e.report() ==
          "the new plan needs 101 bytes of workspace instead of 100; start the run again\n"
          "  while replacing a plan of the cuDNN plan cache that failed: cudnnBackendExecute: old "
          "fails");
  }
  CHECK(!r.cache.read("key"));
}

}  // namespace
}  // namespace dpt::cuda
