// data.json of a run directory: how the run's samples are read, and what they were.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/disk.h"
#include "data/sample_form.h"
#include "session/session_data.h"
#include "spec/spec.h"

namespace dpt {

// The data.json that belongs to a run directory, one of its checkpoints or folders of checkpoints,
// or a file of weights in one of these. Empty: the path is not in a run directory, or that has none
// (early versions). Throws Error{data} if the file is damaged.
std::optional<SampleForm> form_of_run(const std::string& path);

// The form of the run on a table that wrote the initial weights, by which a table with the same
// columns is read; empty: there is none. Throws Error{data} if its file is damaged.
std::optional<SampleForm> form_of_weights(const Spec& spec);

// REQUIRES: data.train was read (Dataset::made).
DataRecord record_of(const SessionData& data);
// "the training data: it had 600 samples, and has 603 now"; empty: the samples are the same.
std::string data_change(const DataRecord& before, const DataRecord& now);

// Writes data.json, which survives a crash, as the weights that it belongs to do. resumed: that of
// the run that is continued, whose records stay. Throws Error{failed}.
void write_form(const std::string& folder, const SessionData& data,
                const std::optional<SampleForm>& resumed, Disk& disk);

// What a user must know who evaluates `now.test`, or resumes, with other data than the run's:
// sentences without "warning: ". Empty: the data are the same, or the run has no record of them.
// REQUIRES: now.train was read.
std::vector<std::string> evaluated_data_changes(const SampleForm& run, const SessionData& now);
std::vector<std::string> resumed_data_changes(const SampleForm& run, const SessionData& now);

}  // namespace dpt
