#include "base/installation.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

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

std::string build_again_with(std::string_view packages) {
  return fmt::format("install {}, then: meson setup --reconfigure build && ninja -C build",
                     packages);
}

}  // namespace dpt
