// The text that names a kept plan has every field of its description.
#include "backend/cuda/interface/work_text.h"

#include <set>
#include <string>

#include <doctest/doctest.h>

namespace dpt::cuda {
namespace {

// Each change is made to a description of its own.
template <class Description, class... Change>
void differ(const Description& d, Change... change) {
  std::set<std::string> texts = {all_of(d)};
  const auto changed = [&](auto c) {
    Description other = d;
    c(other);
    CHECK_MESSAGE(texts.insert(all_of(other)).second, all_of(other));
  };
  (changed(change), ...);
}

void change_window(Window& w, int what) {
  Extents* const all[] = {&w.kernel, &w.stride, &w.dilation, &w.before, &w.behind};
  (*all[what / 3])[static_cast<size_t>(what % 3)] += 2;
}

TEST_CASE("descriptions that differ in any field differ in their text") {
  using C = DnnConvolution;
  differ(
      C{.x = {2, 3, 8, 8}, .w = {4, 3, 3, 3}, .y = {2, 4, 6, 6}},
      [](C& c) { c.pass = ConvolutionPass::input_gradient; },
      [](C& c) {
        c.x = {1, 3, 8, 8};
      },
      [](C& c) {
        c.w = {4, 3, 3, 1};
      },
      [](C& c) {
        c.y = {2, 4, 6, 5};
      },
      [](C& c) { c.groups = 3; }, [](C& c) { c.in = DType::f16; }, [](C& c) { c.out = DType::f16; },
      [](C& c) { c.tf32 = true; }, [](C& c) { c.bias = true; }, [](C& c) { c.relu = true; });
  using N = DnnNorm;
  differ(
      N{.x = {2, 3, 8, 8}}, [](N& n) { n.kind = NormKind::layer; },
      [](N& n) { n.pass = DnnPass::backward; },
      [](N& n) {
        n.x = {2, 3, 8, 7};
      },
      [](N& n) { n.type = DType::bf16; }, [](N& n) { n.eps = 1.0000001e-5; },
      [](N& n) { n.add = true; }, [](N& n) { n.relu = true; }, [](N& n) { n.sum = true; });
  using P = DnnPool;
  differ(
      P{.x = {2, 3, 8, 8}, .y = {2, 3, 4, 4}}, [](P& p) { p.kind = PoolKind::mean; },
      [](P& p) { p.pass = DnnPass::backward; },
      [](P& p) {
        p.x = {2, 3, 8, 7};
      },
      [](P& p) {
        p.y = {2, 3, 4, 3};
      },
      [](P& p) { p.type = DType::f16; });
  using A = DnnAttention;
  differ(
      A{.samples = 2, .positions = 3, .heads = 4, .columns = 8},
      [](A& a) { a.pass = DnnPass::backward; }, [](A& a) { a.samples = 3; },
      [](A& a) { a.positions = 2; }, [](A& a) { a.heads = 8; }, [](A& a) { a.columns = 4; },
      [](A& a) { a.causal = true; }, [](A& a) { a.type = DType::bf16; },
      [](A& a) { a.workspace = 1; });
  std::set<std::string> windows;
  for (int what = 0; what < 15; ++what) {
    C c;
    P p;
    change_window(c.window, what);
    change_window(p.window, what);
    CHECK(windows.insert(all_of(c)).second);
    CHECK(windows.insert(all_of(p)).second);
  }
}

}  // namespace
}  // namespace dpt::cuda
