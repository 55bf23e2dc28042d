// For tests of what a run writes: syncs, at which disk_test.cpp looks, would be most of their time.
#pragma once

#include "base/disk.h"

namespace dpt {

using Quick = UnsyncedDisk;

}  // namespace dpt
