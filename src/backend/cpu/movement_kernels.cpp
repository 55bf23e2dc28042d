// The CPU implementations of pad and permute, which copy the elements that input and result share.
#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "backend/cpu/kernels.h"
#include "backend/cpu/support.h"
#include "graph/attrs.h"

namespace dpt {
namespace {

// One dimension: `count` elements of x from `first_in_x` on are those of y from `first_in_y` on.
// Steps are in floats.
struct Shared {
  int64_t count, first_in_x, first_in_y, step_in_x, step_in_y;
};

// Whether `outer` and `inner` are contiguous, so that they can be merged.
bool continues(const Shared& outer, const Shared& inner) {
  return inner.first_in_x == 0 && inner.first_in_y == 0 &&
         outer.step_in_x == inner.count * inner.step_in_x &&
         outer.step_in_y == inner.count * inner.step_in_y;
}

// Sorts dimensions by y's strides and merges contiguous ones.
std::vector<Shared> in_order(std::vector<Shared> dims) {
  std::ranges::stable_sort(dims, std::greater(), &Shared::step_in_y);
  std::vector<Shared> out;
  for (const Shared& d : dims) {
    if (out.empty() || !continues(out.back(), d)) {
      out.push_back(d);
      continue;
    }
    const Shared outer = out.back();
    out.back() = {outer.count * d.count, outer.first_in_x * d.count, outer.first_in_y * d.count,
                  d.step_in_x, d.step_in_y};
  }
  return out;
}

void copy(std::span<const Shared> dims, const float* x, float* y) {
  const Shared& d = dims.front();
  x += d.first_in_x * d.step_in_x;
  y += d.first_in_y * d.step_in_y;
  if (dims.size() > 1)
    for (int64_t i = 0; i < d.count; ++i)
      copy(dims.subspan(1), x + i * d.step_in_x, y + i * d.step_in_y);
  else if (d.step_in_x == 1 && d.step_in_y == 1)
    std::copy_n(x, d.count, y);
  else
    for (int64_t i = 0; i < d.count; ++i) y[i * d.step_in_y] = x[i * d.step_in_x];
}

std::string refuses_copy(const KernelQuery& q) { return not_f32(q.in[0]); }

std::unique_ptr<Kernel> prepare_pad(const KernelQuery& q) {
  const Pad pad = settings<Pad>(q);
  const TensorDesc &x = q.in[0], &y = q.out[0];
  const auto read = strides_of(x.shape, x.layout), write = strides_of(y.shape, y.layout);
  std::vector<Shared> dims;
  for (int i = 0; i < x.shape.rank(); ++i) {
    const auto d = static_cast<size_t>(i);
    const int64_t first = std::max<int64_t>(0, -pad.before[d]),
                  begin = std::max<int64_t>(0, pad.before[d]);
    const int64_t count = std::min(x.shape[i] - first, y.shape[i] - begin);
    dims.push_back({std::max<int64_t>(0, count), first, begin, read[d], write[d]});
  }
  const bool none = std::ranges::any_of(dims, [](const Shared& d) { return d.count == 0; });
  return call([value = static_cast<float>(pad.value), n = elements(y), none,
               dims = in_order(std::move(dims))](const KernelArgs& a) {
    std::fill_n(data(a.out[0]), n, value);
    if (!none) copy(dims, data(a.in[0]), data(a.out[0]));
  });
}

std::unique_ptr<Kernel> prepare_permute(const KernelQuery& q) {
  const auto order = settings<Permute>(q).order;
  const TensorDesc &x = q.in[0], &y = q.out[0];
  const auto read = strides_of(x.shape, x.layout), write = strides_of(y.shape, y.layout);
  std::vector<Shared> dims;
  for (int i = 0; i < y.shape.rank(); ++i) {
    const auto d = static_cast<size_t>(i);
    dims.push_back({y.shape[i], 0, 0, read[static_cast<size_t>(order[d])], write[d]});
  }
  dims = in_order(std::move(dims));
  // The innermost loop goes along x or along y, whichever is longer, the next one along the other.
  const auto along_x = std::ranges::find(dims, 1, &Shared::step_in_x);
  if (along_x < dims.end() - 1) {
    std::rotate(along_x, along_x + 1, dims.end());
    if (Shared& next = dims[dims.size() - 2]; next.count > dims.back().count)
      std::swap(next, dims.back());
  }
  return call([dims = std::move(dims), n = elements(y)](const KernelArgs& a) {
    if (n > 0) copy(dims, data(a.in[0]), data(a.out[0]));
  });
}

}  // namespace

std::vector<KernelType> movement_kernels() {
  return {{.op = "pad",
           .name = "copy",
           .refuses = refuses_copy,
           .prepare = prepare_pad,
           .by_sample = true},
          {.op = "permute",
           .name = "copy",
           .refuses = refuses_copy,
           .prepare = prepare_permute,
           .by_sample = true}};
}

}  // namespace dpt
