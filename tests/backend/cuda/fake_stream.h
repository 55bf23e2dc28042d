// Streams, events and captured graphs of the fake GPU (fake_api.h).
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/fake_api.h"
#include "backend/cuda/fake_work.h"
#include "base/fail.h"

namespace dpt::cuda {

// Guards all that fake GPUs of one process know of each other.
std::recursive_mutex& fake_mutex();

template <class... A>
[[noreturn]] void violation(fmt::format_string<A...> text, A&&... a) {
  fail(Fault::failed, "fake GPU: {}", fmt::format(text, std::forward<A>(a)...));
}

class FakeEvent : public Event {
 public:
  explicit FakeEvent(FakeApi& api) : api_(api) { ++api_.live_events_; }
  ~FakeEvent() override { --api_.live_events_; }
  bool passed() override;
  void wait() override;

 private:
  friend class FakeStream;
  FakeApi& api_;
  FakeStream* stream_ = nullptr;  // null: never recorded
  uint64_t number_ = 0;           // of the stream's work that is before it
  FakeApi::Clock clock_;
  std::shared_ptr<FakeApi::Capture> capture_;
  bool asked_ = false;
};

class FakeGraph : public CapturedGraph {
 public:
  FakeGraph(FakeApi& api, std::shared_ptr<FakeApi::Capture> c) : api_(api), capture_(std::move(c)) {
    ++api_.live_graphs_;
    api_.calling_graphs_ += calls() ? 1 : 0;
  }
  ~FakeGraph() override {
    --api_.live_graphs_;
    api_.calling_graphs_ -= calls() ? 1 : 0;
  }
  size_t nodes() const override { return capture_->work.size(); }
  bool calls() const { return capture_->last_call.at > 0; }  // a communicator

 private:
  friend class FakeStream;
  FakeApi& api_;
  std::shared_ptr<FakeApi::Capture> capture_;
};

class FakeStream : public Stream {
 public:
  explicit FakeStream(FakeApi& api) : api_(api), index_(api.streams_.size()) {
    const std::lock_guard lock(fake_mutex());
    api_.streams_.push_back(this);
    ++api_.live_streams_;
  }
  ~FakeStream() override {
    do_all_or_give_up();
    const std::lock_guard lock(fake_mutex());
    *self_ = nullptr;
    api_.streams_[index_] = nullptr;
    --api_.live_streams_;
  }

  void copy(void* to, const void* from, size_t bytes) override {
    if (bytes == 0) return;
    const auto* source = static_cast<const std::byte*>(from);
    auto* target = static_cast<std::byte*>(to);
    enqueue(fmt::format("copy {} bytes, {} to {}", bytes, kind(source, bytes), kind(target, bytes)),
            {{source, bytes, false}, {target, bytes, true}},
            {.run = [=] { std::memcpy(target, source, bytes); }});
  }
  void fill(void* to, uint8_t byte, size_t bytes) override {
    if (bytes == 0) return;
    enqueue(fmt::format("fill {} bytes", bytes), {{static_cast<std::byte*>(to), bytes, true}},
            {.run = [=] { std::memset(to, byte, bytes); }});
  }
  void launch(const KernelLaunch& l) override {
    const HostKernel& k = host_kernel(l.id);
    const std::string what = fmt::format("{} x {}", k.name, l.count);
    if (l.bytes != k.bytes) violation("{}: {} bytes in place of {}", what, l.bytes, k.bytes);
    const auto* begin = static_cast<const std::byte*>(l.kernel);
    auto copy = std::make_shared<std::vector<uint64_t>>((l.bytes + 7) / 8);
    std::memcpy(copy->data(), begin, l.bytes);
    TouchVisitor visitor;
    k.touches(copy->data(), l.count, visitor);
    std::function<void()> run = [&k, copy, count = l.count, order = api_.settings_.order] {
      k.run(copy->data(), count, order);
    };
    api_.load(fmt::format("kernel {}.{}", l.id.list, l.id.index), what, capture_.get());
    if (api_.settings_.strict)
      run = [this, run, touched = visitor.touched, what] { api_.run_strictly(touched, run, what); };
    enqueue(what, visitor.touched, {.run = std::move(run)});
  }
  void run(DeviceWork& work, std::span<std::byte* const> tensors, std::byte* workspace) override {
    auto& w = static_cast<FakeWork&>(work);
    std::vector<Touched> touched = w.touches(tensors);
    for (const Touched& t : touched)
      if (reinterpret_cast<uintptr_t>(t.begin) % 16 != 0)
        violation("{}: a tensor does not begin at a multiple of 16", w.text());
    if (w.workspace_bytes() > 0) {
      if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0)
        violation("{}: the workspace does not begin at a multiple of 256", w.text());
      touched.push_back({workspace, w.workspace_bytes(), true});
    }
    api_.load(w.key(), w.text(), capture_.get());
    enqueue(w.text(), touched,
            {.run = [run = w.bound(tensors), workspace, n = w.workspace_bytes()] {
              if (n > 0) std::memset(workspace, 0xee, n);
              run();
            }});
  }

