// For tests of what is printed, or should not be.
#pragma once

#include <cstdio>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace dpt {

// Sends a descriptor's output to a file for as long as it lives.
class Redirect {
 public:
  Redirect(int fd, const std::string& path) : fd_(fd), saved_(dup(fd)) {
    std::fflush(nullptr);
    const int file = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    dup2(file, fd);
    close(file);
  }
  ~Redirect() {
    std::fflush(nullptr);
    dup2(saved_, fd_);
    close(saved_);
  }
  Redirect(const Redirect&) = delete;
  Redirect& operator=(const Redirect&) = delete;

 private:
  int fd_, saved_;
};

}  // namespace dpt
