#include "comm/links/load.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/fail.h"
#include "base/installation.h"
#include "base/version.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

// NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes the environment
const char* variable(const char* name) { return std::getenv(name); }

struct Backend {
  std::string_view name;
  const char* variable;  // names the module's file
  std::vector<const char*> files;
  const char* packages;   // Debian's, to build it
  const char* libraries;  // Debian's packages of the libraries that it loads
  int visibility = RTLD_LOCAL;
};

// MPI has a module per binary interface. The launcher's comes first, since a launcher of another
// MPI would start each rank alone.
std::vector<const char*> mpi_files() {
  std::vector<const char*> out = {"libdptrain_openmpi.so", "libdptrain_mpich.so"};
  const bool openmpi = variable("OMPI_COMM_WORLD_SIZE") != nullptr;
  if (!openmpi && (variable("PMI_RANK") || variable("MPI_LOCALNRANKS"))) std::swap(out[0], out[1]);
  return out;
}

const std::vector<Backend>& backends() {
  static const std::vector<Backend> all = {
      {.name = "gloo",
       .variable = "DPTRAIN_GLOO_MODULE",
       .files = {"libdptrain_gloo.so"},
       .packages = "libgloo-dev",
       .libraries = "libgloo0"},
      {.name = "mpi",
       .variable = "DPTRAIN_MPI_MODULE",
       .files = mpi_files(),
       .packages = "libopenmpi-dev and openmpi-bin (or libmpich-dev and mpich)",
       .libraries = "libopenmpi3 (or libmpich12)",
       // MPI's own plug-ins may look for its symbols among those of the program.
       .visibility = RTLD_GLOBAL}};
  return all;
}

// Where a module may be: in the build tree, or where it is installed.
std::vector<std::string> candidate_paths(const Backend& b) {
  if (const char* named = variable(b.variable)) return {named};
  std::vector<std::string> out;
  for (const char* file : b.files)
    for (const char* folder :
         {".", "comm/links/modules", "../src/comm/links/modules", "../lib/dptrain"})
      if (std::string path = (fs::path(program_folder()) / folder / file).lexically_normal();
          std::find(out.begin(), out.end(), path) == out.end())
        out.push_back(std::move(path));
  return out;
}

// The module in this file, or why it cannot be used.
LoadedLinkModule open(const std::string& path, const Backend& b) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | b.visibility);
  if (!handle) {
    const char* const reason = dlerror();  // NOLINT(concurrency-mt-unsafe): glibc's is
    std::string why = reason ? reason : "it cannot be loaded";
    if (why.find("cannot open shared object file") != std::string::npos)
      why += fmt::format("; install {}", b.libraries);
    return {.problem = why.find(path) == std::string::npos ? path + ": " + why : why};
  }
  auto* const entry = reinterpret_cast<LinkModuleFunction*>(dlsym(handle, kLinkModuleFunction));
  if (!entry) return {.problem = path + ": it is not a module of dptrain for data between hosts"};
  const LinkModuleEntry* const found = entry();
  if (found->version != version())
    return {.problem =
                fmt::format("{}: it was built for {}, but this program is {}; use the {} "
                            "that was built with this program",
                            path, found->version, version(), fs::path(path).filename().string())};
  return {.module = found->module, .path = path};
}

LoadedLinkModule load(const Backend& b) {
  LoadedLinkModule out;
  for (const std::string& path : candidate_paths(b)) {
    std::error_code ignored;
    if (!fs::exists(path, ignored)) {
      if (variable(b.variable))
        return {.problem = fmt::format("{}: no such file, the value of {}; set it to the path of "
                                       "a {}, or unset it",
                                       path, b.variable, fmt::join(b.files, " or "))};
      continue;
    }
    LoadedLinkModule found = open(path, b);
    if (found.module) return found;
    if (out.problem.empty()) out.problem = std::move(found.problem);
  }
  if (out.problem.empty())
    out.problem =
        fmt::format("{} was not built; {}", b.files.front(), build_again_with(b.packages));
  return out;
}

}  // namespace

const std::vector<std::string_view>& link_backends() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> out;
    for (const Backend& b : backends()) out.push_back(b.name);
    return out;
  }();
  return names;
}

const LoadedLinkModule& loaded_link_module(std::string_view backend) {
  // Each on its own: MPI's libraries do much when they are loaded.
  static std::mutex mutex;
  static std::map<std::string, LoadedLinkModule, std::less<>> loaded;
  const std::lock_guard lock(mutex);
  if (const auto found = loaded.find(backend); found != loaded.end()) return found->second;
  const auto found = std::find_if(backends().begin(), backends().end(),
                                  [&](const Backend& b) { return b.name == backend; });
  require(found != backends().end(), "a link's backend is one of link_backends()");
  return loaded.emplace(backend, load(*found)).first->second;
}

LinkModule& link_module(std::string_view backend) {
  const LoadedLinkModule& loaded = loaded_link_module(backend);
  if (!loaded.module)
    fail(Fault::device, "backend '{}' cannot be used on this machine: {}", backend, loaded.problem);
  return *loaded.module;
}

}  // namespace dpt
