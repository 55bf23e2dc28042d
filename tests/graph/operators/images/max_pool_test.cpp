#include <cmath>

#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("max_pool gives the largest of each window and where it lies in its plane") {
  const Given x{f32({1, 1, 3, 4}), {1, 2, 9, 9, 5, 5, 0, 9, -1, -2, -3, -4}};
  const Pool s{{.kernel = {1, 2, 2}, .stride = {1, 1, 2}}};
  CHECK(run_op("max_pool", {x}, s) == std::vector<double>{5, 9, 5, 9});
  CHECK(run_op("max_pool", {x}, s, {}, 1) == std::vector<double>{4, 2, 4, 7});
}

TEST_CASE("padding is never the largest, and nan always is") {
  const Pool s{
      {.kernel = {1, 1, 3}, .stride = {1, 1, 2}, .before = {0, 0, 1}, .behind = {0, 0, 1}}};
  CHECK(run_op("max_pool", {{f32({1, 1, 4}), {-5, -6, -7, -8}}}, s) == std::vector<double>{-5, -6});
  const auto y = run_op("max_pool", {{f32({1, 1, 4}), {1, NAN, 3, 4}}}, s);
  CHECK(std::isnan(y[0]));
  CHECK(std::isnan(y[1]));
}

TEST_CASE("max_pool_bytes gives where the largest lies in its window") {
  const Given x{f32({1, 1, 3, 4}), {1, 2, 9, 9, 5, 5, 0, 9, -1, -2, -3, -4}};
  const Pool s{{.kernel = {1, 2, 2}, .stride = {1, 1, 2}, .before = {0, 0, 1}}};
  CHECK(run_op("max_pool_bytes", {x}, s) == std::vector<double>{5, 9, 5, 5});
  CHECK(run_op("max_pool_bytes", {x}, s, {}, 1) == std::vector<double>{3, 1, 1, 0});
  const Given dy{f32({1, 1, 1, 2}), {1, 2}}, indices{{DType::u8, {1, 1, 1, 2}}, {3, 0}};
  Pool back = s;
  back.extents = {1, 2, 3};
  CHECK(run_op("max_pool_bytes_gradient", {dy, indices}, back) ==
        std::vector<double>{0, 2, 0, 1, 0, 0});
}

TEST_CASE("max_pool's gradient goes to the index, once for each window") {
  const Given dy{f32({1, 1, 1, 3}), {1, 2, 4}}, indices{i32({1, 1, 1, 3}), {1, 1, 3}};
  CHECK(run_op("max_pool_gradient", {dy, indices}, Pool{.extents = {1, 2, 2}}) ==
        std::vector<double>{0, 3, 0, 4});
}

TEST_CASE("max_pool's window that lies wholly in the padding gives -inf and has no gradient") {
  Pool s{{.kernel = {1, 1, 2},
          .stride = {1, 1, 1},
          .dilation = {1, 1, 3},
          .before = {0, 0, 1},
          .behind = {0, 0, 1}}};
  const Given x{f32({1, 1, 2}), {3, 4}}, dy{f32({1, 1, 1}), {5}};
  CHECK(run_op("max_pool", {x}, s) == std::vector<double>{-INFINITY});
  const std::vector<double> index = run_op("max_pool", {x}, s, {}, 1);
  s.extents = {1, 1, 2};
  CHECK(run_op("max_pool_gradient", {dy, {i32({1, 1, 1}), index}}, s) == std::vector<double>{0, 0});
}

TEST_CASE("adaptive_max_pool takes the largest of each piece, and its index in the channel") {
  const Given x{f32({1, 1, 5}), {1, 5, 3, 4, 2}};
  CHECK(run_op("adaptive_max_pool", {x}, Resize{{1, 1, 2}}) == std::vector<double>{5, 4});
  CHECK(run_op("adaptive_max_pool", {x}, Resize{{1, 1, 2}}, {}, 1) == std::vector<double>{1, 3});
  const Given image{f32({1, 1, 2, 2}), {1, 2, 4, 3}};
  CHECK(run_op("adaptive_max_pool", {image}, Resize{{1, 1, 1}}, {}, 1) == std::vector<double>{2});
}

TEST_CASE("adaptive_max_pool takes the first of equal elements, and nan before all others") {
  const Given same{f32({1, 1, 3}), {2, 2, 2}}, none{f32({1, 1, 3}), {1, NAN, 3}};
  CHECK(run_op("adaptive_max_pool", {same}, Resize{{1, 1, 1}}, {}, 1) == std::vector<double>{0});
  CHECK(std::isnan(run_op("adaptive_max_pool", {none}, Resize{{1, 1, 1}})[0]));
}

TEST_CASE("adaptive_max_pool's gradient sums where pieces share their largest element") {
  const Given dy{f32({1, 1, 2}), {1, 2}}, indices{i32({1, 1, 2}), {2, 2}};
  CHECK(run_op("adaptive_max_pool_gradient", {dy, indices}, Resize{{1, 1, 5}}) ==
        std::vector<double>{0, 0, 3, 0, 0});
}

TEST_CASE("adaptive_max_pool refuses empty images") {
  CHECK(refusal("adaptive_max_pool", {f32({1, 1, 0})}, Resize{{1, 1, 1}}) ==
        "adaptive_max_pool: an empty image has no maximum, [1, 1, 0] to [1, 1, 1]");
}

}  // namespace dpt
