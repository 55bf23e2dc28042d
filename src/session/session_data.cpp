#include "session/session_data.h"

#include <numeric>

namespace dpt {

std::vector<uint32_t> SessionData::test_order() const {
  if (!test_rows.empty()) return test_rows;
  std::vector<uint32_t> out(static_cast<size_t>(test->size()));
  std::iota(out.begin(), out.end(), 0U);
  return out;
}

}  // namespace dpt
