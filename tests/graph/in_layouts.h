// Operators in the layouts that choose_layouts() gives them.
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include "graph/interpret.h"
#include "graph/operator.h"

namespace dpt {

inline KernelQuery in_layouts(KernelQuery q) {
  const OperatorType& type = op(q.op);
  for (size_t i = 0; i < q.in.size() + q.out.size(); ++i) {
    TensorDesc& d = i < q.in.size() ? q.in[i] : q.out[i - q.in.size()];
    const bool image =
        type.layouts == Layouts::images && d.shape.rank() >= 3 && d.shape.rank() <= 5;
    d.layout = std::cmp_equal(i, type.weight.index) ? Layout::transposed
               : image                              ? Layout::channels_last
                                                    : Layout::plain;
  }
  return q;
}

inline HostTensor in_layout(HostTensor& t, Layout layout) {
  HostTensor out({t.desc.dtype, t.desc.shape, layout});
  copy_layout(t.desc.shape, size_of(t.desc.dtype), t.desc.layout, t.view().data, layout,
              out.view().data);
  return out;
}

inline std::vector<HostTensor> run_kernel(const KernelType& row, const KernelQuery& q,
                                          std::vector<HostTensor>& in,
                                          const StepContext& context = {}) {
  std::vector<HostTensor> out;
  std::vector<TensorView> from, to;
  for (HostTensor& t : in) from.push_back(t.view());
  for (const TensorDesc& d : q.out) out.emplace_back(d);
  for (HostTensor& t : out) {
    for (size_t i = 0; i < t.size(); ++i) t.set(i, NAN);
    to.push_back(t.view());
  }
  row.prepare(q)->run({from, to, &context});
  return out;
}

}  // namespace dpt
