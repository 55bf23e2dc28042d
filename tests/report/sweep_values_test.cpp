// The values of a sweep on the command line, and the points that they make.
#include "report/sweep_values.h"

#include <cmath>
#include <map>

#include <doctest/doctest.h>

#include "data/folder.h"
#include "golden_text.h"
#include "report/sweep_points.h"

namespace dpt {
namespace {

using Strings = std::vector<std::string>;

struct Read {
  std::vector<std::unique_ptr<SourceFile>> files;
  Diagnostics d;
  SweepWords words;
};
std::unique_ptr<Read> read(const Strings& words, bool random = false) {
  auto out = std::make_unique<Read>();
  out->words = read_sweep_words(words, random, out->files, out->d);
  return out;
}

Strings values(const std::string& word) {
  const auto r = read({word});
  CHECK_MESSAGE(r->d.ok(), r->d.render());
  REQUIRE(r->words.keys.size() == 1);
  return r->words.keys[0].values;
}

std::vector<SweepPoint> points(const Strings& words, const SweepPlan& plan = {}) {
  const auto r = read(words, plan.random > 0);
  REQUIRE_MESSAGE(r->d.ok(), r->d.render());
  return make_points(r->words, plan);
}

Strings names(const Strings& words, const SweepPlan& plan = {}) {
  Strings out;
  for (const SweepPoint& p : points(words, plan)) out.push_back(p.name);
  return out;
}

TEST_CASE("commas separate the values of a sweep, but not within brackets and quotes") {
  CHECK(values("data.batch_size=32,64,128") == Strings{"32", "64", "128"});
  CHECK(values("parallel=single,dp,{ddp: {devices: 2, timeout: 5}}") ==
        Strings{"single", "dp", "{ddp: {devices: 2, timeout: 5}}"});
  CHECK(values("data.transforms=[to_tensor, {shift: 1}],[to_tensor]") ==
        Strings{"[to_tensor, {shift: 1}]", "[to_tensor]"});
  CHECK(values("a='x,y',\"z\\\",\",w") == Strings{"'x,y'", "\"z\\\",\"", "w"});
  const auto r =
      read({"epochs=3", "data.transforms=[a, b]", "path=../data", "path2=a..b", "x=[1,2"});
  CHECK(r->d.ok());
  CHECK(r->words.keys.empty());
  CHECK(r->words.constants.size() == 5);  // a value that is no YAML is an error of the spec
}

TEST_CASE("ranges of a sweep are logarithmic, linear, or of whole numbers") {
  CHECK(values("lr=1e-3..1e-1:log:5") == Strings{"0.001", "0.003162", "0.01", "0.03162", "0.1"});
  CHECK(values("lr=0..1.0:lin:5") == Strings{"0", "0.25", "0.5", "0.75", "1"});
  CHECK(values("lr=-1..1:lin:3") == Strings{"-1", "0", "1"});
  CHECK(values("n=1..4") == Strings{"1", "2", "3", "4"});
  CHECK(values("n=16..256:log:5") == Strings{"16", "32", "64", "128", "256"});
  CHECK(values("n=1..4:lin:3") == Strings{"1", "3", "4"});  // whole: 2.5 is rounded
  CHECK(values("n=1..3:lin:9") == Strings{"1", "2", "3"});  // each once
  CHECK(values("n=1.0..4:lin:3") == Strings{"1", "2.5", "4"});
  const auto r = read({"lr=1e-3..1e-1:log"}, true);
  CHECK(r->d.ok());
  CHECK(r->words.keys[0].values.empty());
}

TEST_CASE("mistakes in the values of a sweep are reported at their place") {
  const auto r =
      read({"epochs", "=3", "data.batch_size=32,,64", "lr=0.1,0.2,0.1", "a=1..8,16", "b=1e-3..1e-1",
            "c=1..x", "d=8..1", "e=0..1.5:log:3", "f=1..2:exp:3", "g=1..2:lin:0", "h=1..2:lin:3:4",
            "i=1e-3..1:log", "j=1..100000", "k=1,2", "k=3,4", "päth=1,,2"});
  check_golden(r->d.render(), "report/golden/sweep_values.txt");
}

TEST_CASE("a sweep takes every combination, the first key slowest and the seed fastest") {
  CHECK(names({"data.batch_size=32,64", "optimizer.lr=0.1,0.2"}) ==
        Strings{"batch_size=32,lr=0.1", "batch_size=32,lr=0.2", "batch_size=64,lr=0.1",
                "batch_size=64,lr=0.2"});
  const auto seeded = points({"data.batch_size=32,64", "epochs=3"}, {.seeds = 2});
  REQUIRE(seeded.size() == 4);
  CHECK(seeded[1].name == "batch_size=32,seed=1");
  CHECK(seeded[1].overrides() == Strings{"data.batch_size=32", "seed=1"});
  CHECK(seeded[1].setting == 0);
  CHECK(seeded[2].setting == 1);
  CHECK(names({}, {.seeds = 3}) == Strings{"seed=0", "seed=1", "seed=2"});
}

TEST_CASE("--zip takes lists in step") {
  CHECK(names({"a=1,2,3", "b=4..6"}, {.zip = true}) == Strings{"a=1,b=4", "a=2,b=5", "a=3,b=6"});
  CHECK(error_of(Fault::spec,
                 [] {
                   points({"a=1,2,3", "b=4,5"}, {.zip = true});
                 }) ==
        "--zip takes lists of the same length, but a has 3, b has 2; leave --zip out to train "
        "every combination");
}

TEST_CASE("--random draws from ranges and lists, the same for a seed") {
  const SweepPlan plan{.random = 40, .random_seed = 7};
  const Strings words = {"lr=1e-4..1e-1:log", "p=0..0.5:lin", "n=1..3", "parallel=dp,ddp"};
  const std::vector<SweepPoint> drawn = points(words, plan);
  CHECK(drawn.size() == 40);
  int small = 0;
  std::map<std::string, int> seen;
  for (const SweepPoint& p : drawn) {
    const double lr = std::stod(*p.find("lr")), half = std::stod(*p.find("p"));
    CHECK((lr >= 1e-4 && lr <= 1e-1 && half >= 0 && half <= 0.5));
    small += lr < std::sqrt(1e-5) ? 1 : 0;  // the middle of the range's logarithm
    ++seen[*p.find("n")];
    ++seen[*p.find("parallel")];
  }
  // 20 are expected, with a standard deviation of 3.2.
  CHECK((small > 8 && small < 32));
  for (const char* value : {"1", "2", "3", "dp", "ddp"}) CHECK(seen[value] > 0);
  CHECK(seen.size() == 5);
  CHECK(names(words, plan) == names(words, plan));
  CHECK(names(words, plan) != names(words, {.random = 40, .random_seed = 8}));
  CHECK(points({"n=1..3"}, {.random = 40}).size() == 3);  // each combination once
  CHECK(has(error_of(Fault::spec, [] { points({"a=1"}, {.random = 3}); }), "--random needs keys"));
}

TEST_CASE("single has one device in a sweep over modes") {
  CHECK(names({"parallel=single,dp", "devices=1,2"}) ==
        Strings{"parallel=single,devices=1", "parallel=dp,devices=1", "parallel=dp,devices=2"});
  const auto given = points({"parallel=single,dp", "devices=2"});
  REQUIRE(given.size() == 2);
  CHECK(given[0].overrides() == Strings{"parallel=single"});
  CHECK(given[1].overrides() == Strings{"parallel=dp"});
}

TEST_CASE("names of points are short, safe as file names and differ") {
  CHECK(short_keys({"data.batch_size", "optimizer.lr", "seed"}) ==
        Strings{"batch_size", "lr", "seed"});
  CHECK(short_keys({"a.x.lr", "b.x.lr", "c.lr"}) == Strings{"a.x.lr", "b.x.lr", "c.lr"});
  CHECK(short_keys({"a.b.lr", "a.c.lr"}) == Strings{"b.lr", "c.lr"});
  CHECK(short_keys({"a.lr", "lr"}) == Strings{"a.lr", "lr"});
  const Strings odd = names({"a=x/y,x y,{b: 1}," + std::string(300, 'z')});
  for (const std::string& n : odd) {
    CHECK(n.find_first_of("/ {}:") == n.npos);
    CHECK(n.size() < 255);
  }
  CHECK(odd[0] != odd[1]);  // both are x_y
}

TEST_CASE("a sweep has at least one key with values and at most 2000 runs") {
  CHECK(has(error_of(Fault::spec, [] { points({"epochs=3"}); }), "a sweep needs a key"));
  CHECK(has(error_of(Fault::spec, [] { points({"a=1..50", "b=1..50"}); }), "more than 2000 runs"));
  CHECK(points({"a=1..50", "b=1..40"}).size() == 2000);
}

}  // namespace
}  // namespace dpt
