// Matrix products, convolutions, norms, pooling and attention as the fake GPU computes them: plain
// loops, sums in double.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "backend/cuda/host_kernels.h"
#include "backend/cuda/interface/device_api.h"

namespace dpt::cuda {

class FakeWork : public DeviceWork {
 public:
  explicit FakeWork(int& live) : live_(live) { ++live_; }
  ~FakeWork() override { --live_; }
  size_t workspace_bytes() const override { return 512; }
  std::string algorithm() const override { return "plain loops"; }
  std::string key() const { return fmt::format("work {}", static_cast<const void*>(this)); }
  virtual std::string text() const = 0;
  virtual std::vector<Touched> touches(std::span<std::byte* const> tensors) const = 0;
  // What it is to do with these tensors.
  virtual std::function<void()> bound(std::span<std::byte* const> tensors) const = 0;

 private:
  int& live_;
};

// live: how many there are.
std::unique_ptr<FakeWork> fake_work(const Matmul& m, int& live);
std::unique_ptr<FakeWork> fake_work(const DnnConvolution& c, int& live);
std::unique_ptr<FakeWork> fake_work(const DnnNorm& n, int& live);
std::unique_ptr<FakeWork> fake_work(const DnnPool& p, int& live);
std::unique_ptr<FakeWork> fake_work(const DnnAttention& a, int& live);

}  // namespace dpt::cuda
