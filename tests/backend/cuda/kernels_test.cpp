// Every row of the list for GPUs against the operator's plain loops: on the operator's samples and
// on shapes fuzzed from them, in the layouts that GPUs have, in f32 and in halves; on the fake GPU
// in three orders of threads, and on a real one where it is there.
#include "backend/cuda/kernels.h"

#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <set>

#include <doctest/doctest.h>

#include "backend/cuda/load.h"
#include "backend/cuda/on_device.h"
#include "graph/fuzzed_samples.h"
#include "graph/in_layouts.h"

namespace dpt::cuda {
namespace {

const StepContext kStep{.seed = 7, .step = 3, .first_sample = 11};

// Images and their weights channels_last.
KernelQuery laid_out(KernelQuery q) {
  q = in_layouts(q);
  for (auto* side : {&q.in, &q.out})
    for (TensorDesc& d : *side)
      if (d.layout == Layout::transposed)
        d.layout = d.shape.rank() > 2 ? Layout::channels_last : Layout::plain;
  return q;
}

// In a half: all numbers, or only what has the shape of the first input, as where weights stay f32.
std::optional<KernelQuery> in_half(KernelQuery q, DType half, bool all) {
  for (TensorDesc& d : q.in)
    if (d.dtype == DType::f32 && (all || d.shape == q.in[0].shape)) d.dtype = half;
  if (std::any_cast<Cast>(&q.attrs)) return {};
  if (q.op == "attention_gradient") q.in[3].dtype = DType::f32;  // sums of softmax
  try {
    const auto out = op(q.op).infer(q.in, q.attrs);
    for (size_t i = 0; i < out.size(); ++i) q.out[i].dtype = out[i].dtype;
  } catch (const Error&) {
    return {};
  }
  return q;
}

HostTensor as(HostTensor& t, DType type) {
  HostTensor out({type, t.desc.shape, t.desc.layout});
  for (size_t i = 0; i < t.size(); ++i) out.set(i, t.get(i));
  return out;
}

bool is_places_gradient(const KernelQuery& q) {
  return q.op == "max_pool_gradient" || q.op == "max_pool_bytes_gradient";
}

// A place of max_pool's is inside of its window.
void make_places(const Sample& s, HostTensor& places, std::mt19937& random) {
  const auto& pool = std::any_cast<const Pool&>(s.query.attrs);
  const std::string_view pools = s.query.in[1].dtype == DType::u8 ? "max_pool_bytes" : "max_pool";
  Sample forward{{pools, {s.query.out[0]}, {}, pool}};
  std::vector<HostTensor> x = {sample_input(forward, 0, DType::f32, random)};
  places = run_reference(op(pools), x, s.query.attrs)[1];
}

// What a kernel makes of its inputs, each time the same bits.
using Run = std::function<std::vector<HostTensor>(const KernelType& row, const KernelQuery& q,
                                                  std::vector<HostTensor>& in)>;

// A mask of relu's, which only its maker understands, and only a library makes.
bool opaque(const KernelQuery& q, size_t result) {
  return q.op == "linear_relu_mask" && result == 1;
}

void same_bits(const KernelQuery& q, std::vector<HostTensor>& a, std::vector<HostTensor>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (!opaque(q, i))
      REQUIRE(std::memcmp(a[i].view().data, b[i].view().data, a[i].desc.bytes()) == 0);
}

std::vector<HostTensor> run_on_fakes(const KernelType& row, const KernelQuery& q,
                                     std::vector<HostTensor>& in) {
  std::vector<HostTensor> got;
  for (const ThreadOrder order :
       {ThreadOrder::forward, ThreadOrder::reverse, ThreadOrder::shuffled}) {
    FakeApi api({.order = order, .strict = true});
    std::vector<HostTensor> again = run_on(api, row, q, in, kStep);
    if (got.empty())
      got = std::move(again);
    else
      same_bits(q, got, again);
  }
  return got;
}

class Conformance {
 public:
  explicit Conformance(Run run) : run_(std::move(run)) {}
  void compare(const Sample& s) {
    const OperatorType& type = op(s.query.op);
    std::vector<HostTensor> in;
    for (size_t i = 0; i < s.query.in.size(); ++i)
      in.push_back(sample_input(s, i, DType::f32, random_));
    if (is_places_gradient(s.query)) make_places(s, in[1], random_);
    if (s.query.op == "matmul_relu_gradient") make_mask(in[2], in[3]);
    compare(s.query, in, 1e-5);
    if (type.name == "reorder") return;  // its samples say how they lie
    compare(laid_out(s.query), in, 1e-5);
    for (const DType half : {DType::bf16, DType::f16})
      for (const bool all : {false, true}) {
        const auto q = in_half(laid_out(s.query), half, all);
        // Four steps of a half, relative to the largest: results are rounded once, but those of
        // `add` after each of up to five inputs, and some sums are of numbers that were rounded.
        if (q) compare(*q, in, half == DType::bf16 ? 0x1p-6 : 0x1p-8);
      }
  }
  const std::map<std::string, std::set<DType>>& compared() const { return compared_; }
  int count() const { return count_; }

