#include "train/device_resident.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace dpt {

using cuda::MemoryKind;

namespace {

template <class T>
const T* as(const cuda::Memory& m) {
  return reinterpret_cast<const T*>(m.data());
}
template <class T>
T* as(const TensorView& v) {
  return reinterpret_cast<T*>(v.data);
}

// By way of pinned memory, a piece after the other.
cuda::Memory upload_bytes(cuda::DeviceContext& c, std::span<const std::byte> bytes) {
  constexpr size_t kPiece = size_t{16} << 20;
  cuda::Memory out(c.api, MemoryKind::device, std::max<size_t>(64, bytes.size()));
  const cuda::Memory pinned(c.api, MemoryKind::pinned,
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

ResidentFeed::ResidentFeed(const FeedRequest& request)
    : context_(request.context),
      samples_(request.feeder.size()),
      order_(context_.api, MemoryKind::device, static_cast<size_t>(samples_) * sizeof(uint32_t)),
      pinned_order_(context_.api, MemoryKind::pinned, order_.bytes()),
      inputs_(upload(request.feeder.stored_inputs(), request.input_bytes > 0)),
      targets_(upload(request.feeder.stored_targets(), request.target_bytes > 0)),
      rows_{as<uint32_t>(order_), context_.state, samples_} {}

ResidentFeed::Part ResidentFeed::upload(const Feeder::Stored& stored, bool fed) {
  if (!fed) return {};
  return {stored.sample, upload_bytes(context_, stored.bytes),
          upload_bytes(context_, std::as_bytes(std::span(stored.values))),
          std::ssize(stored.values)};
}

void ResidentFeed::begin(std::span<const uint32_t> order) {
  require(order.size_bytes() <= order_.bytes(), "an order of at most as many samples as the set");
  std::memcpy(pinned_order_.data(), order.data(), order.size_bytes());
  context_.stream.copy(order_.data(), pinned_order_.data(), order.size_bytes());
}

void ResidentFeed::enqueue_input(const DeviceBinding& b, size_t, size_t) {
  const TensorView to = b.view(b.program().graph.input);
  const int64_t all = to.desc.shape.elements(), features = inputs_.sample.shape.elements();
  const int64_t channels = inputs_.value_count / 256;
  cuda::Stream& stream = context_.stream;
  if (inputs_.sample.dtype == DType::i32)
    launch(stream,
           cuda::GatherRows<int32_t>{rows_, as<int32_t>(inputs_.bytes), as<int32_t>(to), features,
                                     samples_},
           all);
  else if (inputs_.sample.dtype == DType::f32)
    launch(
        stream,
        cuda::GatherRows<float>{rows_, as<float>(inputs_.bytes), as<float>(to), features, samples_},
        all);
  else
    launch(stream,
           cuda::GatherBytes{rows_, as<uint8_t>(inputs_.bytes), as<float>(inputs_.values),
                             as<float>(to), features, features / channels, samples_, channels},
           all);
}

void ResidentFeed::enqueue_target(const DeviceBinding& b, size_t, size_t) {
  const TensorView to = b.view(b.program().graph.target);
  if (to.data == nullptr) return;
  const int64_t all = to.desc.shape.elements(), features = all / to.desc.shape[0];
  cuda::Stream& stream = context_.stream;
  const auto* const classes = as<int32_t>(targets_.bytes);
  if (targets_.value_count > 0)
    launch(stream,
           cuda::GatherOfClass{rows_, classes, as<float>(targets_.values), as<float>(to), features,
                               samples_, targets_.value_count / features},
           all);
  else if (targets_.sample.dtype == DType::i32)
    launch(stream, cuda::GatherRows<int32_t>{rows_, classes, as<int32_t>(to), features, samples_},
           all);
  else
    launch(stream,
           cuda::GatherRows<float>{rows_, as<float>(targets_.bytes), as<float>(to), features,
                                   samples_},
           all);
}

}  // namespace dpt
