// The gradient of an embedding, for more uses than a block sorts.
#include "backend/cuda/kernels/uses.h"

#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cuda/on_fakes.h"
#include "graph/attrs.h"

namespace dpt::cuda {
namespace {

TEST_CASE("the gradient of an embedding has the reference's bits for any number of uses") {
  std::mt19937 random(1);
  constexpr int64_t kRun = SortUses::kRun, kWidth = 3;
  for (const int64_t uses : {int64_t{1}, kRun - 1, kRun, kRun + 1, 2 * kRun, 3 * kRun + 5})
    for (const int64_t rows : {1, 2, 5000}) {
      CAPTURE(uses);
      CAPTURE(rows);
      const KernelQuery q{"embedding_gradient",
                          {{DType::f32, {uses, kWidth}}, {DType::i32, {uses}}},
                          {{DType::f32, {rows, kWidth}}},
                          Embedding{.padding_idx = rows / 2, .rows = rows}};
      std::vector<HostTensor> in = {HostTensor(q.in[0]), HostTensor(q.in[1])};
      for (size_t i = 0; i < in[0].size(); ++i)
        in[0].set(i, std::normal_distribution<double>()(random));
      // Half of the uses are of two rows: the sums are long.
      for (size_t i = 0; i < in[1].size(); ++i)
        in[1].set(i, static_cast<double>(random() % static_cast<uint64_t>(i % 2 ? rows : 2) %
                                         static_cast<uint64_t>(rows)));
      std::vector<HostTensor> expected = run_reference(op(q.op), in, q.attrs);
      CHECK(run_on_fakes(q, in).out.at(0).storage == expected[0].storage);
    }
}

TEST_CASE("uses of rows out of range change no row") {
  const KernelQuery q{"embedding_gradient",
                      {{DType::f32, {4, 1}}, {DType::i32, {4}}},
                      {{DType::f32, {2, 1}}},
                      Embedding{.rows = 2}};
  std::vector<HostTensor> in = {HostTensor(q.in[0]), HostTensor(q.in[1])};
  for (size_t i = 0; i < 4; ++i) in[0].set(i, 1);
  for (const auto& [i, row] : {std::pair{0, -1}, {1, 2}, {2, 1}, {3, INT32_MAX}})
    in[1].set(static_cast<size_t>(i), row);
  std::vector<HostTensor> dw = run_on_fakes(q, in).out;
  CHECK(dw.at(0).get(0) == 0);
  CHECK(dw.at(0).get(1) == 1);
}

}  // namespace
}  // namespace dpt::cuda
