// The interface of libdptrain_gloo.so and libdptrain_*mpi*.so, once they are loaded (load.h).
#pragma once

#include <memory>
#include <string>

#include "base/version.h"
#include "comm/links/link.h"

namespace dpt {

class LinkModule {
 public:
  virtual ~LinkModule() = default;
  virtual std::string build() const = 0;  // "gloo 0.5.0"

  // Every process that MPI's launcher has started calls start() once, whether or not it has a
  // link, in the thread that called main() and before any connect(); and stop() before it exits if
  // all went well (MPI_Init and MPI_Finalize wait for all processes). They do nothing with gloo.
  // start() throws Error{device}.
  virtual void start() = 0;
  virtual void stop() noexcept = 0;

  // Connects this host with all others. Blocks until all hosts have called it. Throws Error{rank}
  // if one cannot be reached within the time limit, and as Link's calls do.
  virtual std::unique_ptr<Link> connect(const LinkWorld& world) = 0;
};

// The module's entry point returns this. Loading checks the version before it uses anything else.
struct LinkModuleEntry {
  const char* version = "";  // of dptrain, with the compiler
  LinkModule* module = nullptr;
};
using LinkModuleFunction = const LinkModuleEntry*();
inline constexpr const char* kLinkModuleFunction = "dptrain_link_module";

// What a module's entry point returns. Module: its LinkModule.
template <class Module>
const LinkModuleEntry* link_module_entry() {
  static const std::string own_version = version();
  static Module module;
  static const LinkModuleEntry entry{.version = own_version.c_str(), .module = &module};
  return &entry;
}

}  // namespace dpt
