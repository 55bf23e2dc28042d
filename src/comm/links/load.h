// Loads the modules that carry data between hosts. The program does not link gloo or MPI, so it
// starts on every machine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "comm/links/link.h"
#include "comm/links/module.h"

namespace dpt {

// The backends that have a module: "gloo", "mpi".
const std::vector<std::string_view>& link_backends();

// The result of loading a backend's module, which the first call does. Thread: any.
// REQUIRES: backend is one of link_backends().
struct LoadedLinkModule {
  LinkModule* module = nullptr;
  std::string path;
  std::string problem;  // why it cannot be used, and what to do; empty: it can
};
const LoadedLinkModule& loaded_link_module(std::string_view backend);

// Throws Error{device} with the reason and what to do if the module cannot be loaded.
LinkModule& link_module(std::string_view backend);

}  // namespace dpt
