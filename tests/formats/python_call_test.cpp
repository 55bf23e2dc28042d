#include "formats/python_call.h"

#include <limits>

#include <doctest/doctest.h>

namespace dpt {

TEST_CASE("Python literals read back as the same value and type") {
  CHECK(python(true) == "True");
  CHECK(python(int64_t{30}) == "30");
  CHECK(python(1.0) == "1.0");
  CHECK(python(1.0 / 3) == "0.3333333333333333");
  CHECK(python(1e-8) == "1e-08");
  CHECK(python(std::numeric_limits<double>::infinity()) == "float(\"inf\")");
  CHECK(python(std::string("cos")) == "\"cos\"");
  CHECK(python("a\"b\\c\td") == R"("a\"b\\c\td")");
  CHECK(python("ö\x1b[2J\x7f\xc2\x9b") == R"("ö\x1b[2J\x7f\x9b")");
  CHECK(python(std::vector<double>{0.9, 1}) == "[0.9, 1.0]");
  CHECK(python(std::vector<int64_t>{}) == "[]");
}

TEST_CASE("arguments that are torch's defaults are left out") {
  PythonCall call("optim.SGD");
  call.expression("model.parameters()").key("lr", 0.1).key("momentum", 0.0, 0.0);
  CHECK(call.key("nesterov", true, false).str() ==
        "optim.SGD(model.parameters(), lr=0.1, nesterov=True)");
  CHECK(PythonCall("nn.Linear").arg(int64_t{5}).expression("bias", "b").str() ==
        "nn.Linear(5, bias=b)");
}

}  // namespace dpt
