// Plans that several threads make before kernels are prepared.
#include "backend/cuda/interface/context.h"

#include <cstdlib>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cuda/fake_api.h"
#include "base/error.h"
#include "data/folder.h"

namespace dpt::cuda {
namespace {

class PlanThreads {
 public:
  explicit PlanThreads(const char* number) { setenv("DPTRAIN_PLAN_THREADS", number, 1); }
  ~PlanThreads() { unsetenv("DPTRAIN_PLAN_THREADS"); }
};

DnnNorm norm_of(int64_t channels) { return {.x = {2, channels, 4, 4}}; }
DnnConvolution convolution_of(int64_t channels, bool relu) {
  return {.x = {2, 3, 8, 8},
          .w = {channels, 3, 3, 3},
          .y = {2, channels, 6, 6},
          .window = {.kernel = {1, 3, 3}},
          .relu = relu};
}

// Kernels of two norms, and of convolutions with relu, which are prepared without it where the
// library refuses; and a fallback for each that it refuses in both forms.
void prepare_kernels(DeviceContext& context) {
  for (const int64_t channels : {3, 5, 3}) {
    if (!context.prepared(norm_of(channels)).work) context.fall_back("an own norm");
    context.reserve(1000);
    if (context.prepared(convolution_of(channels, true)).work) continue;
    if (!context.prepared(convolution_of(channels, false)).work) context.fall_back("an own one");
  }
  context.prepared(Matmul{.m = 2, .n = 2, .k = 2});
}

struct Prepared {
  std::vector<std::string> answers, differences;
  int64_t fallbacks = 0;
  size_t workspace = 0;
  bool operator==(const Prepared&) const = default;
};
Prepared prepare(FakeApi& api, bool ahead) {
  const auto stream = api.make_stream();
  DeviceContext context(api, *stream, nullptr);
  if (ahead) context.make_plans([&] { prepare_kernels(context); });
  const int64_t before = api.plans();
  CHECK(context.take_answers().empty());
  CHECK(context.fallbacks() == 0);
  prepare_kernels(context);
  if (ahead) CHECK(api.plans() == before);
  return {context.take_answers(), context.not_as_planned(), context.fallbacks(),
          context.workspace_bytes()};
}

TEST_CASE("several threads make cuDNN's plans at the same time") {
  const PlanThreads threads("3");
  FakeApi api({.planners = 3});
  const Prepared made = prepare(api, true);
  CHECK(made.answers == std::vector<std::string>(7, "plain loops"));
  CHECK(api.plans() == 4);
  CHECK(api.leaks().find("works") == std::string::npos);
}

TEST_CASE("one thread makes cuDNN's plans where it is told so") {
  const PlanThreads threads("1");
  FakeApi api;
  const auto stream = api.make_stream();
  DeviceContext context(api, *stream, nullptr);
  context.make_plans([&] { prepare_kernels(context); });
  CHECK(api.plans() == 0);
}

TEST_CASE("kernels are the same with and without plans that were made ahead") {
  const PlanThreads threads("4");
  for (const FakeApi::Settings& settings :
       {FakeApi::Settings{}, {.epilogues = false}, {.libraries = false}}) {
    FakeApi ahead(settings), one_by_one(settings);
    CHECK(prepare(ahead, true) == prepare(one_by_one, false));
    CHECK(ahead.plans() == one_by_one.plans());
  }
}

TEST_CASE("a failure of a thread that makes plans ends the preparation") {
  const PlanThreads threads("2");
  FakeApi api({.fail_call = 3, .planners = 2});
  const auto stream = api.make_stream();
  DeviceContext context(api, *stream, nullptr);
  CHECK_THROWS_WITH_AS(context.make_plans([&] { prepare_kernels(context); }),
                       doctest::Contains("was told to fail"), Error);
  prepare_kernels(context);
  CHECK(context.take_answers().size() == 7);
}

// Whose plans were all made at an earlier start.
class StartedBefore final : public FakeApi {
 public:
  using FakeApi::prepare;
  std::unique_ptr<DeviceWork> prepare(const DnnNorm&) override { return std::make_unique<Kept>(); }

 private:
  struct Kept final : DeviceWork {
    size_t workspace_bytes() const override { return 7; }
    std::string algorithm() const override { return "kept"; }
    bool from_cache() const override { return true; }
  };
};

TEST_CASE("DPTRAIN_LOG_PLANS tells plans from the cache") {
  const Folder folder;
  setenv("DPTRAIN_LOG_PLANS", folder.file("plans").c_str(), 1);
  const PlanThreads threads("2");
  StartedBefore api;
  const auto stream = api.make_stream();
  DeviceContext context(api, *stream, nullptr);
  unsetenv("DPTRAIN_LOG_PLANS");
  context.make_plans([&] { prepare_kernels(context); });
  const std::string log = read_file(folder.file("plans"));
  const size_t norm = log.find("plan\tcuda:0\tbatch norm of [2, 3, 4, 4] in f32\tkept\t7 bytes\t");
  REQUIRE(norm != std::string::npos);
  CHECK(log.substr(norm, log.find('\n', norm) - norm).ends_with(" ms from cache"));
  const size_t convolution = log.find("plan\tcuda:0\tconvolution");
  REQUIRE(convolution != std::string::npos);
  CHECK(log.substr(convolution, log.find('\n', convolution) - convolution).ends_with(" ms"));
}

TEST_CASE("DPTRAIN_PLAN_THREADS is a number of threads") {
  for (const char* wrong : {"0", "-1", "many", "2x", "257"}) {
    const PlanThreads threads(wrong);
    CHECK_THROWS_WITH_AS(plan_threads(), doctest::Contains("DPTRAIN_PLAN_THREADS"), Error);
  }
  const PlanThreads threads("5");
  CHECK(plan_threads() == 5);
}

}  // namespace
}  // namespace dpt::cuda
