// TensorBoard event files: records of TensorFlow's TFRecord format, each an Event message in
// protobuf's encoding (tensorflow/core/util/event.proto), written without protobuf's library.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dpt::tensorboard {

// CRC-32C (Castagnoli) of the bytes, and TFRecord's masked form of it.
uint32_t crc32c(std::string_view bytes);
uint32_t masked_crc32c(std::string_view bytes);

// The bytes framed as a record: length, CRC of the length, bytes, CRC of the bytes.
std::string record(std::string_view bytes);

// Each function below returns a whole record. `time`: seconds since 1970 (UTC).

// The first record of every file.
std::string file_version(double time);

// Says that a run continued here: TensorBoard drops all points at `step` and later that stand in
// earlier files of the same folder.
std::string session_start(double time, int64_t step);

struct Scalar {
  std::string tag;
  double value = 0;  // stored as a float
};
std::string scalars(double time, int64_t step, std::span<const Scalar> values);

// A text for the TEXT page, shown as it is, in a fixed-width font.
std::string text(double time, std::string_view tag, std::string_view content);

// The settings of a run for the HPARAMS page, where runs are rows and settings are columns. A value
// that is a number is stored as one.
using Settings = std::vector<std::pair<std::string, std::string>>;
std::string settings(double time, const Settings& settings);

}  // namespace dpt::tensorboard