  void record(Event& event) override {
    auto& e = static_cast<FakeEvent&>(event);
    api_.count_call("record");
    not_in_group("record");
    api_.log(fmt::format("s{} record", index_));
    if (&e.api_ != &api_) violation("s{} records an event of another GPU", index_);
    know_host();
    const std::lock_guard lock(fake_mutex());
    e.stream_ = this;
    e.number_ = done_ + queue_.size();
    e.clock_ = clock_;
    e.capture_ = capture_;
    e.asked_ = false;
  }
  void wait(Event& event) override {
    auto& e = static_cast<FakeEvent&>(event);
    api_.count_call("wait");
    not_in_group("wait");
    const bool others = &e.api_ != &api_;
    api_.log(fmt::format("s{} wait{}", index_, others ? " for another GPU" : ""));
    const std::lock_guard lock(fake_mutex());
    if (e.stream_ == nullptr && capture_ != nullptr)
      violation("s{} waits while it captures for an event that was never recorded", index_);
    if (e.stream_ == nullptr || api_.wait_count_++ == api_.settings_.deaf_wait) return;
    if (others && capture_ != nullptr)
      violation("s{} waits while it captures for an event of another GPU", index_);
    if (e.capture_ != capture_) {
      if (capture_ != nullptr)
        violation("s{} waits while it captures for an event of something else", index_);
      if (e.capture_->ended)
        violation("s{} waits for an event of a capture that has ended", index_);
      capture_ = e.capture_;
      capture_->streams.push_back(this);
    }
    FakeApi::merge(clock_, e.clock_);
    if (capture_ == nullptr)
      queue_.push_back({.run = [] {},
                        .ready =
                            [from = e.stream_->self_, number = e.number_] {
                              return *from == nullptr || (*from)->do_until(number, false);
                            }});
  }
  void synchronise() override {
    api_.count_call("synchronise");
    api_.not_while_capturing("synchronise");
    api_.log(fmt::format("s{} synchronise", index_));
    do_all();
    api_.host_knows(clock_);
  }

  void begin_capture() override {
    api_.count_call("begin_capture");
    if (capture_ != nullptr) violation("s{} captures already", index_);
    own_capture_ = std::make_shared<FakeApi::Capture>();
    own_capture_->streams = {this};
    capture_ = own_capture_;
    ++api_.captures_;
  }
  std::unique_ptr<CapturedGraph> end_capture() override {
    api_.count_call("end_capture");
    if (!own_capture_) violation("s{} has begun no capture", index_);
    const auto capture = leave_capture();
    if (capture->invalid) violation("the capture of s{} was ended by an error before", index_);
    for (const FakeStream* s : capture->streams)
      if (s != this && s->own_time() > known_of(s->index_))
        violation("the capture of s{} ends before it has waited for s{}", index_, s->index_);
    return std::make_unique<FakeGraph>(api_, capture);
  }
  void cancel_capture() noexcept override {
    if (own_capture_) leave_capture();
  }
  void launch(CapturedGraph& graph) override {
    auto& g = static_cast<FakeGraph&>(graph);
    const std::lock_guard lock(fake_mutex());
    const std::string what = fmt::format("graph of {} nodes", g.nodes());
    const FakeItem nothing{.run = [c = g.capture_] {}};
    g.calls() ? enqueue_call(what, g.capture_->touched, nothing)
              : enqueue(what, g.capture_->touched, nothing);
    queue_.insert(queue_.end(), g.capture_->work.begin(), g.capture_->work.end());
  }

  void do_all() { do_until(told(), true); }
  // Whether it is done: not yet, where other ranks have to come for it and are not waited for.
  bool do_until(uint64_t number, bool waits);
  // As memory is freed on a GPU whose work will never end, but for ever: leaks() tells of it.
  void do_all_or_give_up() noexcept;
  // In the order of calls, as all that a stream does.
  void enqueue(const std::string& what, const std::vector<Touched>& touched, FakeItem work,
               bool call = false);
  // Of a communicator.
  void enqueue_call(const std::string& what, const std::vector<Touched>& touched, FakeItem work);

 private:
  friend class FakeApi;
  friend class FakeCommunicator;
  friend class FakeEvent;

  void not_in_group(std::string_view what) const {
    if (api_.groups_)
      violation("s{} is told '{}' within a group of calls, which are enqueued at its end", index_,
                what);
  }
  std::string_view kind(const std::byte* p, size_t bytes) {
    return api_.block_of(p, bytes, "copy").kind == MemoryKind::device ? "device" : "pinned";
  }
  std::shared_ptr<FakeApi::Capture> leave_capture() {
    --api_.captures_;
    own_capture_->ended = true;
    for (FakeStream* s : own_capture_->streams) s->capture_ = nullptr;
    return std::exchange(own_capture_, nullptr);
  }
  uint64_t& time() { return clock_[{api_.number_, index_}]; }
  uint64_t own_time() const { return known_of(index_); }
  uint64_t known_of(size_t stream) const { return FakeApi::known(clock_, api_.number_, stream); }
  void know_host() {
    const std::lock_guard lock(fake_mutex());
    FakeApi::merge(clock_, api_.host_);
  }
  uint64_t told() const {
    const std::lock_guard lock(fake_mutex());
    return done_ + queue_.size();
  }
  bool advance(uint64_t number);
  bool captures_calls() const {  // of a communicator
    return own_capture_ && own_capture_->last_call.at > 0;
  }

  FakeApi& api_;
  size_t index_;
  FakeApi::Clock clock_;
  std::deque<FakeItem> queue_;  // others of the process do it, too, where they wait for it
  uint64_t done_ = 0;
  bool advances_ = false;
  // Null once it is gone: for those who wait for it.
  std::shared_ptr<FakeStream*> self_ = std::make_shared<FakeStream*>(this);
  std::shared_ptr<FakeApi::Capture> capture_, own_capture_;
};

}  // namespace dpt::cuda