 private:
  // By the product y = relu(y I).
  void make_mask(HostTensor& y, HostTensor& mask) {
    const int64_t n = y.desc.shape.back();
    std::vector<HostTensor> in = {y, HostTensor({DType::f32, {n, n}})};
    for (size_t i = 0; i < static_cast<size_t>(n); ++i)
      in[1].set(i * static_cast<size_t>(n) + i, 1);
    const KernelQuery q{"linear_relu_mask", {y.desc, in[1].desc}, {y.desc, mask.desc}, {}};
    for (const KernelType& row : cuda_kernels())
      if (row.op == q.op && row.refuses(q).empty()) {
        mask = run_(row, q, in)[1];
        return;
      }
  }

  void compare(const KernelQuery& q, std::vector<HostTensor>& values, double tolerance) {
    const OperatorType& type = op(q.op);
    std::vector<HostTensor> in, wide;
    for (size_t i = 0; i < values.size(); ++i) {
      HostTensor typed = as(values[i], q.in[i].dtype);
      // The plain loops get the numbers of the half as f32, where they do not take halves.
      wide.push_back(is_half(q.in[i].dtype) && !type.halves ? as(typed, DType::f32)
                                                            : HostTensor(typed));
      in.push_back(in_layout(typed, q.in[i].layout));
    }
    std::vector<HostTensor> expected = run_reference(type, wide, q.attrs, kStep);
    for (const KernelType& row : cuda_kernels()) {
      if (row.op != q.op || !row.refuses(q).empty()) continue;
      CAPTURE(q.op);
      CAPTURE(row.name);
      CAPTURE(name_of(q.in[0].dtype));
      CAPTURE(q.in[0].shape.str());
      std::vector<HostTensor> got = run_(row, q, in);
      for (size_t i = 0; i < got.size(); ++i) {
        if (opaque(q, i)) continue;
        HostTensor a = in_layout(got[i], Layout::plain), b = in_layout(expected[i], Layout::plain);
        close(a, b, tolerance);
      }
      for (const TensorDesc& d : q.in) compared_[std::string(q.op)].insert(d.dtype);
      ++count_;
    }
  }

  // Scaled by the largest value, since terms may cancel.
  static void close(HostTensor& a, HostTensor& b, double tolerance) {
    double largest = 1, difference = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      const double x = a.get(i), y = b.get(i);
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      INFO(i, ": ", x, " ", y);
      REQUIRE_FALSE(std::isnan(x - y));
      largest = std::max(largest, std::fabs(y));
      difference = std::max(difference, std::fabs(x - y));
    }
    CHECK(difference <= tolerance * largest);
  }

