#include "comm/links/modules/gloo_pair.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <exception>
#include <system_error>
#include <thread>

#include <netdb.h>
#include <unistd.h>

#include "base/fail.h"
#include "comm/links/basic_link.h"

namespace dpt::gloo_module {
namespace {

namespace tcp = gloo::transport::tcp;

constexpr uint64_t kLong = uint64_t{1} << 31;
constexpr std::chrono::microseconds kRetryAfter{20};

sigset_t only_sigpipe() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  return set;
}

std::string text_of(const std::exception_ptr& exception) {
  if (!exception) return "the connection was closed";
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& e) {
    return plain_text(e.what());
  } catch (...) {
    return "unknown error";
  }
}

// The names of tallies are protected members of gloo's class.
template <class Tallies>
bool lists(const Tallies& tallies, uint64_t slot, int peer) {
  return std::any_of(tallies.begin(), tallies.end(), [&](const auto& tally) {
    const auto& peers = tally.getSendList();
    return tally.slot == slot && std::find(peers.begin(), peers.end(), peer) != peers.end();
  });
}

// Not by gloo's CreateDeviceAttr(): that takes other texts for names, and does not check whether
// one was found.
tcp::attr attributes_of(const std::string& address) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(address.c_str(), nullptr, &hints, &found) != 0)
    fail(Fault::rank, "'{}' is not the numeric address of a network interface", address);
  tcp::attr out(address.c_str());
  out.ai_family = found->ai_family;
  out.ai_socktype = SOCK_STREAM;
  out.ai_protocol = found->ai_protocol;
  out.ai_addrlen = static_cast<int>(found->ai_addrlen);
  std::memcpy(&out.ai_addr, found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  const int socket = ::socket(out.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool bound =
      bind(socket, reinterpret_cast<const sockaddr*>(&out.ai_addr), out.ai_addrlen) == 0;
  const int error = errno;
  ::close(socket);
  if (!bound)
    fail(Fault::rank, "gloo cannot use the network interface {}: {}", address,
         std::generic_category().message(error));
  return out;
}

}  // namespace

void Events::signal() {
  {
    const std::lock_guard lock(mutex_);
    ++count_;
  }
  changed_.notify_all();
}

uint64_t Events::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

void Events::wait_past(uint64_t seen, std::chrono::milliseconds limit) const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [&] { return count_ != seen; });
}

uint64_t slot_of(uint32_t tag, size_t bytes) {
  return uint64_t{tag} << 32 | (bytes < kLong ? bytes : kLong | (bytes % kLong));
}

std::optional<size_t> bytes_of(uint64_t slot) {
  if (slot & kLong) return std::nullopt;
  return slot % kLong;
}

Pair::Pair(tcp::Context* context, tcp::Device* device, int peer, std::chrono::milliseconds timeout,
           Events& events)
    : tcp::Pair(context, device, peer, timeout),
      events_(events),
      active_(Clock::now().time_since_epoch().count()) {}

Pair::~Pair() {
  // gloo's destructor does so, but its thread must not find this object without its own part.
  const std::lock_guard lock(m_);
  if (state_ != CLOSED) tcp::Pair::changeState(CLOSED);
}

// gloo skips events while another thread has the connection's lock, and epoll reports them again at
// once. If that thread waits for the same core, gloo would spin for as long as the system lets it.
void Pair::handleEvents(int events) {
  if (!std::unique_lock(m_, std::try_to_lock)) {
    std::this_thread::sleep_for(kRetryAfter);
    return;
  }
  try {
    tcp::Pair::handleEvents(events);
  } catch (const std::exception& e) {
    // Who closes the connection holds the lock while it waits for this thread. Then, or at the next
    // event, this is tried again.
    const std::unique_lock lock(m_, std::try_to_lock);
    if (lock && ex_ == nullptr) signalException(e.what());
  }
}

std::string Pair::failure() const {
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

bool Pair::has_unmatched_send(uint64_t slot) {
  const std::unique_lock lock(m_, std::try_to_lock);
  return lock && localPendingSend_.count(slot) > 0;
}

void Pair::note_activity() {
  active_ = Clock::now().time_since_epoch().count();
  events_.moved();
}

bool Pair::read() {
  const bool complete = tcp::Pair::read();
  note_activity();
  if (complete) events_.signal();
  return complete;
}

bool Pair::write(tcp::Op& op) {
  const size_t before = op.nwritten;
  const bool complete = tcp::Pair::write(op);
  if (op.nwritten != before) note_activity();
  if (complete) events_.signal();
  return complete;
}

void Pair::changeState(state next) noexcept {
  tcp::Pair::changeState(next);
  if (next != CLOSED || closed_) return;
  {
    const std::lock_guard lock(failure_mutex_);
    failure_ = text_of(ex_);
  }
  closed_ = true;
  events_.signal();
}

Context::Context(std::shared_ptr<tcp::Device> device, int host, int hosts, Events& events)
    : tcp::Context(std::move(device), host, hosts), events_(events) {}

std::unique_ptr<gloo::transport::Pair>& Context::createPair(int peer) {
  pairs_[peer] = std::make_unique<Pair>(this, device_.get(), peer, getTimeout(), events_);
  return pairs_[peer];
}

std::optional<uint64_t> Context::other_slot(int peer, uint64_t slot, bool sending) {
  // Both hosts announce their messages of a tag in order. A message that has not been matched,
  // while the peer has announced one of the same tag and another length that this host has not
  // begun, is therefore of another length than the peer's.
  if (sending && !pair(peer).has_unmatched_send(slot)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (!sending && !lists(expectedNotifications_, slot, peer)) return std::nullopt;
  for (const Tally& tally : pendingOperations_) {
    if (tally.slot >> 32 != slot >> 32 || tally.slot == slot) continue;
    const std::vector<int>& peers = sending ? tally.getRecvList() : tally.getSendList();
    if (std::find(peers.begin(), peers.end(), peer) != peers.end()) return tally.slot;
  }
  return std::nullopt;
}

bool Buffer::complete() {
  const std::lock_guard lock(m_);
  return recvCompletions_ + sendCompletions_ > 0;
}

SigpipeBlocked::SigpipeBlocked() {
  sigset_t pending, old;
  sigpending(&pending);
  was_pending_ = sigismember(&pending, SIGPIPE) == 1;
  const sigset_t pipe = only_sigpipe();
  pthread_sigmask(SIG_BLOCK, &pipe, &old);
  was_blocked_ = sigismember(&old, SIGPIPE) == 1;
}

SigpipeBlocked::~SigpipeBlocked() {
  const sigset_t pipe = only_sigpipe();
  const timespec now{};
  if (!was_pending_) sigtimedwait(&pipe, nullptr, &now);
  if (!was_blocked_) pthread_sigmask(SIG_UNBLOCK, &pipe, nullptr);
}

SignalsBlocked::SignalsBlocked() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before_);
}

std::shared_ptr<tcp::Device> open_device(const std::string& address) {
  const SignalsBlocked guard;
  return std::make_shared<tcp::Device>(attributes_of(address));
}

std::string plain_text(const std::string& message) {
  if (message.find("closed by peer") != std::string::npos) return kClosedText;
  if (message.find("reset by peer") != std::string::npos) return "connection reset by peer";
  // What gloo checks of data that it reads.
  if (message.starts_with("[enforce fail")) return "unexpected data on its connection";
  const size_t end = message.find("] ");
  return message.starts_with("[") && end != std::string::npos ? message.substr(end + 2) : message;
}

}  // namespace dpt::gloo_module
