// Keys of layers with a window over images or volumes: one number, or one for each dimension, as in
// PyTorch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/fail.h"
#include "base/image_shape.h"
#include "formats/python_call.h"
#include "graph/windows.h"
#include "spec/keys.h"

namespace dpt::layers {

using Sizes = std::vector<int64_t>;

// "the depth D": dimension `dim` of sequences [N, C, L], images [N, C, H, W] and volumes [N, C, D,
// H, W], for messages.
inline std::string dimension_text(const Shape& x, int dim) {
  constexpr std::string_view kNames[] = {"depth D", "height H", "width W"};
  const int from_end = x.rank() - 1 - dim;
  if (dim < 2 || from_end < 0 || from_end > 2) return fmt::format("dimension {}", dim);
  if (x.rank() == 3) return "the length L";
  return fmt::format("the {}", kNames[2 - from_end]);
}

// ", or 3 (depth, height, width)": how many numbers there may be for `dims` dimensions.
inline std::string_view counts_text(int dims) {
  return dims == 1 ? "" : dims == 2 ? ", or 2 (height, width)" : ", or 3 (depth, height, width)";
}

// The sizes of `dims` dimensions as {depth, height, width}, with `none` for the others. A single
// size applies to all.
inline Extents extents_from(const Sizes& sizes, int dims, int64_t none = 1) {
  Extents out{none, none, none};
  const auto count = static_cast<size_t>(dims);
  for (size_t i = 0; i < count; ++i) out[3 - count + i] = sizes[sizes.size() == 1 ? 0 : i];
  return out;
}

inline void check_count(std::string_view key, const Sizes& sizes, int dims, const Owner& owner,
                        Diagnostics& d) {
  const auto count = static_cast<size_t>(dims);
  if (sizes.size() != 1 && sizes.size() != count)
    d.error(owner.at(key),
            fmt::format("'{}' must be one number{}, not {}", key, counts_text(dims), sizes.size()));
}

// Adds sizes to a call: as one number if all are equal. `usual`: the default, which is left out.
inline PythonCall& add_sizes(PythonCall& call, std::string_view name, const Sizes& sizes) {
  const bool same = std::ranges::all_of(sizes, [&](int64_t s) { return s == sizes[0]; });
  if (name.empty()) return same ? call.arg(sizes[0]) : call.arg(sizes);
  return same ? call.key(name, sizes[0]) : call.key(name, sizes);
}
inline PythonCall& add_sizes(PythonCall& call, std::string_view name, const Sizes& sizes,
                             int64_t usual) {
  const bool left_out = std::ranges::all_of(sizes, [&](int64_t s) { return s == usual; });
  return left_out ? call : add_sizes(call, name, sizes);
}

// ": use conv2d" of "conv1d" and two dimensions; empty if there is no such layer.
inline std::string twin_for(std::string_view layer, int dims) {
  const size_t stem = layer.size() - 2;
  if (dims < 1 || dims > 3 || !layer.ends_with('d') || layer[stem] < '1' || layer[stem] > '3')
    return "";
  return fmt::format(": use {}{}d", layer.substr(0, stem), dims);
}

// Throws Error{spec} unless x is f32 [N, channels, ...] with `dims` further dimensions.
inline void need_image(std::string_view layer, const TensorDesc& x, int dims) {
  const char* wanted = dims == 1   ? "[N, channels, length]"
                       : dims == 2 ? "[N, channels, height, width]"
                                   : "[N, channels, depth, height, width]";
  if (x.shape.rank() != dims + 2) {
    const bool gray = dims == 2 && like_gray_image(x.shape.tail(1));
    fail(Fault::spec, "{} takes {}, not {}{}{}", layer, wanted, x.shape.str(),
         twin_for(layer, x.shape.rank() - 2),
         gray ? fmt::format(", or for gray images `reshape: [1, {}, {}]` before it", x.shape[1],
                            x.shape[2])
              : "");
  }
  if (x.dtype != DType::f32)
    fail(Fault::spec, "{} takes real numbers (f32), not {}{}: put an embedding before it?", layer,
         name_of(x.dtype), x.shape.str());
}

// Throws Error{spec} unless the window fits along all dimensions after the channels. With ceil_mode
// it may reach beyond the padding by less than a step.
inline void require_window_fits(std::string_view layer, const Shape& x, const Window& w,
                                bool ceil_mode = false) {
  for (int dim = 2; dim < x.rank(); ++dim) {
    const auto at = static_cast<size_t>(3 - x.rank() + dim);
    const int64_t needed = covered(w, at), extent = padded(w, at, x[dim]);
    if (needed - (ceil_mode ? w.stride[at] - 1 : 0) > extent)
      fail(Fault::spec,
           "{}: its window covers {} elements along {}, but the padded input {} has only {} there; "
           "use a smaller kernel_size{}, or more padding",
           layer, needed, dimension_text(x, dim), x.str(), extent,
           w.dilation[at] > 1 ? " or dilation" : "");
  }
}

}  // namespace dpt::layers
