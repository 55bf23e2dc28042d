// What the kernels of one GPU share, while they are prepared and while they run.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "backend/cuda/device_api.h"
#include "backend/cuda/kernels/step_state.h"

namespace dpt::cuda {

// Kernels that are prepared while a context is current keep a reference to it. Whoever made it
// allocates `workspace` once all are prepared, before the first one runs. Thread: one.
class DeviceContext {
 public:
  DeviceContext(DeviceApi& device, Stream& on, StepState* step_state)
      : api(device), stream(on), state(step_state) {}

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
  };
  template <class Description>
  Prepared prepared(const Description& d) {
    auto& known = std::get<Known<Description>>(prepared_);
    for (const auto& [description, before] : known)
      if (description == d) return before;
    Prepared made;
    try {
      made.work = api.prepare(d);
      reserve(made.work->workspace_bytes());
    } catch (const NoAlgorithm& e) {
      made.why = e.what();
    }
    return known.emplace_back(d, std::move(made)).second;
  }

  // What runs otherwise than the plan says, in a sentence.
  void note(std::string sentence) { notes_.insert(std::move(sentence)); }
  const std::set<std::string>& notes() const { return notes_; }

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
  std::set<std::string> notes_;
};

}  // namespace dpt::cuda
