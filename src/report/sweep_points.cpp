#include "report/sweep_points.h"

#include <algorithm>
#include <cctype>
#include <random>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/count.h"
#include "base/fail.h"
#include "base/sha256.h"

namespace dpt {
namespace {

constexpr std::string_view kParallel = "parallel", kDevices = "devices", kSeed = "seed";
constexpr int kRandomDigits = 4;

using Values = std::vector<std::pair<std::string, std::string>>;

std::vector<Values> every_combination(const std::vector<SweepKey>& keys) {
  size_t count = 1;
  for (const SweepKey& k : keys) {
    count *= k.values.size();
    if (count > kMostSweepRuns) break;
  }
  std::vector<Values> out(std::min(count, kMostSweepRuns + 1));
  for (size_t i = 0; i < out.size(); ++i) {
    size_t rest = i;
    for (size_t k = keys.size(); k-- > 0;) {
      out[i].insert(out[i].begin(), {keys[k].key, keys[k].values[rest % keys[k].values.size()]});
      rest /= keys[k].values.size();
    }
  }
  return out;
}

std::vector<Values> in_step(const std::vector<SweepKey>& keys) {
  std::vector<std::string> lengths;
  for (const SweepKey& k : keys)
    lengths.push_back(fmt::format("{} has {}", k.key, k.values.size()));
  for (const SweepKey& k : keys)
    if (k.values.size() != keys[0].values.size())
      fail(Fault::spec,
           "--zip takes lists of the same length, but {}; leave --zip out to train "
           "every combination",
           fmt::join(lengths, ", "));
  std::vector<Values> out(keys.empty() ? 1 : keys[0].values.size());
  for (size_t i = 0; i < out.size(); ++i)
    for (const SweepKey& k : keys) out[i].emplace_back(k.key, k.values[i]);
  return out;
}

// The standard library's distributions differ between implementations; its generator does not.
class Draw {
 public:
  explicit Draw(int64_t seed) : generator_(static_cast<uint64_t>(seed)) {}
  std::string operator()(const SweepKey& k) {
    const double fraction = static_cast<double>(generator_() >> 11) * 0x1p-53;  // in [0, 1)
    if (!k.range)
      return k.values[static_cast<size_t>(fraction * static_cast<double>(k.values.size()))];
    SweepRange range = *k.range;
    if (!range.whole) return range_value(range, fraction, kRandomDigits);
    // Each whole number has an interval of the same length, the first and the last one too.
    range.low -= range.log ? 0 : 0.5;
    range.high += range.log ? 0 : 0.5;
    return range_value(range, fraction, kRandomDigits);
  }

 private:
  std::mt19937_64 generator_;
};

std::vector<Values> random_points(const std::vector<SweepKey>& keys, const SweepPlan& plan) {
  if (keys.empty())
    fail(Fault::spec, "--random needs keys with several values: optimizer.lr=1e-4..1e-1:log");
  constexpr int kTries = 100;  // for each point, to find one that is new
  Draw draw(plan.random_seed);
  std::vector<Values> out;
  for (int i = 0; i < plan.random * kTries && std::ssize(out) < plan.random; ++i) {
    Values point;
    for (const SweepKey& k : keys) point.emplace_back(k.key, draw(k));
    if (std::ranges::find(out, point) == out.end()) out.push_back(std::move(point));
  }
  return out;
}

// `single` has one device, so points that differ in `devices` only are one.
void take_one_device(std::vector<Values>& points) {
  std::vector<Values> out;
  for (Values& point : points) {
    const bool single = std::ranges::find(point, std::pair<std::string, std::string>(
                                                     kParallel, "single")) != point.end();
    const auto devices = std::ranges::find(point, kDevices, &Values::value_type::first);
    if (single && devices != point.end()) devices->second = "1";
    if (std::ranges::find(out, point) == out.end()) out.push_back(std::move(point));
  }
  points = std::move(out);
}

// The value as a part of a file name: no slash, nothing that a shell reads as its own.
std::string name_part(const std::string& value) {
  constexpr size_t kLongest = 40;
  std::string out;
  for (const char c : value)
    out += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '+'
               ? c
               : '_';
  const bool exact = out == value && out.size() <= kLongest;
  if (exact) return out;
  // Different values must not get the same name.
  return fmt::format("{}_{}", out.substr(0, kLongest), Sha256().update(value).hex().substr(0, 6));
}

}  // namespace

std::vector<std::string> SweepPoint::overrides() const {
  std::vector<std::string> out;
  for (const auto& [key, value] : values) out.push_back(fmt::format("{}={}", key, value));
  return out;
}

const std::string* SweepPoint::find(const std::string& key) const {
  const auto found = std::ranges::find(values, key, &Values::value_type::first);
  return found == values.end() ? nullptr : &found->second;
}

std::vector<std::string> short_keys(const std::vector<std::string>& keys) {
  std::vector<std::string> out;
  for (const std::string& key : keys) {
    size_t at = key.rfind('.');
    const auto shared = [&](size_t begin) {
      return std::ranges::any_of(keys, [&](const std::string& other) {
        return other != key &&
               (other == key.substr(begin) || other.ends_with("." + key.substr(begin)));
      });
    };
    while (at != key.npos && shared(at + 1)) at = at == 0 ? key.npos : key.rfind('.', at - 1);
    out.push_back(at == key.npos ? key : key.substr(at + 1));
  }
  return out;
}

std::vector<SweepPoint> make_points(const SweepWords& words, const SweepPlan& plan) {
  std::vector<Values> settings = plan.random > 0 ? random_points(words.keys, plan)
                                 : plan.zip      ? in_step(words.keys)
                                                 : every_combination(words.keys);
  take_one_device(settings);
  const size_t runs = settings.size() * static_cast<size_t>(std::max(1, plan.seeds));
  if (words.keys.empty() && plan.seeds == 0)
    fail(Fault::spec,
         "a sweep needs a key with several values, or --seeds N: "
         "data.batch_size=32,64,128 optimizer.lr=1e-3..1e-1:log:5");
  if (runs > kMostSweepRuns)
    fail(Fault::spec,
         "these values make more than {} runs; list fewer values, or draw some of "
         "them with --random N",
         kMostSweepRuns);
  std::vector<SweepPoint> out;
  for (size_t s = 0; s < settings.size(); ++s)
    for (int seed = 0; seed < std::max(1, plan.seeds); ++seed) {
      SweepPoint point{.name = "", .setting = s, .values = settings[s]};
      if (plan.seeds > 0) point.values.emplace_back(kSeed, fmt::format("{}", seed));
      std::vector<std::string> keys, parts;
      for (const auto& [key, value] : point.values) keys.push_back(key);
      const std::vector<std::string> names = short_keys(keys);
      for (size_t i = 0; i < names.size(); ++i)
        parts.push_back(
            fmt::format("{}={}", name_part(names[i]), name_part(point.values[i].second)));
      constexpr size_t kLongest = 200;  // file systems allow 255 bytes
      point.name = fmt::format("{}", fmt::join(parts, ","));
      if (point.name.size() > kLongest)
        point.name = fmt::format("{}_{}", point.name.substr(0, kLongest),
                                 Sha256().update(point.name).hex().substr(0, 6));
      out.push_back(std::move(point));
    }
  return out;
}

}  // namespace dpt
