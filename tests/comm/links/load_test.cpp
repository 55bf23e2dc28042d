#include "comm/links/load.h"

#include <filesystem>
#include <tuple>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/process.h"
#include "data/folder.h"

namespace dpt {
namespace {

// The line of doctor's on a backend.
std::string line_of(const std::string& backend, const Variables& environment) {
  const Finished doctor = dptrain({"doctor"}, environment);
  CHECK(doctor.code == 0);
  const size_t begin = doctor.out.find("] " + backend + " ");
  if (begin == std::string::npos) return "no line on " + backend;
  return doctor.out.substr(begin - 2, doctor.out.find('\n', begin) - begin + 2);
}

TEST_CASE("doctor says whether hosts can be connected, and what to do") {
  for (const auto& [backend, variable, file] :
       {std::tuple("gloo", "DPTRAIN_GLOO_MODULE", "libdptrain_gloo.so"),
        {"mpi", "DPTRAIN_MPI_MODULE", "libdptrain_openmpi.so or libdptrain_mpich.so"}}) {
    const std::string mark = fmt::format("[ ] {:<12} ", backend);
    const auto line = [name = std::string(backend), set = variable](const std::string& module) {
      return line_of(name, {{set, module}});
    };
    CHECK(line("/none.so") == mark + "/none.so: no such file, the value of " + variable +
                                  "; set it to the path of a " + file + ", or unset it");
    const Folder folder;
    folder.write("text.so", "no library");
    CHECK(line(folder.file("text.so")) == mark + folder.file("text.so") + ": file too short");
    CHECK(line(beside_this_program("libother_module.so")) ==
          mark + beside_this_program("libother_module.so") +
              ": it is not a module of dptrain for data between hosts");
    const std::string other = beside_this_program("libother_link_module.so");
    const std::string found = line(other);
    CHECK(
        found.starts_with(mark + other + ": it was built for dptrain 0.0.1, but this program is "));
    CHECK(found.ends_with("; use the libother_link_module.so that was built with this program"));
    // Without the variable: the module of this build, or what to install.
    const std::string own = line_of(backend, {});
    const LoadedLinkModule& loaded = loaded_link_module(backend);
    if (loaded.module) {
      CHECK(own.starts_with("[x]" + mark.substr(3)));
      CHECK(own.ends_with(fmt::format("/{}: {}",
                                      std::filesystem::path(loaded.path).filename().string(),
                                      loaded.module->build())));
    } else {
      CHECK(own.starts_with(mark + "libdptrain_"));
      CHECK(has(own, ".so was not built; install lib"));
      CHECK(own.ends_with(", then: meson setup --reconfigure build && ninja -C build"));
    }
  }
}

}  // namespace
}  // namespace dpt
