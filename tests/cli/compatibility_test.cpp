// Files of earlier versions, in tests/fixtures/VERSION, that every later version must read. They
// are never renewed: a version that writes other files gets a folder of its own.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "cli/process.h"
#include "paths.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

// A copy of tests/fixtures/0.1.0: spec.yaml, and run/, as version 0.1.0 left it, with the
// checkpoint of step 5 of 12.
struct Fixture {
  Folder folder;
  Fixture() { fs::copy(test_file("fixtures/0.1.0"), folder.path(), fs::copy_options::recursive); }
  Finished run(const std::vector<std::string>& words) const {
    return dptrain(words, {}, folder.path());
  }
  // Other instruction sets and compilers round differently.
  void check_same(const std::string& a, const std::string& b) const {
    const Finished f = run({"compare", a, b, "--rtol", "1e-3", "--atol", "1e-4"});
    CHECK_MESSAGE(f.code == 0, (f.out + f.err));
    CHECK(f.out.find("weights of 16 tensors") != f.out.npos);
  }
};

}  // namespace

TEST_CASE("a spec of version 0.1.0 trains what it trained there") {
  const Fixture fixture;
  const Finished sound = fixture.run({"check", "spec.yaml"});
  CHECK_MESSAGE(sound.code == 0, sound.err);
  CHECK(sound.err.empty());  // no warning either
  const Finished f = fixture.run({"spec.yaml", "out=again"});
  CHECK_MESSAGE(f.code == 0, f.err);
  fixture.check_same("run", "again");
}

TEST_CASE("a checkpoint of version 0.1.0 is resumed, in the middle of an epoch") {
  const Fixture fixture;
  fs::copy(fixture.folder.file("run"), fixture.folder.file("rest"), fs::copy_options::recursive);
  fs::remove(fixture.folder.file("rest/model.safetensors"));
  const Finished f = fixture.run({"spec.yaml", "out=rest", "--resume", "auto"});
  CHECK_MESSAGE(f.code == 0, f.err);
  CHECK_MESSAGE(f.err.find("5 in total") != f.err.npos, f.err);
  CHECK(f.out.starts_with("Epoch [2/4]"));
  fixture.check_same("run", "rest");
}

TEST_CASE(
    "a run directory of version 0.1.0 is read by eval, runs, compare and as initial weights") {
  const Fixture fixture;
  const Finished loss = fixture.run({"eval", "spec.yaml", "--weights", "run"});
  CHECK_MESSAGE(loss.code == 0, loss.err);
  CHECK_MESSAGE(loss.out.starts_with("Test loss: 0.435"), loss.out);
  const Finished resolved = fixture.run({"check", "run/spec.resolved.yaml"});
  CHECK_MESSAGE(resolved.code == 0, resolved.err);
  const Finished table = fixture.run({"runs", "run", "--json"});
  CHECK_MESSAGE(table.code == 0, table.err);
  CHECK_MESSAGE(has(table.out, R"("test.loss": 0.435333705, )"), table.out);
  const Finished sorted = fixture.run({"runs", "run", "--csv", "--sort", "last_test_loss"});
  CHECK_MESSAGE(has(sorted.out, ",test.loss,best.test.loss,"), sorted.err);
  const Finished self = fixture.run({"compare", "run", "run/metrics.jsonl"});
  CHECK_MESSAGE(self.code == 0, (self.out + self.err));
  for (const char* weights :
       {"run/model.safetensors", "run/checkpoints/step-000005/model.safetensors"}) {
    const Finished f = fixture.run({"spec.yaml", "out=next", "epochs=null", "steps=1",
                                    std::string("initial_weights=") + weights});
    CHECK_MESSAGE(f.code == 0, f.err);
  }
}

}  // namespace dpt
