// Makes samples of a Dataset::reader in threads that work ahead of the steps.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "data/dataset.h"

namespace dpt {

// Provides the bytes of batches in the order of one pass. They do not depend on the number of
// threads, since a sample depends only on its number.
class Prefetch {
 public:
  // The threads run on the cores `cpus`; empty: on the creator's. REQUIRES: dataset.reader is set,
  // threads > 0.
  Prefetch(const Dataset& dataset, int threads, std::vector<int> cpus = {});
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  // Ends the previous pass and begins a new one. REQUIRES: no batch of the previous pass is in use.
  void begin(std::vector<std::vector<uint32_t>> batches);

  // Returns the samples of a batch, one after another, and waits until they are made. While
  // waiting, calls `waiting` repeatedly, which may throw. Throws what the reader threw. Makes
  // system calls only to wait. Thread: any. Batches must be taken in order: a batch is made only
  // after the batch two before it was given back.
  const std::byte* take(size_t batch, const std::function<void()>& waiting);
  // Declares that `samples` of the batch will not be used again.
  void give_back(size_t batch, size_t samples);

 private:
  static constexpr size_t kSlots = 2;  // one in use, one being filled
  struct Slot {
    std::shared_ptr<std::byte[]> bytes;
    size_t made = 0, given_back = 0;  // samples of the slot's batch
  };
  void end();
  void work();
  void advance();  // moves first_ past batches that were given back or are empty
  Slot& slot(size_t batch) { return slots_[batch % kSlots]; }

  const Dataset& dataset_;
  size_t sample_bytes_;
  int thread_count_;
  std::vector<int> cpus_;
  std::vector<std::vector<uint32_t>> batches_;
  std::vector<std::thread> threads_;

  std::mutex mutex_;
  std::condition_variable made_, freed_;
  Slot slots_[kSlots];
  size_t first_ = 0;                         // the first batch not given back completely
  size_t next_batch_ = 0, next_sample_ = 0;  // the next sample that no thread makes yet
  bool stop_ = false;
  std::exception_ptr error_;
};

}  // namespace dpt
