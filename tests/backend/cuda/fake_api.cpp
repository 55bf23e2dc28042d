#include "backend/cuda/fake_api.h"

#include <algorithm>
#include <csignal>
#include <cstring>

#include "backend/cuda/fake_work.h"
#include "base/fail.h"

namespace dpt::cuda {

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
  FakeApi::Capture* capture_ = nullptr;
  bool asked_ = false;
};

class FakeGraph : public CapturedGraph {
 public:
  FakeGraph(FakeApi& api, std::unique_ptr<FakeApi::Capture> c) : api_(api), capture_(std::move(c)) {
    ++api_.live_graphs_;
  }
  ~FakeGraph() override { --api_.live_graphs_; }
  size_t nodes() const override { return capture_->work.size(); }

 private:
  friend class FakeStream;
  FakeApi& api_;
  std::shared_ptr<FakeApi::Capture> capture_;
};

class FakeStream : public Stream {
 public:
  explicit FakeStream(FakeApi& api) : api_(api), index_(api.streams_.size()) {
    api_.streams_.push_back(this);
    ++api_.live_streams_;
  }
  ~FakeStream() override {
    do_all();
    api_.streams_[index_] = nullptr;
    --api_.live_streams_;
  }

  void copy(void* to, const void* from, size_t bytes) override {
    const auto* source = static_cast<const std::byte*>(from);
    auto* target = static_cast<std::byte*>(to);
    enqueue(fmt::format("copy {} bytes, {} to {}", bytes, kind(source, bytes), kind(target, bytes)),
            {{source, bytes, false}, {target, bytes, true}},
            [=] { std::memcpy(target, source, bytes); });
  }
  void fill(void* to, uint8_t byte, size_t bytes) override {
    enqueue(fmt::format("fill {} bytes", bytes), {{static_cast<std::byte*>(to), bytes, true}},
            [=] { std::memset(to, byte, bytes); });
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
    if (api_.settings_.strict)
      run = [this, run, touched = visitor.touched, what] { api_.run_strictly(touched, run, what); };
    enqueue(what, visitor.touched, std::move(run));
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
    enqueue(w.text(), touched, [run = w.bound(tensors), workspace, n = w.workspace_bytes()] {
      if (n > 0) std::memset(workspace, 0xee, n);
      run();
    });
  }

  void record(Event& event) override {
    auto& e = static_cast<FakeEvent&>(event);
    api_.count_call("record");
    api_.log(fmt::format("s{} record", index_));
    know_host();
    e.stream_ = this;
    e.number_ = done_ + queue_.size();
    e.clock_ = clock_;
    e.capture_ = capture_;
    e.asked_ = false;
  }
  void wait(Event& event) override {
    auto& e = static_cast<FakeEvent&>(event);
    api_.count_call("wait");
    api_.log(fmt::format("s{} wait", index_));
    if (e.stream_ == nullptr || api_.wait_count_++ == api_.settings_.deaf_wait) return;
    if (e.capture_ != capture_) {
      if (capture_ != nullptr)
        violation("s{} waits while it captures for an event of something else", index_);
      capture_ = e.capture_;
      capture_->streams.push_back(this);
    }
    FakeApi::merge(clock_, e.clock_);
    if (capture_ == nullptr)
      queue_.emplace_back([from = e.stream_, number = e.number_] { from->do_until(number); });
  }
  void synchronise() override {
    api_.count_call("synchronise");
    api_.not_while_capturing("synchronise");
    api_.log(fmt::format("s{} synchronise", index_));
    do_all();
    FakeApi::merge(api_.host_, clock_);
  }

  void begin_capture() override {
    api_.count_call("begin_capture");
    if (capture_ != nullptr) violation("s{} captures already", index_);
    own_capture_ = std::make_unique<FakeApi::Capture>();
    own_capture_->streams = {this};
    capture_ = own_capture_.get();
    ++api_.captures_;
  }
  std::unique_ptr<CapturedGraph> end_capture() override {
    api_.count_call("end_capture");
    if (!own_capture_) violation("s{} has begun no capture", index_);
    --api_.captures_;
    for (FakeStream* s : own_capture_->streams) {
      s->capture_ = nullptr;
      if (s != this && s->own_time() > known_of(s->index_))
        violation("the capture of s{} ends before it has waited for s{}", index_, s->index_);
    }
    return std::make_unique<FakeGraph>(api_, std::move(own_capture_));
  }
  void launch(CapturedGraph& graph) override {
    auto& g = static_cast<FakeGraph&>(graph);
    enqueue(fmt::format("graph of {} nodes", g.nodes()), g.capture_->touched, [c = g.capture_] {
      for (const auto& work : c->work) work();
    });
  }

