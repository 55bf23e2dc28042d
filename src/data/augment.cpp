#include "data/augment.h"

namespace dpt {
namespace {

template <class T>
void fill(T* x, int64_t begin, int64_t end, T value) {
  if (begin < end) std::fill(x + begin, x + end, value);
}

}  // namespace

template <class T>
void paint(const augment::Frame& frame, const augment::Patch& patch, T colour, T* x) {
  const int64_t height = frame.height, width = frame.width;
  const int64_t top = std::clamp<int64_t>(patch.rect.top, 0, height),
                bottom = std::clamp<int64_t>(patch.rect.bottom, top, height),
                left = std::clamp<int64_t>(patch.rect.left, 0, width),
                right = std::clamp<int64_t>(patch.rect.right, left, width);
  if (!patch.inside) {
    fill(x, 0, top * width, colour);
    fill(x, bottom * width, height * width, colour);
  }
  for (int64_t y = top; y < bottom; ++y) {
    T* const row = x + y * width;
    if (patch.inside) {
      fill(row, left, right, colour);
    } else {
      fill(row, 0, left, colour);
      fill(row, right, width, colour);
    }
  }
}

template void paint(const augment::Frame&, const augment::Patch&, float, float*);
template void paint(const augment::Frame&, const augment::Patch&, int32_t, int32_t*);

}  // namespace dpt
