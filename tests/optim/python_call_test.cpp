#include "optim/python_call.h"

#include <limits>

#include <doctest/doctest.h>

namespace dpt {
namespace {

TEST_CASE("Python literals read back as the same value and type") {
  CHECK(PythonCall::literal(true) == "True");
  CHECK(PythonCall::literal(int64_t{30}) == "30");
  CHECK(PythonCall::literal(1.0) == "1.0");
  CHECK(PythonCall::literal(1.0 / 3) == "0.3333333333333333");
  CHECK(PythonCall::literal(1e-8) == "1e-08");
  CHECK(PythonCall::literal(std::numeric_limits<double>::infinity()) == "float(\"inf\")");
  CHECK(PythonCall::literal(std::string("cos")) == "\"cos\"");
  CHECK(PythonCall::literal(std::vector<double>{0.9, 1}) == "[0.9, 1.0]");
  CHECK(PythonCall::literal(std::vector<int64_t>{}) == "[]");
}

TEST_CASE("arguments that are torch's defaults are left out") {
  PythonCall call("optim.SGD", "model.parameters()");
  call.arg("lr", 0.1).arg("momentum", 0.0, 0.0).arg("nesterov", true, false);
  CHECK(call.str() == "optim.SGD(model.parameters(), lr=0.1, nesterov=True)");
}

}  // namespace
}  // namespace dpt
