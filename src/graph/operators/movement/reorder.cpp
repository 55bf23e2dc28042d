// reorder: converts a value to another memory layout (base/tensor.h). choose_layouts() inserts it
// after differentiation, so it has no gradient.
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any& attrs) {
  TensorDesc out = in[0];
  out.layout = settings<Reorder>(attrs).layout;
  return {out};
}

void reference(const KernelArgs& args, const std::any&) {
  const TensorDesc& x = args.in[0].desc;
  copy_layout(x.shape, size_of(x.dtype), x.layout, args.in[0].data, args.out[0].desc.layout,
              args.out[0].data);
}

std::vector<Sample> samples() {
  std::vector<Sample> out;
  for (const Shape& s : {Shape{2, 3, 4, 5}, Shape{1, 17, 33}, Shape{3, 19, 7, 1}}) {
    const TensorDesc plain = f32(s), last{DType::f32, s, Layout::channels_last};
    out.push_back({{"reorder", {plain}, {last}, Reorder{Layout::channels_last}}});
    out.push_back({{"reorder", {last}, {plain}, Reorder{Layout::plain}}});
  }
  return out;
}

double no_flops(std::span<const TensorDesc>, std::span<const TensorDesc>) { return 0; }

}  // namespace

OperatorType reorder() {
  OperatorType out = {.name = "reorder",
                      .precision = Precision::follow,
                      .infer = infer,
                      .reference = reference,
                      .samples = samples,
                      .flops = no_flops};
  out.halves = true;
  return out;
}

}  // namespace dpt::operators
