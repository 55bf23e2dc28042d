#include "backend/cpu/kernels.h"

#include <algorithm>
#include <array>

#include "backend/cpu/simd/simd.h"
#include "base/half.h"
#include "graph/operator.h"

namespace dpt {
namespace {

class Reference : public Kernel {
 public:
  explicit Reference(const KernelQuery& query) : type_(op(query.op)), attrs_(query.attrs) {}
  void run(const KernelArgs& args) override { type_.reference(args, attrs_); }

 private:
  const OperatorType& type_;
  std::any attrs_;
};

KernelType reference_row() {
  return {.op = "",
          .name = "reference",
          .refuses = [](const KernelQuery& q) -> std::string {
            const auto half = [](const TensorDesc& d) { return is_half(d.dtype); };
            if (op(q.op).is(Trait::halves)) return "";
            return std::ranges::any_of(q.in, half) || std::ranges::any_of(q.out, half)
                       ? "the reference implementation does not support half precision"
                       : "";
          },
          .prepare = [](const KernelQuery& query) -> std::unique_ptr<Kernel> {
            return std::make_unique<Reference>(query);
          },
          .by_sample = true};
}

void append(std::vector<KernelType>& list, const std::vector<KernelType>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

std::vector<KernelType> list_for(Bf16Products products) {
  std::vector<KernelType> out = linear_kernels(products);
  append(out, attention_kernels(products));
  for (auto* more : {&batch_norm_kernels, &row_norm_kernels, &half_kernels, &elementwise_kernels,
                     &softmax_kernels, &ctc_kernels, &gated_kernels, &movement_kernels,
                     &image_kernels, &resize_kernels})
    append(out, more());
  append(out, gemm_convolution_kernels(products));
  append(out, onednn_kernels());
  append(out, onednn_convolution_kernels(products));
  out.push_back(reference_row());
  return out;
}

}  // namespace

KernelType simd_row(std::string_view op, std::string (*refuses)(const KernelQuery&),
                    std::unique_ptr<Kernel> (*prepare)(const KernelQuery&), bool rounds) {
  return {.op = op,
          .name = simd_kernels().name,
          .refuses = refuses,
          .prepare = prepare,
          .by_sample = true,
          .rounds = rounds};
}

std::span<const KernelType> cpu_kernels(Bf16Products products) {
  static const std::array<std::vector<KernelType>, 3> lists = {list_for(Bf16Products::automatic),
                                                               list_for(Bf16Products::fma),
                                                               list_for(Bf16Products::instruction)};
  return lists[static_cast<size_t>(products)];
}

std::span<const KernelType> reference_kernels() {
  static const std::vector<KernelType> all = {reference_row()};
  return all;
}

}  // namespace dpt
