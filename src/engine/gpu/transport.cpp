#include "engine/gpu/transport.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/units.h"

namespace dpt {
namespace {

using cuda::MemoryKind;

// While a send or receive waits on the GPU for the other stage, which may take most of a step, the
// blocks that it occupies are not available to kernels.
constexpr int kMostBlocks = 8;

class ByNccl final : public GpuTransport {
 public:
  ByNccl(cuda::DeviceApi& api, GpuTeam& gpus)
      : gpus_(gpus), all_(gpus.join_replica(api, kMostBlocks)) {}

  void send(cuda::Stream& stream, const std::byte* data, size_t bytes, int to) override {
    all_->send(stream, data, bytes, to);
  }
  void receive(cuda::Stream& stream, std::byte* data, size_t bytes, int from) override {
    all_->receive(stream, data, bytes, from);
  }
  void broadcast(cuda::Stream& stream, std::byte* data, size_t bytes, int from) override {
    all_->broadcast(stream, data, bytes, from);
  }
  void check() override {
    if (all_) all_->check();
  }
  void finish() override {
    gpus_.begin_step();
    all_->finish();
    all_.reset();
  }
  cuda::Communicator* communicator() override { return all_.get(); }

 private:
  GpuTeam& gpus_;
  std::unique_ptr<cuda::Communicator> all_;  // its ranks are device indices
};

// What a worker has sent and nobody has taken yet: a piece of it, at most.
struct alignas(kDestructiveInterference) Mailbox {
  static constexpr size_t kBytes = kMiB;
  std::atomic<int> to;  // which device takes it, from 1; 0: it is empty
  std::byte data[kBytes];
};

class ByHost final : public GpuTransport {
 public:
  ByHost(cuda::DeviceApi& api, GpuTeam& gpus, int devices)
      : gpus_(gpus),
        devices_(devices),
        pinned_(api, MemoryKind::pinned, Mailbox::kBytes),
        copied_(api.make_event()) {}

  void send(cuda::Stream& stream, const std::byte* data, size_t bytes, int to) override {
    Mailbox& mailbox = mailbox_of(gpus_.device());
    for_pieces(bytes, [&](size_t at, size_t n) {
      stream.copy(pinned_.data(), data + at, n);
      stream.record(*copied_);
      gpus_.wait(*copied_);
      gpus_.wait_until([&] { return mailbox.to.load(std::memory_order_acquire) == 0; });
      std::memcpy(mailbox.data, pinned_.data(), n);
      mailbox.to.store(to + 1, std::memory_order_release);
    });
  }
  void receive(cuda::Stream& stream, std::byte* data, size_t bytes, int from) override {
    Mailbox& mailbox = mailbox_of(from);
    for_pieces(bytes, [&](size_t at, size_t n) {
      gpus_.wait(*copied_);  // pinned_ is free again: the last piece has left it
      gpus_.wait_until(
          [&] { return mailbox.to.load(std::memory_order_acquire) == gpus_.device() + 1; });
      std::memcpy(pinned_.data(), mailbox.data, n);
      mailbox.to.store(0, std::memory_order_release);
      stream.copy(data + at, pinned_.data(), n);
      stream.record(*copied_);
    });
  }
  void broadcast(cuda::Stream& stream, std::byte* data, size_t bytes, int from) override {
    if (gpus_.device() != from) return receive(stream, data, bytes, from);
    for (int d = 0; d < devices_; ++d)
      if (d != from) send(stream, data, bytes, d);
  }

 private:
  template <class F>
  static void for_pieces(size_t bytes, F f) {
    for (size_t at = 0; at < bytes; at += Mailbox::kBytes)
      f(at, std::min(Mailbox::kBytes, bytes - at));
  }
  Mailbox& mailbox_of(int device) const {
    return reinterpret_cast<Mailbox*>(gpus_.extra_memory())[gpus_.worker_of(device)];
  }

  GpuTeam& gpus_;
  int devices_;  // in a replica
  cuda::DeviceBuffer pinned_;
  std::unique_ptr<cuda::Event> copied_;  // the last copy to or from pinned_ is done
};

bool by_host(const Devices& devices) { return devices.exchange.backend == Exchange::Backend::host; }

}  // namespace

std::unique_ptr<GpuTransport> make_gpu_transport(const Session& session, cuda::DeviceApi& api,
                                                 GpuTeam& gpus) {
  if (by_host(session.devices))
    return std::make_unique<ByHost>(api, gpus, session.devices.topology.devices_per_replica);
  return std::make_unique<ByNccl>(api, gpus);
}

size_t gpu_transport_bytes(const Devices& devices) {
  if (!devices.on_gpu() || !devices.stages_are_processes() || !by_host(devices)) return 0;
  return static_cast<size_t>(devices.topology.total_workers()) * sizeof(Mailbox);
}

}  // namespace dpt
