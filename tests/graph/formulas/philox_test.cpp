#include "graph/formulas/philox.h"

#include <initializer_list>

#include <doctest/doctest.h>

namespace dpt {

TEST_CASE("Philox4x32-10 gives Random123's known answers") {  // its file kat_vectors
  struct Known {
    philox::Words counter;
    philox::Key key;
    philox::Words answer;
  };
  const Known known[] = {
      {{{0, 0, 0, 0}}, {{0, 0}}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
      {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
       {{0xffffffff, 0xffffffff}},
       {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
      {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
       {{0xa4093822, 0x299f31d0}},
       {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
  };
  for (const Known& k : known) {
    const philox::Words words = philox::block(k.counter, k.key);
    for (int i = 0; i < 4; ++i) CHECK(words.w[i] == k.answer.w[i]);
  }
}

TEST_CASE("sixteen neighbours take one word of sixteen neighbouring blocks") {
  const philox::Key key = philox::layer_key(5, 6);
  for (uint64_t e : {0UL, 15UL, 16UL, 63UL, 64UL, 150UL}) {
    const auto number = static_cast<uint32_t>(e / 64 * 16 + e % 16);
    CHECK(philox::element_word(key, 3, 8, e) ==
          philox::block(philox::sample_counter(3, 8, number), key).w[e / 16 % 4]);
  }
}

TEST_CASE("counters differ where steps or samples differ beyond 32 bits") {
  const auto at = [](uint64_t step, uint64_t sample) {
    return philox::element_word(philox::layer_key(0, 0), step, sample, 0);
  };
  CHECK(at(0, 0) != at(uint64_t{1} << 32, 0));
  CHECK(at(0, 0) != at(0, uint64_t{1} << 32));
}

TEST_CASE("the bound of what is kept reaches from none to all") {
  CHECK(philox::keep_below(1) == 0);
  CHECK(philox::keep_below(0) == uint64_t{1} << 32);
  CHECK(philox::keep_below(0.5) == uint64_t{1} << 31);
}

}  // namespace dpt
