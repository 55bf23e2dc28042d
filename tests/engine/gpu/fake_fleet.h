// Several fake GPUs, for runs of threads or of processes.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <doctest/doctest.h>
#include <sys/mman.h>

#include "backend/cuda/fake_api.h"
#include "backend/cuda/fake_world.h"
#include "engine/gpu/team.h"

namespace dpt {

// What each GPU was told and left behind, in memory that ranks share.
class Fleet {
 public:
  Fleet() {
    void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    shared_ = static_cast<Shared*>(memory);
  }
  ~Fleet() { munmap(shared_, sizeof(Shared)); }
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  // settings: of the GPU of that index.
  OpenGpu opener(std::function<void(cuda::FakeApi::Settings&)> change = {}) {
    return [this, change](int index) {
      cuda::FakeApi::Settings settings{.index = index, .world = &world_};
      if (change) change(settings);
      return std::make_unique<Watched>(settings, *shared_);
    };
  }
  int opened() const { return shared_->opened; }
  // Of those that were closed.
  std::string leaks() const {
    std::string out = shared_->opened == shared_->closed ? "" : "not all are closed";
    for (const Gpu& gpu : shared_->gpu) out += gpu.leaks;
    return out;
  }
  std::string calls(int index) const { return shared_->gpu[index].calls; }
  int64_t call_count(int index) const { return shared_->gpu[index].count; }
  int closed() const { return shared_->closed; }  // one whose process died is not
  int graphs(int index) const {                   // that were launched
    const std::string all = calls(index);
    int out = 0;
    for (size_t at = 0; (at = all.find(" graph of ", at)) != std::string::npos; ++at) ++out;
    return out;
  }

 private:
  struct Gpu {
    char leaks[1000], calls[100000];  // with a 0 behind it
    int64_t count;                    // of calls
  };
  struct Shared {
    std::atomic<int> opened, closed;
    Gpu gpu[4];
  };
  class Watched : public cuda::FakeApi {
   public:
    Watched(const Settings& settings, Shared& shared)
        : cuda::FakeApi(settings), shared_(shared), index_(settings.index) {
      ++shared_.opened;
    }
    ~Watched() override {
      std::string all;
      for (const std::string& call : take_calls()) all += call + "\n";
      Gpu& gpu = shared_.gpu[index_];
      all.copy(gpu.calls, sizeof gpu.calls - 1);
      gpu.count = FakeApi::calls();
      cuda::FakeApi::leaks().copy(gpu.leaks, sizeof gpu.leaks - 1);
      ++shared_.closed;
    }

   private:
    Shared& shared_;
    int index_;
  };
  Shared* shared_;
  cuda::FakeWorld world_;
};

}  // namespace dpt
