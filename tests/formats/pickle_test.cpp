#include "formats/pickle.h"

#include <doctest/doctest.h>

#include "data/folder.h"
#include "data/peak_growth.h"

namespace dpt {
namespace {

using namespace std::string_view_literals;
using Kind = Pickle::Kind;

Pickle parse(std::string_view instructions) {
  return {std::string("\x80\x02") + std::string(instructions) + ".", "w.pt",
          [](std::string_view module, std::string_view) { return module == "fine"; }};
}

std::string refusal(std::string_view instructions) {
  return data_error([&] { parse(instructions); });
}

}  // namespace

TEST_CASE("plain values") {
  CHECK(parse("N").root().kind == Kind::none);
  CHECK(parse("\x88").root().number == 1);
  CHECK(parse("K\xff").root().number == 255);
  CHECK(parse("M\x01\x02").root().number == 513);
  CHECK(parse("J\xfe\xff\xff\xff").root().number == -2);
  CHECK(parse("\x8a\x00"sv).root().number == 0);
  CHECK(parse("\x8a\x01\xff").root().number == -1);
  CHECK(parse("\x8a\x05\x00\x00\x00\x00\x01"sv).root().number == int64_t{1} << 32);
  CHECK(parse("G\x3f\xf8\x00\x00\x00\x00\x00\x00"sv).root().real == 1.5);
  CHECK(parse("X\x02\x00\x00\x00hi"sv).root().text == "hi");
  CHECK(parse("\x8c\x02hi").root().text == "hi");
}

TEST_CASE("containers, names, calls and what is used twice") {
  const Pickle tuple = parse("(K\x01K\x02t");
  REQUIRE(tuple.root().items.size() == 2);
  CHECK(tuple[tuple.root().items[1]].number == 2);
  CHECK(parse("K\x01K\x02K\x03\x87").root().items.size() == 3);
  CHECK(parse("](K\x01K\x02"
              "eK\x03"
              "a")
            .root()
            .items.size() == 3);
  const Pickle dict = parse("}(\x8c\x01kK\x01u\x8c\x01lK\x02s");
  REQUIRE(dict.root().members.size() == 4);
  CHECK(dict[dict.root().members[2]].text == "l");
  const Pickle call = parse("cfine\nthing\nK\x01\x85R");
  CHECK(call.root().kind == Kind::call);
  CHECK(call.is_name(call.root().items[0], "fine", "thing"));
  CHECK(call[call.root().items[1]].items.size() == 1);
  const Pickle twice = parse("K\x07q\x03h\x03\x86");
  CHECK(twice.root().items[0] == twice.root().items[1]);
  CHECK(parse("\x8c\x04"
              "fine\x94\x8c\x05thing\x94\x93")
            .root()
            .attribute == "thing");
  CHECK(parse("K\x01Q").root().kind == Kind::persistent);
  // An object's attributes are not read.
  CHECK(parse("cfine\nthing\n)R}b").root().kind == Kind::call);
  CHECK(parse("K\x01K\x02"
              "0")
            .root()
            .number == 1);
}

TEST_CASE("names that are not allowed, and instructions that no data needs, are refused") {
  CHECK(refusal("cos\nsystem\n") ==
        "w.pt: its pickle is not read, at byte 2: it refers to os.system, and dptrain runs no code "
        "from files; save the model's state_dict() alone");
  CHECK(has(refusal("\x8c\x02os\x8c\x06system\x93"), "at byte 14: it refers to os.system"));
  CHECK(has(refusal("(i"), "at byte 3: the instruction 0x69 is not one of plain data"));
  CHECK(has(refusal("o"), "0x6f"));
  CHECK(has(refusal("\x81"), "0x81"));
  CHECK(has(refusal("\x82\x01"), "0x82"));
  CHECK(has(refusal("K\x01)R"), "it calls something else than a name"));
  CHECK(has(refusal("K\x01}b"), "it sets attributes of something else than an object"));
}

TEST_CASE("damaged pickles are refused") {
  CHECK(has(refusal(""), "a value is missing"));
  CHECK(has(refusal("K\x01K\x02"), "values are left over"));
  CHECK(has(refusal("("), "a value is missing"));
  CHECK(has(refusal("t"), "a mark is missing"));
  CHECK(has(refusal("h\x01"), "a value is used before it is made"));
  CHECK(has(refusal("K\x01K\x02"
                    "a"),
            "something else than a list"));
  CHECK(has(refusal("}K\x01(u"), "something else than a dict"));
  CHECK(has(refusal("}(K\x01u"), "something else than a dict"));
  CHECK(has(refusal("\x8a\x09"
                    "123456789"),
            "more than 64 bits"));
  CHECK(has(refusal("Nr\xff\xff\xff\xff"), "more than a million values"));
  CHECK(has(data_error([] { Pickle("\x80\x02X\xff\xff\xff\xff", "w", {}); }), "it is cut short"));
  CHECK(has(data_error([] { Pickle("\x80\x07N.", "w", {}); }), "its protocol is 7"));
  CHECK(has(data_error([] { Pickle("", "w", {}); }), "it is cut short"));
}

TEST_CASE("a pickle of many values is refused before it takes much memory") {
  const std::string many(3 << 20, 'N');
  CHECK(peak_growth([&] { CHECK(has(refusal(many), "more than a million values")); }) < size_t{400}
                                                                                            << 20);
}

TEST_CASE("what is written is read") {
  PickleWriter out;
  out.name("fine", "thing").empty_tuple().call().mark();
  out.text("k").integer(-1).text("l").integer(int64_t{1} << 40).text("m").boolean(true);
  out.text("n").mark().integer(200).integer(300).tuple().persistent();
  const Pickle read(out.set_items().finish(), "w",
                    [](std::string_view, std::string_view) { return true; });
  const std::vector<Pickle::Ref>& members = read.root().members;
  REQUIRE(members.size() == 8);
  CHECK(read[members[0]].text == "k");
  CHECK(read[members[1]].number == -1);
  CHECK(read[members[3]].number == int64_t{1} << 40);
  CHECK(read[members[5]].kind == Kind::boolean);
  const Pickle::Value& id = read[read[members[7]].items[0]];
  CHECK(read[id.items[0]].number == 200);
  CHECK(read[id.items[1]].number == 300);
}

}  // namespace dpt
