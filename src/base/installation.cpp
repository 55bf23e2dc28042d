#include "base/installation.h"

#include <filesystem>
#include <system_error>

namespace dpt {

namespace fs = std::filesystem;

std::string program_folder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path().string();
}

std::string installed_file(std::string_view name) {
  const std::string folder = program_folder();
  if (folder.empty()) return "";
  const fs::path path = (fs::path(folder) / "../share/dptrain" / name).lexically_normal();
  std::error_code error;
  return fs::exists(path, error) ? path.string() : "";
}

}  // namespace dpt
