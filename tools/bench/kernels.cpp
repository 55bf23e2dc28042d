// Speed of the single-core kernels of backend/cpu/simd, beside the peak of a core and oneDNN.
//
//   kernels [isa]      # avx512, avx2, baseline; left out: the best
//
// Best of many rounds, one thread. Products: once with the same buffers in every round (warm), once
// with four sets of them in turn (cold: more than a second-level cache holds, as in training, where
// the other cores' updates and gradients lie between two uses).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <new>
#include <vector>

#include <dnnl.hpp>

#include "backend/cpu/simd/simd.h"

namespace {

using dpt::SimdKernels;

// Half a second at most, at least 5 rounds.
double best_seconds(const std::function<void()>& f, int rounds = 400) {
  double best = 1e9, total = 0;
  for (int r = 0; r < rounds && (r < 5 || total < 0.5); ++r) {
    const auto start = std::chrono::steady_clock::now();
    f();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count());
    total += took.count();
  }
  return best;
}

// As the buffers of a run: they begin at a cache line.
template <class T>
struct Aligned {
  using value_type = T;
  Aligned() = default;
  template <class U>
  explicit Aligned(const Aligned<U>&) {}
  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kAlignment)); }
  void deallocate(T* p, size_t) { ::operator delete(p, kAlignment); }
  bool operator==(const Aligned&) const { return true; }
  static constexpr std::align_val_t kAlignment{256};
};
using Floats = std::vector<float, Aligned<float>>;

Floats some(size_t size) {
  Floats values(size);
  for (size_t i = 0; i < size; ++i) values[i] = static_cast<float>(i % 17) / 16 - 0.5F;
  return values;
}

