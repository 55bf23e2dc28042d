// A library that is dptrain's module for data between hosts, but of another build.
#include "comm/links/module.h"

extern "C" const dpt::LinkModuleEntry* dptrain_link_module() {
  static const dpt::LinkModuleEntry entry{.version = "dptrain 0.0.1"};
  return &entry;
}