  void do_all() { do_until(done_ + queue_.size()); }
  void do_until(uint64_t number) {
    while (done_ < number) {
      const std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      ++done_;
      work();
    }
  }

 private:
  friend class FakeApi;
  friend class FakeEvent;

  void enqueue(const std::string& what, const std::vector<Touched>& touched,
               std::function<void()> work) {
    api_.count_call(what);
    api_.log(fmt::format("s{} {}", index_, what));
    know_host();
    ++time();
    for (const Touched& t : touched) api_.check(*this, t, what);
    if (capture_ != nullptr) {
      capture_->work.push_back(std::move(work));
      for (const Touched& t : touched)
        if (std::ranges::find(capture_->touched, t) == capture_->touched.end())
          capture_->touched.push_back(t);
    } else {
      queue_.push_back(std::move(work));
    }
  }
  std::string_view kind(const std::byte* p, size_t bytes) {
    return api_.block_of(p, bytes, "copy").kind == MemoryKind::device ? "device" : "pinned";
  }
  uint64_t& time() {
    if (clock_.size() <= index_) clock_.resize(index_ + 1);
    return clock_[index_];
  }
  uint64_t own_time() const { return known_of(index_); }
  uint64_t known_of(size_t stream) const { return stream < clock_.size() ? clock_[stream] : 0; }
  void know_host() { FakeApi::merge(clock_, api_.host_); }

  FakeApi& api_;
  size_t index_;
  FakeApi::Clock clock_;
  std::deque<std::function<void()>> queue_;
  uint64_t done_ = 0;
  FakeApi::Capture* capture_ = nullptr;
  std::unique_ptr<FakeApi::Capture> own_capture_;
};

bool FakeEvent::passed() {
  api_.count_call("passed");
  if (stream_ == nullptr) return true;
  if (api_.settings_.busy && stream_->done_ < number_) return false;
  // Not at once, as a GPU that has something to do.
  if (!std::exchange(asked_, true) && stream_->done_ < number_) return false;
  stream_->do_until(number_);
  FakeApi::merge(api_.host_, clock_);
  return true;
}
void FakeEvent::wait() {
  api_.count_call("wait for an event");
  api_.not_while_capturing("waiting for an event");
  api_.log("host waits");
  if (stream_ == nullptr) return;
  stream_->do_until(number_);
  FakeApi::merge(api_.host_, clock_);
}

FakeApi::FakeApi(const Settings& settings) : settings_(settings) {
  properties_ = {.name = "fake GPU",
                 .bus_id = "0000:00:00.0",
                 .major = 9,
                 .minor = 0,
                 .multiprocessors = 4,
                 .memory = size_t{4} << 30,
                 .free_memory = settings.free_memory};
}
FakeApi::~FakeApi() = default;

void FakeApi::count_call(const std::string& what, Fault fault) {
  if (call_count_ == settings_.interrupt_call) std::raise(SIGINT);
  if (call_count_++ == settings_.fail_call)
    fail(fault, "call {} of the fake GPU, {}, was told to fail", settings_.fail_call, what);
}

std::byte* FakeApi::allocate(MemoryKind kind, size_t bytes) {
  count_call("allocate", Fault::memory);
  not_while_capturing("allocate");
  constexpr size_t kLine = 256;
  Block block{std::make_unique<std::byte[]>(bytes + kLine), bytes, kind, false, nullptr, {}};
  const auto begin = reinterpret_cast<uintptr_t>(block.memory.get());
  block.data = reinterpret_cast<std::byte*>((begin + kLine - 1) / kLine * kLine);
  std::memset(block.data, 0xff, bytes);  // nan, in each floating type
  std::byte* const data = block.data;
  blocks_[data] = std::move(block);
  return data;
}

void FakeApi::free(MemoryKind, std::byte* memory) noexcept {
  for (FakeStream* s : streams_)
    if (s) s->do_all();
  Block& block = blocks_.at(memory);
  block.freed = true;  // the host's memory stays, so that later use is seen
  std::memset(block.data, 0xff, block.bytes);
}