#if defined(__x86_64__)
// 24 chains of fma that never leave the registers; the time of the best of many short runs.
double peak_avx512() {
  constexpr int kChains = 24, kRounds = 5000;
  const double seconds = best_seconds([] {
    for (int r = 0; r < kRounds; ++r)
      asm volatile(
          ".irp register, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n\t"
          "vfmadd231ps %%zmm24, %%zmm24, %%zmm\\register\n\t"
          ".endr" ::
              : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
  });
  return 2.0 * 16 * kChains * kRounds / seconds;
}
#endif

// Each round of a product takes the next set of operands.
struct Operands {
  Operands(size_t sets, size_t n, size_t out, size_t in)
      : x(sets, some(n * in)), w(sets, some(out * in)), y(sets, some(n * out)) {}
  size_t next() { return at = (at + 1) % x.size(); }
  std::vector<Floats> x, w, y;
  size_t at = 0;
};

// oneDNN's matmul of strided matrices: c[m, n] = a[m, k] b[k, n].
double onednn_seconds(int64_t m, int64_t n, int64_t k, std::vector<Floats>& a, bool a_transposed,
                      std::vector<Floats>& b, bool b_transposed, std::vector<Floats>& c) {
  using dnnl::memory;
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto desc = [](int64_t rows, int64_t columns, bool transposed) {
    return memory::desc({rows, columns}, memory::data_type::f32,
                        transposed ? memory::format_tag::ba : memory::format_tag::ab);
  };
  const memory::desc as = desc(m, k, a_transposed), bs = desc(k, n, b_transposed),
                     cs = desc(m, n, false);
  dnnl::matmul matmul({{as, bs, cs}, engine});
  memory am(as, engine, nullptr), bm(bs, engine, nullptr), cm(cs, engine, nullptr);
  size_t set = 0;
  return best_seconds([&] {
    set = (set + 1) % a.size();
    am.set_data_handle(a[set].data());
    bm.set_data_handle(b[set].data());
    cm.set_data_handle(c[set].data());
    matmul.execute(stream, {{DNNL_ARG_SRC, am}, {DNNL_ARG_WEIGHTS, bm}, {DNNL_ARG_DST, cm}});
    stream.wait();
  });
}

void bench_products(const SimdKernels& kernels, size_t sets, size_t n, size_t out, size_t in) {
  Operands t(sets, n, out, in);
  const Floats bias = some(out);
  const double gflop = 2e-9 * static_cast<double>(n * out * in);
  const double forward = best_seconds([&] {
    const size_t i = t.next();
    kernels.linear(t.x[i].data(), t.w[i].data(), bias.data(), t.y[i].data(), n, out, in, n);
  });
  const double input = best_seconds([&] {
    const size_t i = t.next();
    kernels.matmul(t.y[i].data(), t.w[i].data(), nullptr, t.x[i].data(), n, in, out);
  });
  const double weight = best_seconds([&] {
    const size_t i = t.next();
    kernels.linear_weight_gradient(t.y[i].data(), out, t.x[i].data(), t.w[i].data(), n, out, in,
                                   false);
  });
  const auto N = static_cast<int64_t>(n), O = static_cast<int64_t>(out),
             I = static_cast<int64_t>(in);
  std::printf("%s %4zu x %4zu x %4zu  forward %6.1f (%6.1f)  dx %6.1f (%6.1f)  dw %6.1f (%6.1f)\n",
              sets == 1 ? "warm" : "cold", n, out, in, gflop / forward,
              gflop / onednn_seconds(N, O, I, t.x, false, t.w, true, t.y), gflop / input,
              gflop / onednn_seconds(N, I, O, t.y, false, t.w, false, t.x), gflop / weight,
              gflop / onednn_seconds(O, I, N, t.y, true, t.x, false, t.w));
}

void bench_updates(const SimdKernels& kernels, size_t size) {
  Floats w = some(size), a(size), b(size), c(size), g = some(size), h = some(size);
  const float* shards[] = {g.data(), h.data()};
  const dpt::UpdateArgs args{.weight = w.data(),
                             .state = {a.data(), b.data(), c.data()},
                             .shards = shards,
                             .shard_count = 2,
                             .end = size};
  const auto print = [&](const char* name, double seconds) {
    std::printf("%-22s %7.1f us for %zu elements, 2 shards\n", name, seconds * 1e6, size);
  };
  const dpt::formula::Adam<float> adam{.step_size = 0.01F,
                                       .one_minus_beta1 = 0.1F,
                                       .beta2 = 0.999F,
                                       .one_minus_beta2 = 0.001F,
                                       .inverse_correction = 2,
                                       .eps = 1e-8F};
  print("adam", best_seconds([&] { kernels.update_adam(args, adam); }));
  print("sgd, momentum",
        best_seconds([&] { kernels.update_sgd(args, {.lr = 0.01F, .momentum = 0.9F}); }));
  print("rms_prop", best_seconds([&] {
          kernels.update_rms_prop(
              args, {.lr = 0.01F, .alpha = 0.99F, .one_minus_alpha = 0.01F, .eps = 1e-8F});
        }));
  print("adagrad",
        best_seconds([&] { kernels.update_adagrad(args, {.clr = 0.01F, .eps = 1e-8F}); }));
  print("adadelta", best_seconds([&] {
          kernels.update_adadelta(args,
                                  {.lr = 0.01F, .rho = 0.9F, .one_minus_rho = 0.1F, .eps = 1e-6F});
        }));
  print("sum of shards",
        best_seconds([&] { kernels.sum_shards_range(w.data(), shards, 2, 0, size); }));
  std::vector<double> partial(size / dpt::kSquareChunk + 1);
  print("squares", best_seconds([&] {
          kernels.sum_squares(g.data(), size, 0, (size + dpt::kSquareChunk - 1) / dpt::kSquareChunk,
                              partial.data());
        }));
}

// Rows in random order from a set of 60000, other rows every time.
void bench_gathers(const SimdKernels& kernels, size_t n, size_t features) {
  constexpr size_t kRows = 60000;
  std::vector<uint8_t> rows(kRows * features);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<uint8_t>(i * 7 % 251);
  std::vector<int64_t> index(kRows);
  uint64_t state = 1;
  for (int64_t& i : index) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    i = static_cast<int64_t>((state >> 33) % kRows);
  }
  Floats x(n * features), table = some(256);
  size_t at = 0;
  const auto next = [&] { return index.data() + (at = (at + n) % (kRows - n)); };
  const auto median_us = [&](const std::function<void()>& f) {
    std::vector<double> took;
    for (int r = 0; r < 200; ++r) took.push_back(best_seconds(f, 1) * 1e6);
    std::nth_element(took.begin(), took.begin() + 100, took.end());
    return took[100];
  };
  std::printf(
      "gather of %zu x %zu, median: u8 %.2f us, table %.2f us; the same rows again:", n, features,
      median_us([&] { kernels.gather_u8(rows.data(), next(), n, features, 0.5F, 0, x.data()); }),
      median_us([&] {
        kernels.gather_u8_table(rows.data(), next(), n, features, table.data(), x.data());
      }));
  std::printf(" u8 %.2f us, table %.2f us\n", median_us([&] {
                kernels.gather_u8(rows.data(), index.data(), n, features, 0.5F, 0, x.data());
              }),
              median_us([&] {
                kernels.gather_u8_table(rows.data(), index.data(), n, features, table.data(),
                                        x.data());
              }));
}

}  // namespace

int main(int argc, char** argv) {
  const SimdKernels* kernels = argc > 1 ? dpt::simd_kernels(argv[1]) : &dpt::simd_kernels();
  if (kernels == nullptr) {
    std::fprintf(stderr, "this CPU can't run '%s'\n", argv[1]);
    return 2;
  }
  std::printf("%s; GFLOP/s of our kernel (oneDNN's on the same layouts)\n", kernels->name);
#if defined(__x86_64__)
  if (dpt::simd_kernels("avx512") != nullptr)
    std::printf("peak of fma on 512 bits: %.1f GFLOP/s\n", peak_avx512() * 1e-9);
#endif
  const size_t shapes[][3] = {{50, 200, 784}, {50, 200, 200},   {50, 10, 200},    {100, 200, 784},
                              {12, 200, 784}, {12, 200, 200},   {25, 512, 512},   {33, 77, 131},
                              {1, 200, 784},  {64, 1024, 1024}, {100, 4096, 4096}};
  for (const size_t sets : {1UL, 4UL})
    for (const auto& s : shapes) bench_products(*kernels, sets, s[0], s[1], s[2]);
  bench_updates(*kernels, 20000);
  bench_updates(*kernels, 100000);
  bench_gathers(*kernels, 50, 784);
}
