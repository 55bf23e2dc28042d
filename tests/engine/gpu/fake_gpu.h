// A fake GPU for runs of the trainer, and what they told it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/fake_api.h"
#include "train/run.h"

namespace dpt {

// What a run told its GPU, and left on it.
struct Told {
  std::vector<std::string> calls;
  int64_t count = 0, waits = 0;  // of calls; of waits of streams for events
  std::string leaks = "not closed";
  size_t most_pinned = 0;  // bytes at once
};

class WatchedGpu : public cuda::FakeApi {
 public:
  WatchedGpu(const Settings& settings, Told& told) : cuda::FakeApi(settings), told_(told) {}
  ~WatchedGpu() override {
    told_ = {take_calls(), FakeApi::calls(), FakeApi::waits(), FakeApi::leaks(),
             FakeApi::most_pinned()};
  }

 private:
  Told& told_;
};

inline OpenGpu fake_gpu(Told& told, const cuda::FakeApi::Settings& settings = {}) {
  return [&told, settings](int) { return std::make_unique<WatchedGpu>(settings, told); };
}

// Compilers write the names of types in two ways.
inline std::string without_compiler(std::string text) {
  for (const auto& [from, to] :
       {std::pair{"dpt::cuda::", ""}, {"dpt::formula::", ""}, {"> >", ">>"}})
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;)
      text.replace(at, std::string_view(from).size(), to);
  return text;
}

}  // namespace dpt
