// Samples that are made on the way (Dataset::reader), by threads that work ahead of the steps.
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

// The bytes of one pass over batches, in the order in which they are taken. They are the same for
// any number of threads: a sample depends on its number alone.
class Prefetch {
 public:
  // The threads run on the cores `cpus`; none: wherever the maker's do. REQUIRES: dataset.reader,
  // threads > 0.
  Prefetch(const Dataset& dataset, int threads, std::vector<int> cpus = {});
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  // Begins a pass, and ends the one before, of which nothing may be in use.
  void begin(std::vector<std::vector<uint32_t>> batches);

  // The samples of a batch, one after another. Waits until they are there, and calls `waiting` now
  // and then, which may throw. Throws what the reader threw. Thread: any; makes no system call but
  // for waiting. Taken in order: a batch is made only when the one two before it was given back.
  const std::byte* take(size_t batch, const std::function<void()>& waiting);
  // `samples` of the batch will not be used again.
  void give_back(size_t batch, size_t samples);

 private:
  static constexpr size_t kSlots = 2;  // one that is used, one that is filled
  struct Slot {
    std::shared_ptr<std::byte[]> bytes;
    size_t made = 0, given_back = 0;  // samples of the batch that the slot is for
  };
  void end();
  void work();
  void advance();  // first_, over what is given back or empty
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
  size_t first_ = 0;                        // batch that is not given back
  size_t next_batch_ = 0, next_place_ = 0;  // that nobody makes yet
  bool stop_ = false;
  std::exception_ptr error_;
};

}  // namespace dpt