  Run run_;
  std::mt19937 random_{1};
  std::map<std::string, std::set<DType>> compared_;
  int count_ = 0;
};

TEST_CASE("a library prepares its work once for all nodes of the same shapes") {
  for (const bool has_algorithms : {true, false}) {
    FakeApi api(FakeApi::Settings{.libraries = has_algorithms});
    const auto stream = api.make_stream();
    DeviceContext context(api, *stream, nullptr);
    const Matmul product{.m = 4, .n = 3, .k = 2}, other{.m = 4, .n = 3, .k = 1};
    const auto first = context.prepared(product);
    const auto second = context.prepared(other), again = context.prepared(product);
    CHECK((first.work != nullptr) == has_algorithms);
    CHECK(first.why == (has_algorithms ? "" : "the fake GPU has no libraries"));
    CHECK(again.work == first.work);
    CHECK(again.why == first.why);
    CHECK((second.work != first.work) == has_algorithms);
  }
}

TEST_CASE("own kernels agree with the plain loops on every sample, in three orders of threads") {
  Conformance c(run_on_fakes);
  for (const OperatorType& type : operator_table()) {
    if (type.view) continue;
    for (const Sample& s : type.samples()) c.compare(s);
    CHECK_MESSAGE(c.compared().contains(std::string(type.name)), type.name);
  }
  // What mixed precision keeps in halves.
  for (const std::string op : {"relu",
                               "relu_gradient",
                               "add",
                               "dropout",
                               "max_pool",
                               "max_pool_gradient",
                               "max_pool_bytes",
                               "max_pool_bytes_gradient",
                               "avg_pool",
                               "adaptive_avg_pool_gradient",
                               "linear",
                               "linear_relu",
                               "linear_relu_mask",
                               "matmul",
                               "matmul_relu_gradient",
                               "linear_weight_gradient",
                               "linear_weight_bias_gradient",
                               "convolution",
                               "convolution_relu",
                               "convolution_transpose",
                               "convolution_weight_gradient",
                               "sum_rows",
                               "sum_channels",
                               "channel_sums",
                               "batch_norm",
                               "batch_norm_relu",
                               "batch_norm_add_relu",
                               "batch_norm_training",
                               "batch_norm_relu_training",
                               "batch_norm_add_relu_training",
                               "batch_norm_relu_sums",
                               "batch_norm_add_relu_gradient",
                               "batch_norm_input_gradient",
                               "batch_norm_relu_input_gradient",
                               "slice",
                               "concat",
                               "pad",
                               "embedding",
                               "attention",
                               "attention_gradient"})
    for (const DType half : {DType::bf16, DType::f16})
      CHECK_MESSAGE(c.compared().at(op).contains(half), op);
  CHECK(c.count() > 1000);
}

TEST_CASE("products without an algorithm for their epilogue make the rest by own kernels") {
  FakeApi::Settings settings{.strict = true, .epilogues = false};
  Conformance c([&](const KernelType& row, const KernelQuery& q, std::vector<HostTensor>& in) {
    FakeApi api(settings);
    return run_on(api, row, q, in, kStep);
  });
  for (const std::string_view name : {"linear_relu", "linear_relu_mask", "matmul_relu_gradient",
                                      "linear_weight_bias_gradient", "convolution_relu"})
    for (const Sample& s : op(name).samples()) c.compare(s);
  CHECK(c.count() > 100);
  // A mask that is made and not read, or read by nobody since nobody makes it.
  settings.epilogues = true;
  using Lacking = std::vector<Epilogue>;
  for (const Lacking& lacking : {Lacking{Epilogue::relu_gradient}, Lacking{Epilogue::relu_mask}}) {
    settings.lacking = lacking;
    for (const Sample& s : op("matmul_relu_gradient").samples()) c.compare(s);
  }
}

TEST_CASE("cuDNN's batch norm says what it does not take") {
  const auto refusal = [](Shape x, DType type, size_t weights, Layout layout) {
    const TensorDesc image{type, x, layout}, weight{DType::f32, {x[1]}};
    KernelQuery q{"batch_norm_training", {image}, {image, {DType::f64, {2 * x[1]}}}, BatchNorm{}};
    q.in.insert(q.in.end(), weights, weight);
    for (const KernelType& row : cuda_kernels())
      if (row.op == q.op && row.name == "cudnn") return row.refuses(q);
    return std::string("there is no such row");
  };
  const Layout last = Layout::channels_last;
  CHECK(refusal({2, 8, 3, 3}, DType::f16, 2, last) == "");
  CHECK(refusal({2, 4, 3, 3}, DType::f32, 2, last) == "");
  CHECK(refusal({2, 4, 3, 3}, DType::f16, 2, last) == "it takes multiples of 8 channels in f16");
  CHECK(refusal({2, 6, 3, 3}, DType::f32, 2, last) == "it takes multiples of 4 channels in f32");
  CHECK(refusal({2, 4, 3, 3}, DType::f32, 1, last) == "it takes a weight and a bias");
  CHECK(refusal({2, 4, 3, 3}, DType::f32, 2, Layout::plain) == "it takes images channels_last");
  CHECK(refusal({0, 4, 3, 3}, DType::f32, 2, last) == "it takes no empty tensors");
}

TEST_CASE("cuDNN's layer and instance norms say what they do not take") {
  const auto refusal = [](std::string_view op, Shape x, int64_t weights, std::any attrs,
                          DType type = DType::f32, Layout layout = Layout::channels_last) {
    KernelQuery q{op, {{type, x, layout}}, {{type, x, layout}}, std::move(attrs)};
    const Shape rows = op == "layer_norm" ? Shape{x[0]} : Shape{x[0], x[1]};
    q.in.insert(q.in.end(), static_cast<size_t>(weights), {DType::f32, {x[1]}});
    q.out.insert(q.out.end(), 2, {DType::f32, rows});
    for (const KernelType& row : cuda_kernels())
      if (row.op == q.op && row.name == "cudnn") return row.refuses(q);
    return std::string("there is no such row");
  };
  const Layout plain = Layout::plain;
  CHECK(refusal("layer_norm", {5, 7}, 2, LayerNorm{}, DType::f32, plain) == "");
  CHECK(refusal("layer_norm", {5, 7}, 1, LayerNorm{}) == "it takes a weight and a bias");
  CHECK(refusal("layer_norm", {0, 7}, 2, LayerNorm{}) == "it takes no empty tensors");
  CHECK(refusal("layer_norm", {5, 7}, 2, LayerNorm{}, DType::bf16) == "it takes f32, not bf16");
  CHECK(refusal("group_norm", {2, 6, 3, 3}, 2, GroupNorm{6}) == "");
  CHECK(refusal("group_norm", {2, 6, 3, 3}, 2, GroupNorm{2}) ==
        "it takes one channel in each group");
  CHECK(refusal("group_norm", {2, 6}, 2, GroupNorm{6}) == "it takes [N, C, W] or [N, C, H, W]");
  CHECK(refusal("group_norm", {2, 6, 3, 3}, 2, GroupNorm{6}, DType::f32, plain) ==
        "it takes images channels_last");
}

TEST_CASE("cuDNN's pooling says what it does not take") {
  const auto refusal = [](std::string_view op, Pool pool, Shape y, DType type = DType::f32,
                          Layout layout = Layout::channels_last) {
    const TensorDesc x{type, {2, 3, 6, 5}, layout};
    KernelQuery q{op, {x}, {{DType::f32, y, layout}}, pool};
    if (op == "max_pool_bytes") q.out.push_back({DType::u8, y, layout});
    if (op == "adaptive_avg_pool") q.attrs = Resize{};
    for (const KernelType& row : cuda_kernels())
      if (row.op == q.op && row.name == "cudnn") return row.refuses(q);
    return std::string("there is no such row");
  };
  const Window window{.kernel = {3, 3}, .stride = {2, 2}, .before = {1, 1}, .behind = {1, 1}};
  Window dilated = window;
  dilated.dilation = {2, 1};
  const Shape y{2, 3, 3, 3}, more{2, 3, 4, 3};
  for (const std::string_view op : {"max_pool_bytes", "avg_pool"}) {
    CHECK(refusal(op, {window}, y) == "");
    CHECK(refusal(op, {window}, y, DType::bf16) == "it takes one type, not bf16 and f32");
    CHECK(refusal(op, {window}, y, DType::f32, Layout::plain) == "it takes images channels_last");
    CHECK(refusal(op, {dilated}, y) == "it takes no dilation");
    CHECK(refusal(op, {window}, {0, 3, 3, 3}) == "it takes no empty tensors");
  }
  CHECK(refusal("max_pool_bytes", {window, true}, more) == "");
  CHECK(refusal("avg_pool", {window, true, false}, more) == "");
  CHECK(refusal("avg_pool", {window, true}, more) == "it would count what lies behind the padding");
  CHECK(refusal("avg_pool", {.window = window, .divisor_override = 4}, y) ==
        "it divides by the number of elements");
  CHECK(refusal("adaptive_avg_pool", {}, {2, 3, 3, 5}) == "");
  CHECK(refusal("adaptive_avg_pool", {}, {2, 3, 4, 5}) == "its windows are of one size");
  CHECK(refusal("max_pool", {window}, y) ==
        "it makes places that are bytes, for gradients of up to 128 elements");
}

TEST_CASE("cuDNN's attention says what it does not take") {
  const auto refusal = [](std::string_view op, Shape qkv, int64_t heads, DType type) {
    const TensorDesc x{type, qkv}, y{type, qkv.with(2, qkv[2] / 3)};
    const TensorDesc sums{DType::f32, {qkv[0], heads, qkv[1]}};
    KernelQuery q{op, {x}, {y, sums}, Attention{.heads = heads}};
    if (op == "attention_gradient") q.in = {y, x, y, sums}, q.out = {x};
    for (const KernelType& row : cuda_kernels())
      if (row.op == q.op && row.name == "cudnn") return row.refuses(q);
    return std::string("there is no such row");
  };
  for (const std::string_view op : {"attention", "attention_gradient"}) {
    CHECK(refusal(op, {2, 5, 48}, 2, DType::bf16) == "");
    CHECK(refusal(op, {2, 5, 384}, 1, DType::f16) == "");
    CHECK(refusal(op, {2, 5, 48}, 2, DType::f32) == "it takes bf16 and f16, not f32");
    CHECK(refusal(op, {0, 5, 48}, 2, DType::bf16) == "it takes no empty tensors");
    CHECK(refusal(op, {2, 5, 36}, 1, DType::bf16) ==
          "it takes heads of 8, 16, ... 128 columns, not 12");
    CHECK(refusal(op, {2, 5, 408}, 1, DType::bf16) ==
          "it takes heads of 8, 16, ... 128 columns, not 136");
  }
  CHECK(refusal("attention", {2, 1, 48}, 2, DType::bf16) == "");
  CHECK(refusal("attention_gradient", {2, 1, 48}, 2, DType::bf16) ==
        "it makes no gradient of a single place");
}

// Some gradients take shapes that they are never asked for.
bool fits(const Sample& s) {
  const KernelQuery& q = s.query;
  const Shape& x = q.in[0].shape;
  if (is_places_gradient(q)) try {
      return op("max_pool").infer(q.out, q.attrs)[0].shape == x;
    } catch (const Error&) {
      return false;
    }
  const auto* group = std::any_cast<GroupNorm>(&q.attrs);
  if (group && x[1] % group->groups != 0) return false;
  if (q.in.size() < 4) return true;
  if (group) return q.in[2].shape == Shape{x[0], group->groups};
  const auto* layer = std::any_cast<LayerNorm>(&q.attrs);
  const int rows = layer ? x.rank() - layer->dims : 0;
  return !layer || q.in[2].shape == Shape(x.extents().first(static_cast<size_t>(rows)));
}

TEST_CASE("own kernels agree with the plain loops on fuzzed shapes") {
  ShapeFuzzer fuzzer(fuzz_setting("DPT_FUZZ_SEED", 5));
  const uint64_t shapes = fuzz_setting("DPT_FUZZ_SHAPES", 4);
  Conformance c(run_on_fakes);
  for (const OperatorType& type : operator_table()) {
    if (type.view) continue;
    const std::vector<Sample> samples = type.samples();
    for (uint64_t i = 0; i < shapes; ++i)
      if (const auto s = fuzzer.draw(samples); s && fits(*s)) c.compare(*s);
  }
  CHECK(c.count() > 500);
}

TEST_CASE("kernels agree with the plain loops on a GPU, on every sample") {
  if (const std::string reason = why_no_gpu(); !reason.empty()) {
    MESSAGE("skipped: ", reason);
    return;
  }
  const auto api = cuda_module().open(0);
  Conformance c([&](const KernelType& row, const KernelQuery& q, std::vector<HostTensor>& in) {
    std::vector<HostTensor> got = run_on(*api, row, q, in, kStep);
    std::vector<HostTensor> again = run_on(*api, row, q, in, kStep);
    same_bits(q, got, again);
    return got;
  });
  for (const OperatorType& type : operator_table())
    if (!type.view)
      for (const Sample& s : type.samples()) c.compare(s);
  CHECK(c.count() > 1000);
}

}  // namespace
}  // namespace dpt::cuda