std::unique_ptr<Stream> FakeApi::make_stream() {
  count_call("make_stream");
  return std::make_unique<FakeStream>(*this);
}
std::unique_ptr<Event> FakeApi::make_event() {
  count_call("make_event");
  return std::make_unique<FakeEvent>(*this);
}
std::unique_ptr<DeviceWork> FakeApi::prepare(const Matmul& matmul) {
  count_call("prepare a matrix product");
  not_while_capturing("prepare");
  return fake_work(matmul, live_works_);
}
std::unique_ptr<DeviceWork> FakeApi::prepare(const DnnConvolution& convolution) {
  count_call("prepare a convolution");
  not_while_capturing("prepare");
  return fake_work(convolution, live_works_);
}
CommunicatorId FakeApi::new_communicator_id() { fail(Fault::device, "fake GPU: one rank"); }
std::unique_ptr<Communicator> FakeApi::join(const CommunicatorId&, int, int) {
  fail(Fault::device, "fake GPU: one rank");
}

void FakeApi::synchronise() {
  count_call("synchronise");
  not_while_capturing("synchronise");
  log("synchronise");
  for (FakeStream* s : streams_)
    if (s) {
      s->do_all();
      merge(host_, s->clock_);
    }
}

std::string FakeApi::leaks() const {
  std::string out;
  size_t bytes = 0;
  for (const auto& [begin, b] : blocks_) bytes += b.freed ? 0 : b.bytes;
  const auto add = [&](auto n, std::string_view what) {
    if (n > 0) out += fmt::format("{} {} ", n, what);
  };
  add(bytes, "bytes");
  add(live_streams_, "streams");
  add(live_events_, "events");
  add(live_works_, "works");
  add(live_graphs_, "graphs");
  return out;
}

FakeApi::Block& FakeApi::block_of(const std::byte* p, size_t bytes, const std::string& what) {
  auto at = blocks_.upper_bound(p);
  if (at == blocks_.begin()) violation("{} uses memory that was never allocated", what);
  Block& b = (--at)->second;
  if (p >= b.data + b.bytes) violation("{} uses memory that was never allocated", what);
  if (p + bytes > b.data + b.bytes) violation("{} goes beyond the end of its memory", what);
  if (b.freed) violation("{} uses memory that was freed", what);
  return b;
}

void FakeApi::check(const FakeStream& stream, const Touched& t, const std::string& what) {
  Block& b = block_of(t.begin, t.bytes, what);
  const auto begin = static_cast<size_t>(t.begin - b.data), end = begin + t.bytes;
  Accesses& accesses = stream.capture_ ? stream.capture_->accesses[&b] : b.accesses;
  for (const auto& [key, access] : accesses) {
    const auto& [from, to, other, writes] = key;
    if (other == stream.index_ || to <= begin || end <= from || !(writes || t.writes)) continue;
    if (access.at > stream.known_of(other))
      violation("s{} {} '{}' what s{} {} '{}', and no event stands between them", stream.index_,
                t.writes ? "overwrites in" : "reads in", what, other,
                writes ? "writes in" : "reads in", access.what);
  }
  accesses[{begin, end, stream.index_, t.writes}] = {stream.own_time(), what};
}

void FakeApi::not_while_capturing(const std::string& what) const {
  if (captures_ > 0) violation("{} while a stream captures", what);
}

void FakeApi::run_strictly(const std::vector<Touched>& touched, const std::function<void()>& work,
                           const std::string& what) {
  constexpr std::byte kGarbage{0xa7};
  struct Saved {
    Block* block;
    std::vector<std::byte> before, during;
    std::vector<bool> written;
  };
  std::vector<Saved> saved;
  for (auto& [begin, b] : blocks_) {
    if (b.freed) continue;
    Saved s{
        &b, {b.data, b.data + b.bytes}, std::vector(b.bytes, kGarbage), std::vector<bool>(b.bytes)};
    for (const Touched& t : touched) {
      if (t.begin < b.data || t.begin >= b.data + b.bytes) continue;
      const auto at = static_cast<size_t>(t.begin - b.data);
      for (size_t i = at; i < at + t.bytes; ++i)
        if (t.writes)
          s.written[i] = true;
        else
          s.during[i] = s.before[i];
    }
    std::ranges::copy(s.during, b.data);
    saved.push_back(std::move(s));
  }
  work();
  for (const Saved& s : saved)
    for (size_t i = 0; i < s.before.size(); ++i) {
      if (s.written[i]) continue;
      if (s.block->data[i] != s.during[i]) violation("{} writes what it does not say", what);
      s.block->data[i] = s.before[i];
    }
}

void FakeApi::merge(Clock& into, const Clock& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

}  // namespace dpt::cuda
