// Runs the real program, as a shell would, in a fresh folder.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "data/folder.h"

namespace dpt {

using Variables = std::vector<std::pair<std::string, std::string>>;

// dptrain with these arguments; a process group of its own, all of which is killed at the end.
// folder: its working directory; empty: this process's.
class Process {
 public:
  explicit Process(const std::vector<std::string>& arguments, const Variables& environment = {},
                   const std::string& folder = "");
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void send(int signal) const;        // to this process alone
  void send_group(int signal) const;  // to all, as Ctrl-C does
  // Exit code, 128 + signal of one that was killed; -1 when it still runs after these seconds.
  int wait(double seconds = 120);
  std::string out() const, err() const;

  // Direct children; all processes of its group that are left, without zombies.
  std::vector<pid_t> children() const, group() const;

 private:
  pid_t pid_ = -1;
  int code_ = -1;
  Folder folder_;
};

struct Finished {
  int code = -1;
  std::string out, err;
};
std::string program();                                      // its path, for shells
std::string beside_this_program(std::string_view library);  // its path, too
Finished dptrain(const std::vector<std::string>& arguments, const Variables& environment = {},
                 const std::string& folder = "");

void sleep_ms(int ms);

// Whether `done` becomes true within so many seconds.
template <class F>
bool becomes_true(double seconds, F&& done) {
  for (int waited = 0; waited <= static_cast<int>(seconds * 1000); waited += 5) {
    if (done()) return true;
    sleep_ms(5);
  }
  return false;
}

}  // namespace dpt
