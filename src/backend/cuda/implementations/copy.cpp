// The GPU implementations of operators that move elements: layouts, permutations, slices, padding,
// concatenation, embeddings and position embeddings.
#include "backend/cuda/kernels/copy.h"

#include "backend/cuda/implementations/kernels.h"
#include "backend/cuda/implementations/support.h"
#include "backend/cuda/interface/launch.h"
#include "backend/cuda/kernels/uses.h"
#include "graph/attrs.h"

namespace dpt::cuda {
namespace {

std::string refuses(const KernelQuery& q) {
  const size_t size = size_of(q.in[0].dtype);
  for (const TensorDesc& d : q.in)
    if (d.dtype != q.in[0].dtype) return not_one_type(q);
  return size == 4 || size == 2 ? "" : fmt::format("it does not copy {}", name_of(q.in[0].dtype));
}

// Coordinates of `from` minus `before` are coordinates of `to`.
Box box_of(const TensorDesc& from, const TensorDesc& to,
           std::span<const int64_t> before = std::span<const int64_t>()) {
  Box box{};
  box.rank = from.shape.rank();
  const auto step = strides_of(from.shape, from.layout), other = strides_of(to.shape, to.layout);
  for (int i = 0; i < box.rank; ++i) {
    const auto d = static_cast<size_t>(i);
    box.extent[i] = from.shape[i];
    box.step[i] = step[d];
    box.before[i] = before.empty() ? 0 : before[d];
    box.other_extent[i] = to.shape[i];
    box.other_step[i] = other[d];
  }
  box.other_elements = count(to);
  return box;
}

// Calls f with an unsigned value as large as the first input's elements.
template <class F>
auto with_size(const KernelQuery& q, F f) {
  return size_of(q.in[0].dtype) == 2 ? f(uint16_t{}) : f(uint32_t{});
}

template <class T>
T bits_of(DType t, double value) {
  const auto x = static_cast<float>(value);
  if constexpr (sizeof(T) == 4)
    return std::bit_cast<T>(x);
  else
    return t == DType::bf16 ? to_bf16(x) : to_f16(x);
}

// Elements outside of x become `value`.
std::unique_ptr<Kernel> take(const KernelQuery& q, const Box& box, double value = 0) {
  return with_size(q, [&]<class T>(T) {
    return enqueue([box, n = count(q.out[0]), v = bits_of<T>(q.in[0].dtype, value)](
                       const KernelArgs& a, DeviceContext& c) {
      launch(c.stream, Take<T>{box, at<T>(a.in[0]), at<T>(a.out[0]), v}, n);
    });
  });
}

std::unique_ptr<Kernel> copy(const KernelQuery& q) {
  return enqueue([bytes = q.in[0].bytes()](const KernelArgs& a, DeviceContext& c) {
    c.stream.copy(a.out[0].data, a.in[0].data, bytes);
  });
}

std::unique_ptr<Kernel> reorder(const KernelQuery& q) { return take(q, box_of(q.out[0], q.in[0])); }

std::unique_ptr<Kernel> pad(const KernelQuery& q) {
  const auto s = settings<Pad>(q);
  return take(q, box_of(q.out[0], q.in[0], s.before), s.value);
}

std::unique_ptr<Kernel> permute(const KernelQuery& q) {
  const auto& order = settings<Permute>(q).order;
  const auto step = strides_of(q.in[0].shape, q.in[0].layout);
  Box box = box_of(q.out[0], q.out[0]);
  for (int i = 0; i < box.rank; ++i)
    box.other_step[i] = step[static_cast<size_t>(order[static_cast<size_t>(i)])];
  return take(q, box);
}

// In x the slice begins at `begin`; in the gradient dy does.
std::unique_ptr<Kernel> slice(const KernelQuery& q) {
  const auto s = settings<SliceOf>(q);
  std::array<int64_t, kMostExtents> before{};
  before[static_cast<size_t>(s.dim)] = is_gradient(q) ? s.begin : -s.begin;
  return take(q, box_of(q.out[0], q.in[0], before));
}

std::unique_ptr<Kernel> concat(const KernelQuery& q) {
  const auto dim = static_cast<size_t>(settings<Concat>(q).dim);
  std::vector<Box> boxes;
  std::array<int64_t, kMostExtents> before{};
  for (const TensorDesc& x : q.in) {
    boxes.push_back(box_of(x, q.out[0], before));
    before[dim] -= x.shape[static_cast<int>(dim)];
  }
  return with_size(q, [&]<class T>(T) {
    return enqueue([boxes](const KernelArgs& a, DeviceContext& c) {
      for (size_t i = 0; i < boxes.size(); ++i)
        launch(c.stream, Give<T>{boxes[i], at<T>(a.in[i]), at<T>(a.out[0])}, count(a.in[i].desc));
    });
  });
}

std::string refuses_embedding(const KernelQuery& q) {
  return q.in[1].dtype != q.out[0].dtype ? "its output must have the type of its weight" : "";
}
std::unique_ptr<Kernel> embedding(const KernelQuery& q) {
  const int64_t rows = q.in[1].shape[0], width = q.in[1].shape[1];
  return with_number(q.in[1].dtype, [&]<class T>(T) {
    return enqueue([=, n = count(q.out[0])](const KernelArgs& a, DeviceContext& c) {
      launch(
          c.stream,
          TakeRows<T>{at<int32_t>(a.in[0]), at<T>(a.in[1]), at<T>(a.out[0]), width, rows, c.state},
          n);
    });
  });
}

std::string refuses_embedding_gradient(const KernelQuery& q) {
  return q.out[0].dtype != DType::f32 ? "it makes f32" : "";
}
// The scratch memory of a sort of `uses` uses of `rows` rows.
struct UsePlan {
  int64_t uses, rows;
  size_t list_bytes() const { return aligned(sizeof(uint64_t) * static_cast<size_t>(uses)); }
  size_t bytes() const {
    return 2 * list_bytes() + sizeof(uint32_t) * static_cast<size_t>(rows + 1);
  }
};
struct SortedUses {
  const uint64_t* sorted;
  const uint32_t* begin;
};
// Enqueues the sort. REQUIRES: plan.bytes() of workspace are reserved.
SortedUses sort_uses(DeviceContext& c, const UsePlan& plan, const int32_t* index, int64_t padding) {
  auto* sorted = reinterpret_cast<uint64_t*>(c.workspace);
  auto* other = reinterpret_cast<uint64_t*>(c.workspace + plan.list_bytes());
  auto* begin = reinterpret_cast<uint32_t*>(c.workspace + 2 * plan.list_bytes());
  launch(c.stream,
         SortUses{.index = index,
                  .sorted = sorted,
                  .uses = plan.uses,
                  .rows = plan.rows,
                  .padding = padding},
         SortUses::runs(plan.uses));
  for (int bits = SortUses::kRunBits; int64_t{1} << bits < plan.uses; ++bits) {
    launch(c.stream, MergeUses{.from = sorted, .to = other, .uses = plan.uses, .bits = bits},
           plan.uses);
    std::swap(sorted, other);
  }
  launch(c.stream, FindUses{.sorted = sorted, .begin = begin, .uses = plan.uses}, plan.rows + 1);
  return {sorted, begin};
}

std::unique_ptr<Kernel> embedding_gradient(const KernelQuery& q) {
  const int64_t width = q.out[0].shape[1];
  const UsePlan plan{.uses = count(q.in[1]), .rows = q.out[0].shape[0]};
  const int64_t padding = settings<Embedding>(q).padding_idx;
  DeviceContext::current().reserve(plan.bytes());
  return with_number(q.in[0].dtype, [&]<class T>(T) {
    return enqueue([=](const KernelArgs& a, DeviceContext& c) {
      const auto [sorted, begin] = sort_uses(c, plan, at<int32_t>(a.in[1]), padding);
      launch(c.stream,
             SumUses<T>{at<T>(a.in[0]), sorted, begin, at<float>(a.out[0]), plan.uses, width,
                        plan.rows},
             plan.rows * SumUses<T>::pieces(width));
    });
  });
}

std::unique_ptr<Kernel> position_embedding(const KernelQuery& q) {
  return with_number(q.in[0].dtype, [&]<class T>(T) {
    return enqueue([n = count(q.out[0]), sample = q.in[0].shape.tail(1).elements()](
                       const KernelArgs& a, DeviceContext& c) {
      launch(c.stream, AddRepeated<T>{at<T>(a.in[0]), at<T>(a.in[1]), at<T>(a.out[0]), sample}, n);
    });
  });
}

// Each sample is a row of the sum. Rows of the weight behind the last position get 0.
std::unique_ptr<Kernel> position_embedding_gradient(const KernelQuery& q) {
  const Rows rows{
      .columns = q.in[0].shape.tail(1).elements(), .inner = 1, .elements = count(q.in[0])};
  const ColumnPlan plan(q.in[0].shape[0], rows.columns);
  const auto used = static_cast<size_t>(rows.columns) * sizeof(float);
  DeviceContext::current().reserve(plan.bytes(1));
  return with_number(q.in[0].dtype, [&]<class T>(T) {
    return enqueue([=, all = q.out[0].bytes()](const KernelArgs& a, DeviceContext& c) {
      if (all > used) c.stream.fill(a.out[0].data + used, 0, all - used);
      sum_columns<ColumnTerm<T>, float>(c, plan, {rows, at<T>(a.in[0])}, {at<float>(a.out[0])});
    });
  });
}

}  // namespace

std::vector<KernelType> copy_rows() {
  const auto takes_all = [](const KernelQuery&) { return std::string(); };
  // A GPU has one shard, so the sum over its shards is a copy.
  return {
      own("copy", takes_all, copy),
      own("all_reduce", takes_all, copy),
      own("reorder", refuses, reorder),
      own("pad", refuses, pad),
      own("permute", refuses, permute),
      own("slice", refuses, slice),
      own("slice_gradient", refuses, slice),
      own("concat", refuses, concat),
      own("embedding", refuses_embedding, embedding),
      own("embedding_gradient", refuses_embedding_gradient, embedding_gradient),
      own("position_embedding", not_one_type, position_embedding),
      own("position_embedding_gradient", refuses_embedding_gradient, position_embedding_gradient)};
}

}  // namespace dpt::cuda
