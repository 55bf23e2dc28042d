#include "oracles/random_images.h"

#include <algorithm>

namespace dpt {

RandomImages::RandomImages(RandomNumbers& random, int64_t dims, bool batch_norm)
    : random_(random), batch_norm_(batch_norm), channels_(random.between(1, 3)) {
  for (int64_t i = 0; i < dims; ++i) extents_.push_back(random.between(1, dims == 2 ? 6 : 4));
}

std::vector<int64_t> RandomImages::shape() const {
  std::vector<int64_t> out = {channels_};
  out.insert(out.end(), extents_.begin(), extents_.end());
  return out;
}

int64_t RandomImages::elements() const {
  int64_t out = channels_;
  for (const int64_t n : extents_) out *= n;
  return out;
}

RandomNumbers::Words RandomImages::layers() {
  RandomNumbers::Words out = {convolution()};
  for (int64_t n = random_.between(0, 2); n > 0; --n) out.push_back(layer());
  out.push_back(norm());
  out.push_back(pool());
  return out;
}

std::string RandomImages::name(const std::string& begin) const {
  return fmt::format("{}{}d", begin, extents_.size());
}

std::string RandomImages::layer() {
  switch (random_.between(0, 3)) {
    case 0:
      return convolution();
    case 1: {
      std::vector<int64_t> sizes;
      for (int64_t& n : extents_) sizes.push_back(n = random_.between(1, 3));
      return fmt::format("{}: [{}]",
                         name(random_.one_of({"adaptive_avg_pool", "adaptive_max_pool"})),
                         fmt::join(sizes, ", "));
    }
    case 2:
      return *std::ranges::max_element(extents_) <= 3 ? transposed() : pool();
    default:
      return random_.one_of({"relu: {}", "group_norm: 1", "tanh: {}", "dropout2d: 0.3"});
  }
}

std::string RandomImages::convolution() {
  const bool grouped = random_.chance(30);
  const int64_t groups = grouped ? channels_ : 1;
  const int64_t out = grouped ? channels_ * random_.between(1, 2) : random_.between(1, 5);
  const int64_t stride = random_.between(1, 2), padding = random_.between(0, 1);
  std::vector<int64_t> kernel;
  for (int64_t& n : extents_) {
    const int64_t size = random_.between(1, std::min<int64_t>(3, n + 2 * padding));
    kernel.push_back(size);
    n = (n + 2 * padding - size) / stride + 1;
  }
  channels_ = out;
  return fmt::format(
      "{}: {{out_channels: {}, kernel_size: [{}], stride: {}, padding: {}, groups: {}, bias: {}}}",
      name("conv"), out, fmt::join(kernel, ", "), stride, padding, groups, random_.chance(70));
}

std::string RandomImages::norm() {
  if (!batch_norm_) return "group_norm: 1";
  return fmt::format("{}: {{affine: {}, track_running_stats: {}}}", name("batch_norm"),
                     random_.chance(70), random_.chance(70));
}

std::string RandomImages::transposed() {
  channels_ = random_.between(1, 3);
  for (int64_t& n : extents_) n *= 2;
  return fmt::format("{}: {{out_channels: {}, kernel_size: 2, stride: 2}}", name("conv_transpose"),
                     channels_);
}

std::string RandomImages::pool() {
  const bool one_step = random_.chance(30);
  std::vector<int64_t> kernel;
  for (int64_t& n : extents_) {
    const int64_t size = random_.between(1, std::min<int64_t>(2, n));
    kernel.push_back(size);
    n = (n - size) / (one_step ? 1 : size) + 1;
  }
  return fmt::format("{}: {{kernel_size: [{}]{}}}", name(random_.one_of({"max_pool", "avg_pool"})),
                     fmt::join(kernel, ", "), one_step ? ", stride: 1" : "");
}

}  // namespace dpt
