#include "report/compare.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/files.h"
#include "base/half.h"
#include "train/metrics_file.h"

namespace dpt {
namespace {

double distance_of(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double d = std::abs(a - b);
  return std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
}

bool within(double distance, double b, Tolerance t) {
  return distance == 0 ||
         (std::isfinite(distance) && distance <= t.absolute + t.relative * std::abs(b));
}

// Maps a float's bits to its rank among all floats of the type: neighbors differ by one, and both
// zeros map to 0.
template <class Bits>
int64_t place_of(Bits bits) {
  constexpr auto kMagnitude = static_cast<Bits>(static_cast<Bits>(~Bits{0}) >> 1);
  const auto magnitude = static_cast<int64_t>(bits & kMagnitude);
  return bits > kMagnitude ? -magnitude : magnitude;
}

template <class Bits, class ValueOf>
void compare_elements(const std::byte* a, const std::byte* b, Tolerance t, ValueOf value_of,
                      TensorParting& p) {
  const int64_t n = p.desc.shape.elements();
  for (int64_t i = 0; i < n; ++i, a += sizeof(Bits), b += sizeof(Bits)) {
    Bits x, y;
    std::memcpy(&x, a, sizeof x);
    std::memcpy(&y, b, sizeof y);
    if (x == y) continue;
    const double right = value_of(y), distance = distance_of(value_of(x), right);
    ++p.differ;
    p.beyond += within(distance, right, t) ? 0 : 1;
    p.distance = std::max(p.distance, distance);
    const auto here = static_cast<uint64_t>(place_of(x)),
               there = static_cast<uint64_t>(place_of(y));
    p.ulps = std::max(p.ulps, std::min(here - there, there - here));
  }
}

void compare_tensors(const std::byte* a, const std::byte* b, Tolerance t, TensorParting& p) {
  switch (p.desc.dtype) {
    case DType::f32:
      return compare_elements<uint32_t>(
          a, b, t, [](uint32_t x) { return double{std::bit_cast<float>(x)}; }, p);
    case DType::f64:
      return compare_elements<uint64_t>(
          a, b, t, [](uint64_t x) { return std::bit_cast<double>(x); }, p);
    case DType::bf16:
      return compare_elements<uint16_t>(
          a, b, t, [](uint16_t x) { return double{from_bf16(x)}; }, p);
    case DType::f16:
      return compare_elements<uint16_t>(
          a, b, t, [](uint16_t x) { return double{from_f16(x)}; }, p);
    case DType::i64:
      return compare_elements<uint64_t>(
          a, b, t, [](uint64_t x) { return static_cast<double>(static_cast<int64_t>(x)); }, p);
    case DType::i32:
      return compare_elements<uint32_t>(
          a, b, t, [](uint32_t x) { return static_cast<double>(static_cast<int32_t>(x)); }, p);
    case DType::u8:
      return compare_elements<uint8_t>(
          a, b, t, [](uint8_t x) { return static_cast<double>(x); }, p);
  }
}

}  // namespace

RecordedLosses read_losses(const std::string& path) {
  ::close(open_regular_file(path));  // refuse pipes and devices, which have no end
  std::ifstream in(path);
  if (!in) fail(Fault::data, "{} cannot be read", path);
  RecordedLosses out;
  read_lines(in, [&](std::string_view line, int64_t number) {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
    const Json record = record_of(line).value_or(Json());
    const auto step = number_at(record, "step"), epoch = number_at(record, "epoch"),
               loss = number_at(record, "loss");
    const bool other = std::ranges::any_of(
        kOtherRecords, [&](std::string_view key) { return record.find(key) != nullptr; });
    if (other && !loss) return;
    if (!loss || !(step || epoch))
      fail(Fault::data,
           R"({}:{}: not a record like {{"step": 1, "loss": 2.3}}; to compare weights, )"
           "name a run directory or a .safetensors file",
           path, number);
    const auto at = static_cast<int64_t>(step ? *step : *epoch);
    if (!(step ? out.steps : out.epochs).emplace(at, *loss).second)
      fail(Fault::data, "{}:{}: {} {} already has a record", path, number, step ? "step" : "epoch",
           at);
  });
  if (in.bad()) fail(Fault::data, "{} cannot be read", path);
  return out;
}

LossParting compare_losses(const LossesBy& a, const LossesBy& b, Tolerance tolerance) {
  LossParting out;
  for (const auto& [at, loss] : a) {
    const auto other = b.find(at);
    if (other == b.end()) continue;
    ++out.compared;
    const LossPair pair{
        .at = at, .a = loss, .b = other->second, .distance = distance_of(loss, other->second)};
    if (pair.distance == 0) continue;
    if (!out.first) out.first = pair;
    if (!out.first_beyond && !within(pair.distance, pair.b, tolerance)) out.first_beyond = pair;
    if (!out.largest || pair.distance > out.largest->distance) out.largest = pair;
  }
  return out;
}

std::vector<TensorParting> compare_weights(const SafeTensors& a, const SafeTensors& b,
                                           Tolerance tolerance) {
  std::vector<TensorParting> out;
  for (const SafeTensors::Entry& x : a.entries()) {
    TensorParting p{.name = x.name, .desc = x.desc};
    const SafeTensors::Entry* y = b.find(x.name);
    if (!y)
      p.unlike = "only in A";
    else if (y->desc != x.desc)
      p.unlike = fmt::format("{}{} in B", name_of(y->desc.dtype), y->desc.shape.str());
    else
      compare_tensors(x.data, y->data, tolerance, p);
    out.push_back(std::move(p));
  }
  for (const SafeTensors::Entry& y : b.entries())
    if (!a.find(y.name)) out.push_back({.name = y.name, .unlike = "only in B", .desc = y.desc});
  return out;
}

}  // namespace dpt
