// Every row of the list for GPUs against the operator's plain loops: on the operator's samples and
// on shapes fuzzed from them, in the layouts that GPUs have, in f32 and in halves; on the fake GPU
// in three orders of threads. conformance_test.cpp does so on a real one.
#include "backend/cuda/implementations/kernels.h"

#include <any>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cuda/conformance.h"
#include "backend/cuda/on_device.h"
#include "base/units.h"
#include "graph/fuzzed_samples.h"
#include "sanitizers.h"

namespace dpt::cuda {
namespace {

Conformance::Got run_on_fakes(const KernelType& row, const KernelQuery& q,
                              std::vector<HostTensor>& in, bool) {
  std::vector<HostTensor> got;
  for (const ThreadOrder order :
       {ThreadOrder::forward, ThreadOrder::reverse, ThreadOrder::shuffled}) {
    if (kSanitized && order != ThreadOrder::shuffled) continue;
    FakeApi api({.order = order, .strict = true});
    std::vector<HostTensor> again = run_on(api, row, q, in, kStep);
    if (got.empty())
      got = std::move(again);
    else
      same_bits(q, got, again);
  }
  return {std::move(got), {}};
}

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
    if (type.is(Trait::view)) continue;
    for (const Sample& s : samples_of(type.name)) c.compare(s);
    // An operator may have none: specs that need it are refused on GPUs (session/programs.h).
    const bool listed = std::ranges::any_of(
        cuda_kernels(), [&](const KernelType& k) { return k.op == type.name && k.prepare; });
    CHECK_MESSAGE(c.compared().contains(std::string(type.name)) == listed, type.name);
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
                               "batch_norm_backward",
                               "batch_norm_input_gradient",
                               "batch_norm_sums",
                               "slice",
                               "concat",
                               "pad",
                               "embedding",
                               "attention",
                               "attention_gradient"})
    for (const DType half : {DType::bf16, DType::f16})
      CHECK_MESSAGE(c.compared().at(op).contains(half), op);
  CHECK(c.failures() == "");
  CHECK(c.count() > 1000);
}

TEST_CASE("products without an algorithm for their epilogue make the rest by own kernels") {
  FakeApi::Settings settings{.strict = true, .epilogues = false};
  Conformance c(
      [&](const KernelType& row, const KernelQuery& q, std::vector<HostTensor>& in, bool) {
        FakeApi api(settings);
        return Conformance::Got{run_on(api, row, q, in, kStep), {}};
      });
  for (const std::string_view name : {"linear_relu", "linear_relu_mask", "matmul_relu_gradient",
                                      "linear_weight_bias_gradient", "convolution_relu"})
    for (const Sample& s : samples_of(name)) c.compare(s);
  CHECK(c.count() > 100);
  // A mask that is made and not read, or read by nobody since nobody makes it.
  settings.epilogues = true;
  using Lacking = std::vector<Epilogue>;
  for (const Lacking& lacking : {Lacking{Epilogue::relu_gradient}, Lacking{Epilogue::relu_mask}}) {
    settings.lacking = lacking;
    for (const Sample& s : samples_of("matmul_relu_gradient")) c.compare(s);
  }
  CHECK(c.failures() == "");
}

