#include "spec/keys.h"

#include <cmath>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "spec/registry_entry.h"

namespace dpt {
namespace {

struct Base {
  bool on = true;
};

struct Sample : Base {
  int64_t count = 0;
  double rate = 0.5;
  std::string reduction = "mean";
  std::optional<int64_t> index;
  std::optional<double> norm;
  std::optional<std::string> side;
  std::vector<int64_t> sizes = {1};
  std::vector<double> betas = {0.9, 0.999};
  std::vector<std::string> tags;
  int64_t even = 2;

  static KeyTable<Sample> keys() {
    return KeyTable<Sample>()
        .required("count", &Sample::count, "how many", kPositive)
        .optional("rate", &Sample::rate, "how fast", kNotNegative)
        .optional("on", &Sample::on, "whether")
        .choice("reduction", &Sample::reduction, {"mean", "sum"}, "how")
        .optional("index", &Sample::index, "which", kNotNegative)
        .optional("norm", &Sample::norm, "of all", kPositiveOrInfinite)
        .choice("side", &Sample::side, {"left", "right"}, "which side")
        .optional("sizes", &Sample::sizes, "of each", kPositive)
        .optional("betas", &Sample::betas, "decays", kBelowOne)
        .optional("tags", &Sample::tags, "words")
        .optional("even", &Sample::even, "a pair",
                  Rule<int64_t>("must be even", [](const int64_t& v) { return v % 2 == 0; }));
  }
  static void check(const Sample& s, const Owner& o, Diagnostics& d) {
    if (s.betas.size() != 2) d.error(o.at("betas"), "'betas' must be two");
    if (s.count == 13) d.error(o.at("rate"), "thirteen");
  }
};

struct Decoded {
  SourceFile file;
  Diagnostics d;
  Sample s;
  explicit Decoded(std::string text) : file{"k.yaml", std::move(text)} {
    s = Sample::keys().decode(read_yaml(file, d), {"thing 'sample'", {&file, 1, 1, 1}}, d);
  }
  std::string message() const {  // the first one
    const std::string all = d.render();
    const size_t begin = all.find("error: ");
    return begin == all.npos ? "" : all.substr(begin + 7, all.find('\n') - begin - 7);
  }
};

std::string message(const std::string& text) { return Decoded(text).message(); }

}  // namespace

TEST_CASE("every type of member is read, from a map or from the main value") {
  const Decoded main("7\n");
  CHECK(main.d.ok());
  CHECK(main.s.count == 7);
  const Decoded all(
      "count: 3\nrate: 1\non: false\nreduction: sum\nindex: 0\nnorm: .inf\nside: right\n"
      "sizes: [2, 3]\nbetas: [0, .5]\ntags: [a, \"1\", 2]\neven: -4\n");
  CHECK(all.d.render().empty());
  CHECK(all.s.rate == 1);
  CHECK(!all.s.on);
  CHECK(all.s.reduction == "sum");
  CHECK(all.s.index == 0);
  CHECK(std::isinf(*all.s.norm));
  CHECK(all.s.side == "right");
  CHECK(all.s.sizes == std::vector<int64_t>{2, 3});
  CHECK(all.s.betas == std::vector<double>{0, 0.5});
  CHECK(all.s.tags == std::vector<std::string>{"a", "1", "2"});
  CHECK(all.s.even == -4);
}

TEST_CASE("a tuple is told to be a list") {
  CHECK(message("count: 1\nsizes: (3, 4)") ==
        "'sizes' must be an integer, not '(3, 4)': write a tuple as a list: [3, 4]");
  CHECK(message("{count: (3, 4)}").find("write a tuple as a list") != std::string::npos);
}

TEST_CASE("YAML's three spellings of a boolean are read, other words are not") {
  for (const char* text : {"true", "True", "TRUE"})
    CHECK_MESSAGE(message(fmt::format("{{count: 1, on: {}}}", text)).empty(), text);
  for (const char* text : {"false", "False", "FALSE"}) {
    const Decoded off(fmt::format("{{count: 1, on: {}}}", text));
    CHECK(off.d.ok());
    CHECK(!off.s.on);
  }
  for (const char* text : {"yes", "tRue", "on", "1", "'true'", "\"False\""})
    CHECK_MESSAGE(message(fmt::format("{{count: 1, on: {}}}", text))
                      .starts_with("'on' must be true or false, not "),
                  text);
}

TEST_CASE("null is none, and one value is a list of one") {
  const Decoded none("{count: 1, index: null, norm: ~, side: null, sizes: 5}\n");
  CHECK(none.d.render().empty());
  CHECK(!none.s.index);
  CHECK(!none.s.norm);
  CHECK(!none.s.side);
  CHECK(none.s.sizes == std::vector<int64_t>{5});
  CHECK(message("{count: null}") == "'count' must be an integer, not empty");
  const Decoded word("{count: 1, index: none, norm: none, side: none}\n");
  CHECK(word.d.render().empty());
  CHECK(!word.s.index);
  CHECK(message("{count: none}").starts_with("'count' must be an integer, not 'none'"));
  CHECK(message("{count: 1, index: \"none\"}").find("remove the quotes") != std::string::npos);
}

TEST_CASE("numbers are strict") {
  for (const char* good : {"1", "9223372036854775807"}) CHECK(message(good).empty());
  for (const char* bad : {"010", "0x10", "1_000", "+1", "1.0", "1e3", "\"1\"", "'1'", "yes", "one",
                          "9223372036854775808", "-0x1", "1 2", "0o7", "00", "\"\""})
    CHECK_MESSAGE(message(bad).starts_with("'count' must be an integer, not "), bad);
  const auto rate = [](const std::string& text) {
    return Decoded("{count: 1, rate: " + text + "}").s.rate;
  };
  CHECK(rate("0.75") == 0.75);
  CHECK(rate(".25") == 0.25);
  CHECK(rate("1e-3") == 1e-3);
  CHECK(rate("1.0e-3") == 1e-3);
  CHECK(rate("2") == 2);
  CHECK(rate("1.") == 1);
  for (const char* infinite : {"inf", ".inf", "-.inf"})
    CHECK(message(fmt::format("{{count: 1, rate: {}}}", infinite)) ==
          "'rate' must be a finite number");
  CHECK(message("{count: 1, betas: [0.5, .inf]}") == "'betas' must be a finite number");
  CHECK(message("{count: 1, norm: -.inf}") == "'norm' must be positive");
  for (const char* bad : {".nan", "nan", "infinity", "0x1p3", "01.5", "1_0.5", "1e999", "+1.5",
                          "\"1.5\"", "1.5.2", "-", ".", "e5", "1e", "true"})
    CHECK_MESSAGE(message(fmt::format("{{count: 1, rate: {}}}", bad))
                      .starts_with("'rate' must be a number, not "),
                  bad);
  for (const char* bad : {"yes", "no", "on", "off", "1", "\"true\""})
    CHECK_MESSAGE(message(fmt::format("{{count: 1, on: {}}}", bad))
                      .starts_with("'on' must be true or false, not "),
                  bad);
}

TEST_CASE("rules hold for single values, optional ones and each element of a list") {
  CHECK(message("0") == "'count' must be positive");
  CHECK(message("{count: 1, rate: -0.1}") == "'rate' must not be negative");
  CHECK(message("{count: 1, index: -1}") == "'index' must not be negative");
  CHECK(message("{count: 1, betas: [0.5, 1]}") == "'betas' must be at least 0 and below 1");
  CHECK(message("{count: 1, even: 3}") == "'even' must be even");
  CHECK(kProbability.holds(0));
  CHECK(kProbability.holds(1));
  CHECK(!kProbability.holds(1.0000001));
  CHECK(!kBelowOne.holds(1));
  CHECK(!kPositive.holds(0));
  CHECK(kNotNegative.holds(0));
}

TEST_CASE("words are read in any capitals, and have the spelling of the table") {
  const Decoded word("{count: 1, reduction: SUM, side: Left}\n");
  CHECK(word.d.render().empty());
  CHECK(word.s.reduction == "sum");
  CHECK(word.s.side == "left");
}

TEST_CASE("words, keys and what is missing are named") {
  CHECK(message("{count: 1, reduction: meen}") ==
        "unknown word 'meen' for 'reduction'; did you mean 'mean'?");
  CHECK(message("{count: 1, reduction: [mean]}") == "'reduction' must be one of: mean, sum");
  CHECK(message("{coutn: 1, count: 2}") ==
        "unknown key 'coutn' in thing 'sample'; did you mean 'count'?");
  CHECK(message("{rate: 1}") == "thing 'sample' needs 'count': how many");
  CHECK(message("") == "thing 'sample' needs 'count': how many");
}

TEST_CASE("keys are checked against each other only when each is sound") {
  CHECK(message("{count: 1, betas: [0.5]}") == "'betas' must be two");
  const Decoded both("{count: 0, betas: [0.5]}");
  CHECK(both.d.count() == 1);
  CHECK(both.message() == "'count' must be positive");
  // The place is that of the value where it was given, else of the owner.
  CHECK(Decoded("{count: 13, rate: 1}").d.render().starts_with("k.yaml:1:19:"));
  CHECK(Decoded("{count: 13}").d.render().starts_with("k.yaml:1:1:"));
}

TEST_CASE("a table documents itself") {
  const std::vector<KeyDoc> docs = Sample::keys().describe();
  std::string text;
  for (const KeyDoc& k : docs)
    text += fmt::format("{}: {} = {}{}\n", k.name, k.kind, k.required() ? "required" : k.fallback,
                        k.rule.empty() ? "" : fmt::format(", {}", k.rule));
  CHECK(text ==
        "count: an integer = required, must be positive\n"
        "rate: a number = 0.5, must not be negative\n"
        "on: true or false = true\n"
        "reduction: a word = mean\n"
        "index: an integer = none, must not be negative\n"
        "norm: a number = none, must be positive\n"
        "side: a word = none\n"
        "sizes: a list of integers = [1], must be positive\n"
        "betas: a list of numbers = [0.9, 0.999], must be at least 0 and below 1\n"
        "tags: a list of words = []\n"
        "even: an integer = 2, must be even\n");
  CHECK(docs[3].choices == std::vector<std::string_view>{"mean", "sum"});
}

}  // namespace dpt
