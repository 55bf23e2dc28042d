#include "engine/gpu/resident_input.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/cuda/interface/launch.h"
#include "base/error.h"
#include "base/units.h"

namespace dpt {

using cuda::MemoryKind;

namespace {

template <class T>
const T* as(const cuda::DeviceBuffer& m) {
  return reinterpret_cast<const T*>(m.data());
}
template <class T>
T* as(const TensorView& v) {
  return reinterpret_cast<T*>(v.data);
}

// Copies through pinned memory, one piece at a time.
cuda::DeviceBuffer upload_bytes(cuda::DeviceContext& c, std::span<const std::byte> bytes) {
  constexpr size_t kPiece = 16 * kMiB;
  cuda::DeviceBuffer out(c.api, MemoryKind::device, std::max<size_t>(64, bytes.size()));
  const cuda::DeviceBuffer pinned(c.api, MemoryKind::pinned,
                                  std::max<size_t>(64, std::min(kPiece, bytes.size())));
  for (size_t done = 0; done < bytes.size(); done += kPiece) {
    const auto piece = bytes.subspan(done, std::min(kPiece, bytes.size() - done));
    std::ranges::copy(piece, pinned.data());
    c.stream.copy(out.data() + done, pinned.data(), piece.size());
    c.stream.synchronise();
  }
  return out;
}

}  // namespace

ResidentInput::ResidentInput(const BatchInputRequest& request)
    : context_(request.context),
      samples_(request.loader.size()),
      order_(context_.api, MemoryKind::device, sizeof(uint64_t) + order_bytes(request.loader)),
      pinned_order_(context_.api, MemoryKind::pinned, order_.bytes()),
      repeats_at_(request.loader.draws_on_device()
                      ? sizeof(uint64_t) + static_cast<size_t>(samples_) * sizeof(uint32_t)
                      : 0),
      target_is_input_(request.loader.target_is_input()),
      inputs_(upload(request.loader.stored_inputs(), request.input_bytes > 0)),
      targets_(upload(request.loader.stored_targets(),
                      request.target_bytes > 0 && !(target_is_input_ && request.input_bytes > 0))),
      rows_{.order = reinterpret_cast<const uint32_t*>(order_.data() + sizeof(uint64_t)),
            .state = context_.state,
            .samples = samples_} {
  const auto drawn = [](const Part& part, size_t bytes, const TensorDesc& sample) {
    return part.changes.count > 0 ? bytes / sample.bytes() : 0;
  };
  const size_t rows = std::max(drawn(inputs_, request.input_bytes, request.loader.input()),
                               drawn(targets_, request.target_bytes, request.loader.target()));
  if (rows > 0)
    frames_ = cuda::DeviceBuffer(context_.api, MemoryKind::device, rows * sizeof(augment::Frame));
}

ResidentInput::Part ResidentInput::upload(const BatchLoader::Stored& stored, bool used) {
  if (!used) return {};
  return {.sample = stored.sample,
          .step = stored.step,
          .bytes = upload_bytes(context_, stored.bytes),
          .values = upload_bytes(context_, std::as_bytes(std::span(stored.values))),
          .colours = upload_bytes(context_, std::as_bytes(std::span(stored.colours))),
          .value_count = std::ssize(stored.values),
          .changes = stored.changes};
}

void ResidentInput::begin(DrawnSamples order, uint64_t epoch) {
  require(std::cmp_less_equal(order.size(), samples_), "at most as many samples as the set has");
  const size_t bytes = order.rows().size_bytes();
  std::memcpy(pinned_order_.data(), &epoch, sizeof epoch);
  std::ranges::copy(std::as_bytes(order.rows()), pinned_order_.data() + sizeof epoch);
  context_.stream.copy(order_.data(), pinned_order_.data(), sizeof epoch + bytes);
  if (repeats_at_ == 0) return;
  std::byte* const repeats = pinned_order_.data() + repeats_at_;
  std::fill_n(repeats, bytes, std::byte{0});
  std::ranges::copy(std::as_bytes(order.repeats()), repeats);
  context_.stream.copy(order_.data() + repeats_at_, repeats, bytes);
}

void ResidentInput::enqueue_frames(const Part& part, const TensorView& to) {
  launch(context_.stream,
         cuda::MakeFrames{.rows = rows_,
                          .epoch = as<uint64_t>(order_),
                          .repeats = repeats_at_ > 0 ? reinterpret_cast<const uint32_t*>(
                                                           order_.data() + repeats_at_)
                                                     : nullptr,
                          .changes = part.changes,
                          .height = part.sample.shape[1],
                          .width = part.sample.shape[2],
                          .frames = reinterpret_cast<augment::Frame*>(frames_.data())},
         to.desc.shape[0]);
  switch (part.sample.dtype) {
    case DType::u8:
      return draw<uint8_t>(part, to);
    case DType::i32:
      return draw<int32_t>(part, to);
    default:
      return draw<float>(part, to);
  }
}

template <class T>
void ResidentInput::draw(const Part& part, const TensorView& to) {
  const Shape &image = part.sample.shape, &x = to.desc.shape;
  const int64_t tables = part.value_count / 256;
  const int rank = x.rank();
  launch(context_.stream,
         cuda::DrawFrames<T>{rows_, as<augment::Frame>(frames_), as<T>(part.bytes),
                             tables > 0 ? as<float>(part.values) : nullptr, as<float>(part.colours),
                             as<typename cuda::DrawFrames<T>::Value>(to), samples_, image[0],
                             image[1] * image[2], tables, part.changes.count, x[rank - 2],
                             x[rank - 1]},
         x.elements());
}

void ResidentInput::enqueue_samples(const Part& part, const TensorView& to) {
  const int64_t all = to.desc.shape.elements(), features = part.sample.shape.elements();
  const int64_t channels = part.value_count / 256;
  cuda::Stream& stream = context_.stream;
  if (part.changes.count > 0)
    enqueue_frames(part, to);
  else if (part.sample.dtype == DType::i32)
    launch(stream,
           cuda::GatherRows<int32_t>{.rows = rows_,
                                     .data = as<int32_t>(part.bytes),
                                     .x = as<int32_t>(to),
                                     .features = features,
                                     .step = part.step,
                                     .samples = samples_},
           all);
  else if (part.sample.dtype == DType::f32)
    launch(stream,
           cuda::GatherRows<float>{.rows = rows_,
                                   .data = as<float>(part.bytes),
                                   .x = as<float>(to),
                                   .features = features,
                                   .step = part.step,
                                   .samples = samples_},
           all);
  else
    launch(stream,
           cuda::GatherBytes{.rows = rows_,
                             .data = as<uint8_t>(part.bytes),
                             .table = as<float>(part.values),
                             .x = as<float>(to),
                             .features = features,
                             .inner = features / channels,
                             .samples = samples_,
                             .channels = channels},
           all);
}

void ResidentInput::enqueue_input(const GpuBinding& b, size_t, size_t) {
  enqueue_samples(inputs_, b.view(b.program().graph.input));
}

void ResidentInput::enqueue_target(const GpuBinding& b, size_t, size_t) {
  const TensorView to = b.view(b.program().graph.target);
  if (to.data == nullptr) return;
  if (target_is_input_)
    return enqueue_samples(inputs_.bytes.data() != nullptr ? inputs_ : targets_, to);
  const int64_t all = to.desc.shape.elements(), features = all / to.desc.shape[0];
  if (targets_.value_count == 0) return enqueue_samples(targets_, to);
  launch(context_.stream,
         cuda::GatherOfClass{.rows = rows_,
                             .classes = as<int32_t>(targets_.bytes),
                             .values = as<float>(targets_.values),
                             .x = as<float>(to),
                             .features = features,
                             .samples = samples_,
                             .all_classes = targets_.value_count / features},
         all);
}

}  // namespace dpt
