// Golden vectors made with torch 2.13.0 on an x86 CPU: torch.manual_seed(s), then the call.
#include "base/generator.h"

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/sha256.h"

namespace dpt {
namespace {

using Words = std::vector<uint32_t>;

Words bits(const std::vector<float>& values) {
  Words out;
  for (const float v : values) out.push_back(std::bit_cast<uint32_t>(v));
  return out;
}

std::vector<float> uniform(Generator& g, size_t n, double a = 0, double b = 1) {
  std::vector<float> out(n);
  g.uniform_(out, a, b);
  return out;
}

std::vector<float> normal(Generator& g, size_t n, double mean = 0, double sd = 1) {
  std::vector<float> out(n);
  g.normal_(out, mean, sd);
  return out;
}

template <class T>
std::vector<T> permutation(uint64_t seed, size_t n) {
  Generator g(seed);
  std::vector<T> out(n);
  g.randperm(out);
  return out;
}

// The bounds of torch's Linear and Conv: kaiming_uniform_(a=sqrt(5)) evaluated in torch's order.
double weight_bound(double fan_in) {
  const double root = std::sqrt(5.0);
  return std::sqrt(3.0) * (std::sqrt(2 / (1 + root * root)) / std::sqrt(fan_in));
}

std::string sha256_of(const std::vector<std::vector<float>>& parameters) {
  Sha256 hash;
  for (const auto& p : parameters) hash.update(std::span<const float>(p));
  return hash.hex();
}

// Weight and bias of one Linear or Conv, drawn in torch's order.
void append_layer(std::vector<std::vector<float>>& out, Generator& g, size_t fan_in, size_t units) {
  const auto fan = static_cast<double>(fan_in);
  out.push_back(uniform(g, fan_in * units, -weight_bound(fan), weight_bound(fan)));
  out.push_back(uniform(g, units, -1 / std::sqrt(fan), 1 / std::sqrt(fan)));
}

TEST_CASE("random_ draws int64 from two words") {
  Generator words(0);
  for (const uint32_t w : {209652396U, 398764591U, 924231285U, 1478610112U})
    CHECK((words.next() & 0x7fffffffU) == w);  // int32: 31 bits of one word
  Generator g(42);
  for (const int64_t v : {6909045637428952499, 8314211556539077902, 4279532810384561223})
    CHECK(g.random_i64() == v);
}

TEST_CASE("only the low 32 bits of a seed count") {
  Generator a(5), b((uint64_t{1} << 32) + 5);
  CHECK(a.next() == b.next());
}

TEST_CASE("uniform_ equals torch's") {
  Generator g(0);
  CHECK(bits(uniform(g, 4)) == Words{0x3efe1558, 0x3f44aa2f, 0x3db533a8, 0x3e073300});
  Generator linear(0);
  std::vector<std::vector<float>> parameters;
  append_layer(parameters, linear, 3, 2);
  CHECK(bits(parameters[0]) ==
        Words{0xbb8da3e8, 0x3e9e9313, 0xbef34b7e, 0xbed98bc9, 0xbe63b4b1, 0x3e1e8953});
  CHECK(bits(parameters[1]) == Words{0xbc3b6b40, 0x3eea617a});
}

TEST_CASE("uniform_ leaves out its upper end") {
  Generator g(1);
  // One float lies between: rounding would give the upper end for half of the draws.
  for (const float x : uniform(g, 1000, 1, std::nextafter(1.F, 2.F))) CHECK(x == 1);
}

TEST_CASE("normal_ of 16 and more equals torch's") {
  Generator g(0);
  CHECK(bits(normal(g, 16)) == Words{0xbf901b85, 0xbf93808a, 0xbe804bd6, 0xbede255d, 0x3f594515,
                                     0x3f312783, 0xbea1cc6d, 0xc0075fc1, 0x3ea50138, 0xbfa1b4f4,
                                     0x3eb330ff, 0x3e9dc3bb, 0x3df56f77, 0x3f9e6b93, 0x3f8ef28e,
                                     0xbe7d367c});
  Generator twenty(0);
  const Words all = bits(normal(twenty, 20));  // the last 16 are drawn again
  CHECK(Words(all.end() - 4, all.end()) == Words{0x3f6e8c30, 0x3fa12737, 0x4000519a, 0x3d5c1b3a});
}

TEST_CASE("fewer normals leave a sine for the next tensor") {
  Generator g(0);
  CHECK(bits(normal(g, 3)) == Words{0x3fc53f5c, 0xbe963c50, 0xc00b7149});
  Generator between = g;
  CHECK(bits(normal(g, 2)) == Words{0x3f1184b6, 0xbf8ad1a1});
  normal(between, 16);  // neither uses nor drops it
  CHECK(bits(normal(between, 1)) == Words{0x3f1184b6});
}

TEST_CASE("bernoulli equals torch's") {
  Generator g(0);
  for (const bool b : {0, 0, 1, 0, 0, 0, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1})
    CHECK(g.bernoulli(0.5) == b);
}

TEST_CASE("randint takes one word, or two for wide ranges") {
  Generator narrow(3), wide(3), words(3);
  CHECK(narrow.randint(-5, 5) == static_cast<int64_t>(words.next() % 10) - 5);
  const uint32_t second = words.next();
  CHECK(narrow.next() == second);
  Generator pair(3);
  const uint64_t range = uint64_t{1} << 28;
  CHECK(wide.randint(0, 1 << 28) == static_cast<int64_t>(pair.next64() % range));
  CHECK(wide.next() == pair.next());
}

TEST_CASE("randperm equals torch's") {
  CHECK(permutation<int64_t>(0, 10) == std::vector<int64_t>{4, 1, 7, 5, 3, 9, 0, 8, 6, 2});
  CHECK(permutation<uint32_t>(1, 10) == Words{5, 6, 1, 2, 0, 8, 9, 3, 7, 4});
  CHECK(permutation<uint32_t>(0, 0).empty());
  CHECK(permutation<uint32_t>(0, 1) == Words{0});
  const std::vector<int64_t> all = permutation<int64_t>(0, 60000);
  CHECK(Sha256().update(std::span<const int64_t>(all)).hex() ==
        "4c226c41bdd65c9e11fe47eba8358cefb5c375b9699b1c912586a2125168af52");
}

TEST_CASE("initial weights of whole models equal torch's") {
  std::vector<std::vector<float>> mlp, embedding, lstm, conv;
  Generator g(0);
  append_layer(mlp, g, 784, 200);
  append_layer(mlp, g, 200, 200);
  append_layer(mlp, g, 200, 10);
  CHECK(sha256_of(mlp) == "d9770a3d9e066a6dddecce35a12a68910c116dcc04958a7cbaca9d1cfa52c277");

  g = Generator(0);
  embedding.push_back(normal(g, 1000 * 10));
  CHECK(sha256_of(embedding) == "0a8ff74020123c55401a2898733e985c74f16c6d4aa8ae9fad1df47d55df2a7d");

  g = Generator(0);
  const double bound = 1 / std::sqrt(64.0);
  for (const size_t n : {256 * 32, 256 * 64, 256, 256})
    lstm.push_back(uniform(g, n, -bound, bound));
  CHECK(sha256_of(lstm) == "654ce6fcca2936334037f09f4c04358652939f9662bc1fa818d65bdeaf1ce4e5");

  g = Generator(0);
  append_layer(conv, g, 9, 32);
  CHECK(sha256_of(conv) == "063fc95f4101fb2c371b47d3035c7fff88bf0f10ca1262fc3cef8bd2cf7986e7");
}

}  // namespace
}  // namespace dpt
