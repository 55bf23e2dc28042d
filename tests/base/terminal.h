// A pseudo-terminal, and what a program shows on it.
#pragma once

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace dpt {

// Reads all that is written to the terminal, until it is destroyed.
class Terminal {
 public:
  explicit Terminal(int columns) : master_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    if (master_ < 0 || ::grantpt(master_) != 0 || ::unlockpt(master_) != 0) return;
    slave_ = ::open(::ptsname(master_), O_RDWR | O_NOCTTY | O_CLOEXEC);
    resize(columns);
    if (slave_ >= 0) reader_ = std::thread([this] { read_all(); });
  }
  ~Terminal() {
    stop_ = true;
    if (reader_.joinable()) reader_.join();
    if (slave_ >= 0) ::close(slave_);
    if (master_ >= 0) ::close(master_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  bool there() const { return slave_ >= 0; }  // a container may have no terminals
  int descriptor() const { return slave_; }   // for the program
  void resize(int columns) const {
    const winsize size{.ws_row = 24, .ws_col = static_cast<unsigned short>(columns)};
    ::ioctl(master_, TIOCSWINSZ, &size);
  }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  void read_all() {
    char bytes[4096];
    while (!stop_) {
      pollfd ready{.fd = master_, .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, 20) <= 0) continue;
      const ssize_t n = ::read(master_, bytes, sizeof bytes);
      if (n <= 0) return;
      const std::lock_guard lock(mutex_);
      text_.append(bytes, static_cast<size_t>(n));
    }
  }

  int master_, slave_ = -1;
  std::atomic<bool> stop_ = false;
  mutable std::mutex mutex_;
  std::string text_;
  std::thread reader_;
};

// The status lines among what was written: from each erasure up to the next one or to the line's
// end, if that is not a whole line.
inline std::vector<std::string> status_lines(const std::string& text) {
  const std::string erase = "\r\x1b[K";
  std::vector<std::string> out;
  for (size_t at = text.find(erase); at != text.npos;) {
    const size_t begin = at + erase.size(), next = text.find(erase, begin);
    const std::string line = text.substr(begin, next == text.npos ? next : next - begin);
    if (!line.empty() && line.find('\n') == line.npos) out.push_back(line);
    at = next;
  }
  return out;
}

// What stays on the screen: the text without status lines.
inline std::string lasting_text(const std::string& text) {
  std::string out, line;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 4, "\r\x1b[K") == 0) {
      line.clear();
      i += 3;
    } else if (text[i] == '\n') {
      out += line + '\n';
      line.clear();
    } else if (text[i] != '\r') {
      line += text[i];
    }
  }
  return out + line;
}

}  // namespace dpt
