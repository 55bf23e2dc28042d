#include "base/files.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/fail.h"

namespace dpt {

void write_text(const std::string& path, std::string_view text, std::string_view remedy) {
  std::ofstream out(path, std::ios::trunc);
  if (!(out << text << std::flush)) fail(Fault::failed, "{} can't be written{}", path, remedy);
}

void flush_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    fail(Fault::failed, "standard output can't be written");
}

void make_folder(const std::string& path, std::string_view what) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error)
    fail(Fault::failed, "{} {} can't be made: {}; choose another with out=DIR", what, path,
         error.message());
}

}  // namespace dpt
