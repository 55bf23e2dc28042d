// embedding: y[N, ..., E] = the rows of w[R, E] with indices i32[N, ...].
//   embedding_gradient(dy, indices) -> dw[R, E]: for each row the sum of dy over its uses, in the
//   order of samples; 0 for padding_idx
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

Shape with_row(const Shape& indices, int64_t width) {
  std::vector<int64_t> extents(indices.extents().begin(), indices.extents().end());
  extents.push_back(width);
  return Shape(extents);
}

void need_indices(const TensorDesc& d) {
  if (d.dtype != DType::i32) fail(Fault::spec, "embedding: takes indices (i32), not {}", str(d));
  if (d.shape.rank() >= Shape::kMaxRank)
    fail(Fault::spec, "embedding: indices {} have too many dimensions", d.shape.str());
}

std::vector<TensorDesc> infer(std::span<const TensorDesc> in) {
  need_indices(in[0]);
  need_real("embedding", in[1]);
  if (in[1].shape.rank() != 2)
    fail(Fault::spec, "embedding: indices {} need a weight [R, E], not {}", in[0].shape.str(),
         in[1].shape.str());
  return {{in[1].dtype, with_row(in[0].shape, in[1].shape[1])}};
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in, const Embedding& attrs) {
  need_indices(in[1]);
  require(in[0].shape == with_row(in[1].shape, in[0].shape.back()),
          "embedding_gradient: dy has a row for each index");
  return {{full(in[0].dtype), {attrs.rows, in[0].shape.back()}}};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  Embedding attrs = settings<Embedding>(n.attrs);
  attrs.rows = g.shape(n.in[1])[0];
  return {kNoValue, g.apply("embedding_gradient", {dy[0], n.in[0]}, attrs)};
}

// The i-th of the indices of so many samples. Throws Error{data} with the number of its sample if
// it is out of range.
int64_t row_at(std::span<const int32_t> indices, size_t i, int64_t samples, int64_t rows) {
  const int32_t row = indices[i];
  if (row < 0 || row >= rows)
    fail(Fault::data, "embedding: index {} of sample {} in its batch is not in [0, {})", row,
         static_cast<int64_t>(i) / (std::ssize(indices) / samples), rows);
  return row;
}

void forward(const KernelArgs& args) {
  with_type_of(args.in[1], [&]<class T>(T) {
    const auto w = args.in[1].as<const T>();
    const auto y = args.out[0].as<T>();
    const int64_t rows = args.in[1].desc.shape[0];
    const auto width = static_cast<size_t>(args.in[1].desc.shape[1]);
    const auto indices = args.in[0].as<const int32_t>();
    for (size_t i = 0; i < indices.size(); ++i) {
      const auto row = static_cast<size_t>(row_at(indices, i, args.in[0].desc.shape[0], rows));
      for (size_t e = 0; e < width; ++e) y[i * width + e] = w[row * width + e];
    }
  });
}

void backward(const KernelArgs& args, const Embedding& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto dy = args.in[0].as<const T>();
    const auto dw = args.out[0].as<T>();
    const int64_t rows = args.out[0].desc.shape[0], padding = attrs.padding_idx;
    const auto width = static_cast<size_t>(args.out[0].desc.shape[1]);
    const auto indices = args.in[1].as<const int32_t>();
    std::vector<double> sum(dw.size());
    for (size_t i = 0; i < indices.size(); ++i) {
      const int64_t row = row_at(indices, i, args.in[1].desc.shape[0], rows);
      if (row == padding) continue;
      for (size_t e = 0; e < width; ++e)
        sum[static_cast<size_t>(row) * width + e] += static_cast<double>(dy[i * width + e]);
    }
    for (size_t i = 0; i < dw.size(); ++i) dw[i] = static_cast<T>(sum[i]);
  });
}

}  // namespace

Operators embedding() {
  return {{.name = "embedding",
           .precision = Precision::follow,
           .infer = typed<infer>,
           .gradient = gradient,
           .reference = typed<forward>,
           .traits = Trait::indexes_rows | Trait::selects},
          {.name = "embedding_gradient",
           .precision = Precision::follow,
           .infer = typed<infer_gradient>,
           .reference = typed<backward>,
           .traits = Trait::backward}};
}

}  // namespace dpt::operators
