#include "data/prefetch.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include <sched.h>

#include "base/fail.h"
#include "data/readers/bytes.h"

namespace dpt {

Prefetch::Prefetch(const Dataset& dataset, int threads, std::vector<int> cpus)
    : dataset_(dataset),
      sample_bytes_(size_of(dataset.inputs.desc.dtype) *
                    static_cast<size_t>(dataset.inputs.sample().elements())),
      thread_count_(threads),
      cpus_(std::move(cpus)) {
  require(dataset_.reader != nullptr && threads > 0, "somebody makes the samples");
}

Prefetch::~Prefetch() { end(); }

void Prefetch::end() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  freed_.notify_all();
  for (std::thread& t : threads_) t.join();
  threads_.clear();
}

void Prefetch::begin(std::vector<std::vector<uint32_t>> batches) {
  end();
  size_t most = 0;
  for (const auto& b : batches) most = std::max(most, b.size());
  size_t before = 0;
  for (const auto& b : batches_) before = std::max(before, b.size());
  batches_ = std::move(batches);
  for (Slot& s : slots_) {
    if (s.bytes == nullptr || most > before) s.bytes = allocate_bytes(most * sample_bytes_);
    s.made = s.given_back = 0;
  }
  first_ = next_batch_ = next_sample_ = 0;
  advance();
  stop_ = false;
  error_ = nullptr;
  for (int i = 0; i < thread_count_; ++i) {
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error& e) {  // one thread is enough
      if (threads_.empty())
        fail(Fault::failed,
             "no thread can be started to read samples: {}; raise the limit on processes (ulimit "
             "-u)",
             e.code().message());
      break;
    }
  }
}

void Prefetch::work() {
  if (!cpus_.empty()) {  // the caller may be pinned to one core, which this thread must not inherit
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : cpus_) CPU_SET(static_cast<size_t>(cpu), &set);
    ::sched_setaffinity(0, sizeof set, &set);
  }
  std::unique_lock lock(mutex_);
  while (true) {
    while (next_batch_ < batches_.size() && next_sample_ == batches_[next_batch_].size())
      ++next_batch_, next_sample_ = 0;
    if (stop_ || error_ || next_batch_ == batches_.size()) return;
    if (next_batch_ >= first_ + kSlots) {
      freed_.wait(lock);
      continue;
    }
    const size_t batch = next_batch_, sample = next_sample_++;
    Slot& s = slot(batch);
    lock.unlock();
    std::exception_ptr error;
    try {
      dataset_.reader->read(batches_[batch][sample],
                            {s.bytes.get() + sample * sample_bytes_, sample_bytes_});
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !error_) error_ = error;
    if (++s.made == batches_[batch].size() || error) made_.notify_all();
  }
}

const std::byte* Prefetch::take(size_t batch, const std::function<void()>& waiting) {
  constexpr std::chrono::milliseconds kNowAndThen{100};
  std::unique_lock lock(mutex_);
  const auto there = [&] {
    return error_ || (batch < first_ + kSlots && slot(batch).made == batches_[batch].size());
  };
  while (!made_.wait_for(lock, kNowAndThen, there)) {
    lock.unlock();
    waiting();
    lock.lock();
  }
  if (error_) std::rethrow_exception(error_);
  return slot(batch).bytes.get();
}

void Prefetch::give_back(size_t batch, size_t samples) {
  const std::lock_guard lock(mutex_);
  slot(batch).given_back += samples;
  const size_t before = first_;
  advance();
  if (first_ > before) freed_.notify_all();
}

void Prefetch::advance() {
  for (; first_ < batches_.size() && slot(first_).given_back == batches_[first_].size(); ++first_)
    slot(first_).made = slot(first_).given_back = 0;
}

}  // namespace dpt