TEST_CASE("cuDNN's batch norm says what it does not take") {
  const auto refusal = [](Shape x, DType type, size_t weights, Layout layout) {
    const TensorDesc image{type, x, layout}, weight{DType::f32, {x[1]}};
    KernelQuery q{
        "batch_norm", {image}, {image, {DType::f64, {2 * x[1]}}}, BatchNorm{.training = true}};
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
  CHECK(refusal("layer_norm", {5, 7}, 2, RowNorm{}, DType::f32, plain) == "");
  CHECK(refusal("layer_norm", {5, 7}, 1, RowNorm{}) == "it takes a weight and a bias");
  CHECK(refusal("layer_norm", {0, 7}, 2, RowNorm{}) == "it takes no empty tensors");
  CHECK(refusal("layer_norm", {5, 7}, 2, RowNorm{}, DType::bf16) == "it takes f32, not bf16");
  CHECK(refusal("group_norm", {2, 6, 3, 3}, 2, RowNorm{.groups = 6}) == "");
  CHECK(refusal("group_norm", {2, 6, 3, 3}, 2, RowNorm{.groups = 2}) ==
        "it takes one channel in each group");
  CHECK(refusal("group_norm", {2, 6}, 2, RowNorm{.groups = 6}) == "it takes images");
  CHECK(refusal("group_norm", {2, 6, 3, 3}, 2, RowNorm{.groups = 6}, DType::f32, plain) ==
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
  const Window window{
      .kernel = {1, 3, 3}, .stride = {1, 2, 2}, .before = {0, 1, 1}, .behind = {0, 1, 1}};
  Window dilated = window;
  dilated.dilation = {1, 2, 1};
  const Shape y{2, 3, 3, 3}, more{2, 3, 4, 3};
  for (const std::string_view op : {"max_pool_bytes", "avg_pool"}) {
    CHECK(refusal(op, {window}, y) == "");
    CHECK(refusal(op, {window}, y, DType::bf16) == "it takes one type, not bf16 and f32");
    CHECK(refusal(op, {window}, y, DType::f32, Layout::plain) == "it takes images channels_last");
    CHECK(refusal(op, {dilated}, y) == "it takes no dilation");
    CHECK(refusal(op, {window}, {0, 3, 3, 3}) == "it takes no empty tensors");
  }
  CHECK(refusal("max_pool_bytes", {window, true}, more) == "");
  CHECK(refusal("avg_pool", {.window = window, .ceil_mode = true, .count_include_pad = false},
                more) == "");
  CHECK(refusal("avg_pool", {window, true}, more) == "it would count elements beyond the padding");
  CHECK(refusal("avg_pool", {.window = window, .divisor_override = 4}, y) ==
        "it divides by the number of elements");
  CHECK(refusal("adaptive_avg_pool", {}, {2, 3, 3, 5}) == "");
  CHECK(refusal("adaptive_avg_pool", {}, {2, 3, 4, 5}) == "its windows are of one size");
  CHECK(refusal("max_pool", {window}, y) ==
        "it stores indices as bytes, which fit only windows of up to 128 elements");
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
        "it makes no gradient of a single position");
}

// The gradient of attention on a fake GPU that needs a workspace of so many bytes for each score.
struct PiecesRun {
  std::vector<HostTensor> results;
  std::vector<std::string> works;  // of the library, as they were enqueued
  bool own = false;
};
PiecesRun run_gradient(const Shape& qkv, int64_t heads, size_t score_bytes, size_t workspace) {
  const TensorDesc x{DType::f16, qkv}, y{DType::f16, qkv.with(2, qkv[2] / 3)};
  const KernelQuery q{"attention_gradient",
                      {y, x, y, {DType::f32, {qkv[0], heads, qkv[1]}}},
                      {x},
                      Attention{.heads = heads}};
  std::vector<HostTensor> in;
  for (const TensorDesc& d : q.in) {
    auto* const bytes = in.emplace_back(d).view().data;
    for (size_t i = 0; i < d.bytes(); ++i)  // halves and floats of about 1
      bytes[i] = static_cast<std::byte>(i % 2 == 0 ? i * 37 : d.dtype == DType::f32 ? 0x3f : 0x34);
  }
  FakeApi api({.strict = true, .score_bytes = score_bytes});
  PiecesRun out;
  for (const KernelType& row : cuda_kernels())
    if (row.op == q.op && row.name == "cudnn") {
      OnDevice on(api, row, q, in, kStep, false, workspace);
      api.take_calls();
      out.results = on.run();
      out.own = !on.fallbacks().empty();
    }
  for (const std::string& call : api.take_calls())
    if (const size_t at = call.find("attention back"); at != std::string::npos)
      out.works.push_back(call.substr(at, call.find(']') + 1 - at));
  return out;
}

TEST_CASE("a gradient of attention that needs too large a workspace is made in pieces") {
  constexpr size_t kSample = 2 * 64 * 128 * 2;  // that cuDNN is thought to need, of two heads
  const Shape x{7, 6, 48};
  const PiecesRun whole = run_gradient(x, 2, 0, kAttentionWorkspace);
  CHECK(whole.works == std::vector<std::string>{"attention back [7, 6, 2, 8]"});
  // Of samples 0 to 2, 3 to 5 and 4 to 6.
  const PiecesRun pieces = run_gradient(x, 2, 3 * kSample / (3 * 72), 3 * kSample);
  CHECK(pieces.works == std::vector<std::string>(3, "attention back [3, 6, 2, 8]"));
  // It needs more than it is thought to: half of three is one.
  const PiecesRun single = run_gradient(x, 2, kSample / 72 + 1, 3 * kSample);
  CHECK(single.works == std::vector<std::string>(7, "attention back [1, 6, 2, 8]"));
  // One sample is too large, but the GPU has 4 GiB.
  const PiecesRun larger = run_gradient(x, 2, kSample / 72, kSample / 2);
  CHECK(larger.works == std::vector<std::string>(7, "attention back [1, 6, 2, 8]"));
  for (const PiecesRun* run : {&pieces, &single, &larger}) {
    CHECK(!run->own);
    CHECK(run->results[0].storage == whole.results[0].storage);
  }
  const PiecesRun none = run_gradient(x, 2, kGiB, 3 * kSample);
  CHECK(none.own);
  CHECK(none.works.empty());
}

TEST_CASE("pieces of a gradient of attention begin at addresses that cuDNN takes") {
  constexpr size_t kSample = 2 * 64 * 128 * 2;
  // The sums of softmax of a sample are 40 bytes.
  const PiecesRun even = run_gradient({8, 5, 48}, 2, kSample / 50, 3 * kSample);
  CHECK(even.works == std::vector<std::string>(4, "attention back [2, 5, 2, 8]"));
  CHECK(run_gradient({7, 5, 48}, 2, kSample / 50, 3 * kSample).own);
}

TEST_CASE("own kernels agree with the plain loops on fuzzed shapes") {
  ShapeFuzzer fuzzer(fuzz_setting("DPT_FUZZ_SEED", 5));
  const uint64_t shapes = fuzz_setting("DPT_FUZZ_SHAPES", kSanitized ? 1 : 4);
  Conformance c(run_on_fakes);
  for (const OperatorType& type : operator_table()) {
    const Samples& samples = written_samples_of(type.name);
    if (type.is(Trait::view) || samples.empty()) continue;
    for (uint64_t i = 0; i < shapes; ++i)
      if (const auto s = fuzzer.draw(samples)) c.compare_with_gradient(*s);
  }
  CHECK(c.failures() == "");
  CHECK(c.count() > (kSanitized ? 125 : 500));
}

}  // namespace
}  // namespace dpt::cuda
