#include "backend/cuda/fake_stream.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace dpt::cuda {

void FakeStream::enqueue(const std::string& what, const std::vector<Touched>& touched,
                         FakeItem work, bool call) {
  api_.count_call(what);
  if (!call) not_in_group(what);
  api_.log(fmt::format("s{} {}", index_, what));
  if (capture_ == nullptr && api_.captures_ > 0)
    violation("s{} is told '{}' beside a capture that it has not joined", index_, what);
  know_host();
  ++time();
  for (const Touched& t : touched) api_.check(*this, t, what);
  if (capture_ == nullptr) {
    const std::lock_guard lock(fake_mutex());
    return queue_.push_back(std::move(work));
  }
  capture_->work.push_back(std::move(work));
  for (const Touched& t : touched)
    if (std::ranges::find(capture_->touched, t) == capture_->touched.end())
      capture_->touched.push_back(t);
}

void FakeStream::enqueue_call(const std::string& what, const std::vector<Touched>& touched,
                              FakeItem work) {
  know_host();
  FakeApi::Call& last = capture_ ? capture_->last_call : api_.last_call_;
  if (last.at > known_of(last.stream))
    violation("s{} calls '{}' beside '{}' of s{}, and no event stands between them", index_, what,
              last.what, last.stream);
  enqueue(what, touched, std::move(work), true);
  last = {index_, own_time(), what};
}

// What can be done now. Whether that is all up to `number`.
bool FakeStream::advance(uint64_t number) {
  const std::lock_guard lock(fake_mutex());
  if (std::exchange(advances_, true)) return done_ >= number;  // somebody waits in a circle
  const auto end = std::unique_ptr<bool, void (*)(bool*)>(&advances_, [](bool* b) { *b = false; });
  while (done_ < number) {
    FakeItem& next = queue_.front();
    if (next.ready && !next.ready()) return false;
    const std::function<void()> run = std::move(next.run);
    queue_.pop_front();
    ++done_;
    run();
  }
  return true;
}

bool FakeStream::do_until(uint64_t number, bool waits) {
  const auto begin = std::chrono::steady_clock::now();
  const std::chrono::duration<double> patience(api_.settings_.patience_s);
  while (!advance(number)) {
    api_.look_for_failure();
    if (!waits) return false;
    if (std::chrono::steady_clock::now() - begin > patience)
      violation("s{} waits for a rank that does not come", index_);
    std::this_thread::yield();
  }
  api_.look_for_failure();
  return true;
}

void FakeStream::do_all_or_give_up() noexcept {
  try {
    do_all();
  } catch (const std::exception&) {
    const std::lock_guard lock(fake_mutex());
    api_.stuck_ = true;
    queue_.clear();
  }
}

bool FakeEvent::passed() {
  // How often it is asked for is chance.
  const bool first = !std::exchange(asked_, true);
  if (first) api_.count_call("passed");
  if (stream_ == nullptr) return true;
  if (capture_) violation("the host asks for an event that was recorded in a capture");
  const std::lock_guard lock(fake_mutex());
  if (api_.settings_.busy && stream_->done_ < number_) return false;
  // Not at once, as a GPU that has something to do.
  if (first && stream_->done_ < number_) return false;
  if (!stream_->do_until(number_, false)) return false;
  api_.host_knows(clock_);
  return true;
}
void FakeEvent::wait() {
  api_.count_call("wait for an event");
  api_.not_while_capturing("waiting for an event");
  api_.log("host waits");
  if (stream_ == nullptr) return;
  if (capture_) violation("the host waits for an event that was recorded in a capture");
  stream_->do_until(number_, true);
  api_.host_knows(clock_);
}

}  // namespace dpt::cuda
