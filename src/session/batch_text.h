// Describes a batch, for the header of a run and `dptrain plan`.
#pragma once

#include <string>

#include "session/devices.h"
#include "session/session_batches.h"

namespace dpt {

// The first batch and how it is split: "100 samples in 2 micro-batches, 50 per replica", or "100
// samples, at most 2 per replica, none for 14 of 64", or "60 samples (batch_size: 100)" if the data
// set is smaller than a batch.
std::string batch_text(const Devices& devices, const SessionBatches& batches);

}  // namespace dpt
