#include <filesystem>

#include <doctest/doctest.h>
#include <sys/wait.h>

#include "base/files.h"
#include "cli/process.h"
#include "paths.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

// The program in a prefix, run from an empty directory beside it.
struct Prefix {
  Folder folder;
  std::string bin = folder.file("prefix/bin"), share = folder.file("prefix/share/dptrain"),
              empty = folder.file("empty");

  Prefix() {
    for (const std::string& made : {bin, share, empty}) fs::create_directories(made);
    fs::copy(program(), bin + "/dptrain");
    fs::copy(source_file("configs"), share + "/configs", fs::copy_options::recursive);
    fs::create_directories(share + "/tools");
    fs::copy(source_file("tools/fetch_data.sh"), share + "/tools");
  }

  Finished run(const std::string& words) const {
    const std::string out = folder.file("out"), err = folder.file("err");
    const int status =
        std::system(("cd '" + empty + "' && DPTRAIN_DATA= HOME=/none XDG_CACHE_HOME=/none '" + bin +
                     "/dptrain' " + words + " >'" + out + "' 2>'" + err + "'")
                        .c_str());
    return {WEXITSTATUS(status), read_file(out, 1 << 20), read_file(err, 1 << 20)};
  }
};

TEST_CASE("an installed program reads configs of its prefix that are not here") {
  const Prefix prefix;
  const std::string installed = prefix.share + "/configs/ddp_toy.yaml";
  const Finished check = prefix.run("check configs/ddp_toy.yaml");
  CHECK(check.code == 0);
  CHECK(check.err == "configs/ddp_toy.yaml does not exist; reading " + installed + "\n");
  CHECK(has(prefix.run("doctor").out, prefix.share + "/configs"));

  fs::create_directories(prefix.empty + "/configs");
  fs::copy(installed, prefix.empty + "/configs/ddp_toy.yaml");
  CHECK(prefix.run("check configs/ddp_toy.yaml").err.empty());
  const Finished none = prefix.run("check configs/none.yaml");
  CHECK(none.code == 2);
  CHECK(has(none.err, "configs/none.yaml"));
  CHECK_FALSE(has(none.err, prefix.share));
  CHECK(prefix.run("check ddp_toy.yaml").code == 2);
}

TEST_CASE("without data, the script to run is the one that is there") {
  const Prefix prefix;
  const std::string script = prefix.share + "/tools/fetch_data.sh";
  const std::string check = "check configs/fmnist_ddp.yaml";
  const Finished installed = prefix.run(check);
  REQUIRE(installed.code == 4);
  CHECK(has(installed.err, "Run " + script + " fashion_mnist,"));
  fs::create_directories(prefix.empty + "/tools");
  fs::copy(script, prefix.empty + "/tools");
  CHECK(has(prefix.run(check).err, "Run tools/fetch_data.sh fashion_mnist,"));
}

}  // namespace
}  // namespace dpt
