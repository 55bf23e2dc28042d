#include "backend/cuda/fake_api.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <mutex>
#include <thread>

#include <unistd.h>

#include "backend/cuda/fake_stream.h"
#include "backend/cuda/fake_world.h"
#include "base/fail.h"
#include "base/units.h"

namespace dpt::cuda {

namespace {

// All that there are in this process, by their numbers.
std::map<uint64_t, FakeApi*>& living() {
  static std::map<uint64_t, FakeApi*> all;
  return all;
}
uint64_t made = 0;

// In a world that is given: which group of ranks has the id.
constexpr std::string_view kId = "fake ";
constexpr int kMostIds = 4;  // of a GPU

}  // namespace

std::recursive_mutex& fake_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

FakeApi::FakeApi(const Settings& settings) : settings_(settings) {
  const std::lock_guard lock(fake_mutex());
  number_ = made++;
  living()[number_] = this;
  properties_ = {.index = settings.index,
                 .name = "fake GPU",
                 .bus_id = fmt::format("0000:0{}:00.0", settings.index),
                 .major = 9,
                 .minor = 0,
                 .multiprocessors = 4,
                 .memory = 4 * kGiB};
}
FakeApi::~FakeApi() {
  by_itself_ = {};
  const std::lock_guard lock(fake_mutex());
  living().erase(number_);
}

void FakeApi::count_call(const std::string& what, Fault fault) {
  const int64_t number = call_count_++;
  // To the process: threads that make plans let no signals through.
  if (number == settings_.interrupt_call) ::kill(::getpid(), SIGINT);
  if (number == settings_.die_call) std::raise(SIGKILL);
  if (number == settings_.stall_call) std::this_thread::sleep_for(std::chrono::seconds(2));
  while (number == settings_.hang_call) std::this_thread::sleep_for(std::chrono::seconds(1));
  if (number == settings_.fail_call)
    fail(fault, "call {} of the fake GPU, {}, was told to fail", settings_.fail_call, what);
}

std::byte* FakeApi::allocate(MemoryKind kind, size_t bytes) {
  count_call("allocate", Fault::memory);
  not_while_capturing("allocate");
  constexpr size_t kLine = 256;
  Block block{.memory = std::make_unique<std::byte[]>(bytes + kLine), .bytes = bytes, .kind = kind};
  const auto begin = reinterpret_cast<uintptr_t>(block.memory.get());
  block.data = reinterpret_cast<std::byte*>((begin + kLine - 1) / kLine * kLine);
  std::memset(block.data, 0xff, bytes);  // nan, in each floating type
  std::byte* const data = block.data;
  const std::lock_guard lock(fake_mutex());
  ++allocation_count_;
  if (kind == MemoryKind::pinned)
    most_pinned_ = std::max(most_pinned_, pinned_ += bytes);
  else
    allocated_ += bytes;
  blocks_[data] = std::move(block);
  return data;
}

void FakeApi::free(MemoryKind, std::byte* memory) noexcept {
  for (FakeStream* s : streams_)
    if (s) s->do_all_or_give_up();
  const std::lock_guard lock(fake_mutex());
  Block& block = blocks_.at(memory);
  (block.kind == MemoryKind::pinned ? pinned_ : allocated_) -= block.bytes;
  block.freed = true;  // the host's memory stays, so that later use is seen
  std::memset(block.data, 0xff, block.bytes);
}

std::unique_ptr<Stream> FakeApi::make_stream() {
  count_call("make_stream");
  return std::make_unique<FakeStream>(*this);
}
std::unique_ptr<Stream> FakeApi::make_urgent_stream() {
  count_call("make_urgent_stream");
  log(fmt::format("s{} is urgent", streams_.size()));
  return std::make_unique<FakeStream>(*this);
}
size_t FakeApi::free_memory() {
  count_call("free_memory");
  return settings_.free_memory - std::min(settings_.free_memory, allocated_);
}
std::unique_ptr<Event> FakeApi::make_event() {
  count_call("make_event");
  return std::make_unique<FakeEvent>(*this);
}
void FakeApi::look_for_algorithm(bool plain) const {
  if (!settings_.libraries) throw NoAlgorithm("the fake GPU has no libraries");
  if (!settings_.epilogues && !plain) throw NoAlgorithm("the fake GPU adds a bias, no more");
}
std::unique_ptr<DeviceWork> FakeApi::prepare(const Matmul& matmul) {
  count_call("prepare a matrix product");
  not_while_capturing("prepare");
  look_for_algorithm(matmul.epilogue == Epilogue::none || matmul.epilogue == Epilogue::bias);
  if (std::ranges::count(settings_.lacking, matmul.epilogue) > 0)
    throw NoAlgorithm("the fake GPU has no algorithm with this epilogue");
  return fake_work(matmul, live_works_);
}
// Threads that make plans call this at the same time.
template <class Description>
std::unique_ptr<DeviceWork> FakeApi::plan(const std::string& what, const Description& d,
                                          bool plain) {
  meet_planners();
  count_call("prepare " + what);
  const std::lock_guard lock(fake_mutex());
  not_while_capturing("prepare");
  ++plan_count_;
  look_for_algorithm(plain);
  return fake_work(d, live_works_);
}
void FakeApi::meet_planners() {
  static std::mutex mutex;
  std::unique_lock lock(mutex);
  if (++planners_ >= settings_.planners) return planner_came_.notify_all();
  if (!planner_came_.wait_for(lock, std::chrono::duration<double>(settings_.patience_s),
                              [&] { return planners_ >= settings_.planners; }))
    violation("only {} threads make plans", planners_);
}
std::unique_ptr<DeviceWork> FakeApi::prepare(const DnnConvolution& convolution) {
  return plan("a convolution", convolution, !convolution.relu);
}
std::unique_ptr<DeviceWork> FakeApi::prepare(const DnnNorm& norm) {
  return plan("a norm", norm, true);
}
std::unique_ptr<DeviceWork> FakeApi::prepare(const DnnPool& pool) {
  return plan("pooling", pool, true);
}
std::unique_ptr<DeviceWork> FakeApi::prepare(const DnnAttention& attention) {
  const auto scores = static_cast<size_t>(attention.samples * attention.heads *
                                          attention.positions * attention.positions);
  if (attention.pass == DnnPass::backward && scores * settings_.score_bytes > attention.workspace)
    throw NoAlgorithm("the fake GPU needs a larger workspace");
  return plan("attention", attention, true);
}
CommunicatorId FakeApi::new_communicator_id() {
  count_call("new_communicator_id");
  CommunicatorId id{};
  std::string name = fmt::format("{}{}", kId, kMostIds * settings_.index + ids_++);
  require(ids_ <= kMostIds, "the fake world is large enough");
  if (settings_.world == nullptr)
    name = worlds_.emplace_back(std::make_unique<FakeWorld>())->name();
  name.copy(id.data(), id.size() - 1);
  return id;
}
std::unique_ptr<Communicator> FakeApi::join(const CommunicatorId& id, int rank, int ranks,
                                            const WhileWaiting& waiting, int most_blocks) {
  count_call("join");
  if (most_blocks > 0) log(fmt::format("join with at most {} blocks", most_blocks));
  const size_t takes = settings_.communicator_memory;
  if (takes > 0 && takes + allocated_ > settings_.free_memory)
    fail(Fault::memory, "the fake GPU has no memory for a communicator");
  allocated_ += takes;
  not_while_capturing("join");
  const std::string name(id.data());
  if (settings_.world != nullptr && !name.starts_with(kId))
    violation("rank {} joins by an id that nobody made", rank);
  FakeWorld* world = settings_.world;
  if (world == nullptr) {
    const auto own = std::ranges::find(worlds_, name, &FakeWorld::name);
    world = own == worlds_.end() ? worlds_.emplace_back(std::make_unique<FakeWorld>(name)).get()
                                 : own->get();
  }
  const int group = settings_.world ? std::atoi(name.c_str() + kId.size()) : 0;
  auto out = std::make_unique<FakeCommunicator>(*this, *world, group, rank, ranks, waiting);
  if (!by_itself_.joinable())
    by_itself_ = std::jthread([this](const std::stop_token& stop) { go_on(stop); });
  return out;
}

// As NCCL's does, it waits for all that the GPU was told.
void FakeApi::abort(std::span<Communicator* const> communicators) noexcept {
  bool any = false;
  for (Communicator* c : communicators)
    if (c != nullptr) any |= static_cast<FakeCommunicator*>(c)->end_calls();
  if (!any) return;
  look_for_graphs();
  std::this_thread::sleep_for(std::chrono::duration<double>(settings_.abort_s));
  if (settings_.mutual_aborts)
    for (Communicator* c : communicators)
      if (c != nullptr && !static_cast<FakeCommunicator*>(c)->others_end_calls()) stuck_ = true;
  for (FakeStream* s : streams_)
    if (s) s->do_all_or_give_up();
}

void FakeApi::go_on(const std::stop_token& stop) {
  constexpr std::chrono::milliseconds kSilence(2);
  for (int64_t before = -1; !stop.stop_requested();) {
    std::this_thread::sleep_for(kSilence);
    if (const int64_t now = call_count_; std::exchange(before, now) != now) continue;
    const std::lock_guard lock(fake_mutex());
    try {
      for (FakeStream* s : streams_)
        if (s && !failure_) s->advance(s->told());
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
}

void FakeApi::look_for_graphs() noexcept {
  const bool captured = std::ranges::any_of(
      streams_, [](const FakeStream* s) { return s != nullptr && s->captures_calls(); });
  if (calling_graphs_ > 0 || captured) given_up_ = true;
}

void FakeApi::look_for_failure() {
  const std::lock_guard lock(fake_mutex());
  if (failure_) std::rethrow_exception(failure_);
}

void FakeApi::host_knows(const Clock& clock) {
  const std::lock_guard lock(fake_mutex());
  merge(host_, clock);
}

void FakeApi::reach(int index) {
  count_call("reach");
  not_while_capturing("reach");
  log(fmt::format("reach GPU {}", index));
}

void FakeApi::synchronise() {
  count_call("synchronise");
  not_while_capturing("synchronise");
  log("synchronise");
  for (FakeStream* s : streams_)
    if (s) {
      s->do_all();
      host_knows(s->clock_);
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
  if (stuck_) out += "work that would never have ended ";
  if (given_up_) out += "graphs or captures with calls of a communicator that was given up ";
  return out;
}

FakeApi::Block* FakeApi::find_block(const std::byte* p) {
  auto at = blocks_.upper_bound(p);
  if (at == blocks_.begin()) return nullptr;
  Block& b = (--at)->second;
  return p < b.data + b.bytes ? &b : nullptr;
}

FakeApi::Block& FakeApi::block_of(const std::byte* p, size_t bytes, const std::string& what) {
  const std::lock_guard lock(fake_mutex());
  Block* b = find_block(p);
  for (const auto& [number, other] : living())
    if (b == nullptr || (b->freed && other != this))
      if (Block* const theirs = other->find_block(p)) b = theirs;
  if (b == nullptr) violation("{} uses memory that was never allocated", what);
  if (p + bytes > b->data + b->bytes) violation("{} goes beyond the end of its memory", what);
  if (b->freed) violation("{} uses memory that was freed", what);
  return *b;
}

void FakeApi::check(const FakeStream& stream, const Touched& t, const std::string& what) {
  const std::lock_guard lock(fake_mutex());
  Block& b = block_of(t.begin, t.bytes, what);
  const auto begin = static_cast<size_t>(t.begin - b.data), end = begin + t.bytes;
  Accesses& accesses = stream.capture_ ? stream.capture_->accesses[&b] : b.accesses;
  for (const auto& [key, access] : accesses) {
    const auto& [from, to, gpu, other, writes] = key;
    const bool own = gpu == number_;
    if (own && other == stream.index_) continue;
    if (to <= begin || end <= from || !(writes || t.writes)) continue;
    const auto whose = living().find(gpu);
    if (whose == living().end()) continue;  // it has ended
    if (access.at > std::max(known(stream.clock_, gpu, other),
                             own ? 0 : known(whose->second->host_, gpu, other)))
      violation("s{} {} '{}' what s{}{} {} '{}', and no event{} stands between them", stream.index_,
                t.writes ? "overwrites in" : "reads in", what, other, own ? "" : " of another GPU",
                writes ? "writes in" : "reads in", access.what, own ? "" : " or waiting host");
  }
  accesses[{begin, end, number_, stream.index_, t.writes}] = {stream.own_time(), what};
}

void FakeApi::not_while_capturing(const std::string& what) const {
  if (captures_ > 0) violation("{} while a stream captures", what);
}

void FakeApi::load(const std::string& key, const std::string& what, Capture* capture) {
  if (!loaded_.insert(key).second || capture == nullptr) return;
  capture->invalid = true;
  violation(
      "'{}' is called for the first time while a stream captures, which ends the capture "
      "(error 900)",
      what);
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
  for (const auto& [stream, calls] : from) {
    uint64_t& mine = into[stream];
    mine = std::max(mine, calls);
  }
}

}  // namespace dpt::cuda
