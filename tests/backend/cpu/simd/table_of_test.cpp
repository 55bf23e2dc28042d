#include "backend/cpu/simd/table_of.h"

#include <doctest/doctest.h>

namespace dpt {
namespace {

struct Calls {
  int of[3] = {};
};
template <int isa>
void add(Calls& calls) {
  ++calls.of[isa];
}

}  // namespace

// What adds kernels is compiled for its instruction set: to call it on a CPU without that one ends
// the program.
TEST_CASE("a table of kernels is made by the functions of its own instruction set alone, once") {
#if defined(__x86_64__)
  const auto table = [](Isa isa) -> const Calls& {
    return table_of<Calls>(isa, {{add<0>, add<1>, add<2>}, {add<0>, add<1>, add<2>}});
  };
  for (const Isa isa : {Isa::avx2, Isa::baseline, Isa::avx512, Isa::avx2}) {
    const Calls& calls = table(isa);
    for (int i = 0; i < 3; ++i) CHECK(calls.of[i] == (i == static_cast<int>(isa) ? 2 : 0));
    CHECK(&calls == &table(isa));
  }
#else
  const Calls& calls = table_of<Calls>(Isa::baseline, {{add<0>}, {add<0>}});
  CHECK(calls.of[0] == 2);
#endif
}

}  // namespace dpt
