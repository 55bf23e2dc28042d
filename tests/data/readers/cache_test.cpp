#include "data/readers/cache.h"

#include <cstdlib>

#include "../folder.h"
#include "data/readers/idx.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

// Points the user's cache into a folder of its own, for as long as it lives.
class CacheIn {
 public:
  explicit CacheIn(const std::string& folder) {
    if (const char* old = std::getenv("XDG_CACHE_HOME")) old_ = old;
    ::setenv("XDG_CACHE_HOME", folder.c_str(), 1);
    ::unsetenv("DPTRAIN_NO_CACHE");
  }
  ~CacheIn() {
    if (old_.empty())
      ::unsetenv("XDG_CACHE_HOME");
    else
      ::setenv("XDG_CACHE_HOME", old_.c_str(), 1);
  }
  CacheIn(const CacheIn&) = delete;
  CacheIn& operator=(const CacheIn&) = delete;

 private:
  std::string old_;
};

std::string contents(const Table& t) {
  return {reinterpret_cast<const char*>(t.data.get()),
          static_cast<size_t>(t.desc.shape.elements())};
}

const std::vector<uint32_t> kLarge = {2000, 28, 28};  // worth a copy

std::string only_copy(const Folder& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder.path()))
    if (entry.is_regular_file()) return entry.path().string();
  return "";
}

TEST_CASE("the second reading takes the copy, which gives the same bytes") {
  const Folder folder, cache;
  const CacheIn in(cache.path());
  const std::string path = folder.write("images.gz", gzip(idx_bytes(kLarge)));
  CHECK(cache_entry(path)->open() == nullptr);
  const std::string first = contents(read_idx(path));
  CHECK(cache_entry(path)->open() != nullptr);
  CHECK(contents(read_idx(path)) == first);
  CHECK(fs::path(only_copy(cache)).filename().string().ends_with("-images"));
}

TEST_CASE("a changed file is read anew") {
  const Folder folder, cache;
  const CacheIn in(cache.path());
  const std::string path = folder.write("images.gz", gzip(idx_bytes(kLarge), 1));
  read_idx(path);
  std::string other = idx_bytes(kLarge);
  other[1000] = static_cast<char>(other[1000] ^ 1);
  const auto when = fs::last_write_time(path);
  folder.write("images.gz", gzip(other, 1));
  fs::last_write_time(path, when);  // even if the clock says that it is the same
  CHECK(contents(read_idx(path)) == other.substr(16));
  CHECK(contents(read_idx(path)) == other.substr(16));
}

TEST_CASE("a damaged or cut copy is passed over") {
  const Folder folder, cache;
  const CacheIn in(cache.path());
  const std::string path = folder.write("images.gz", gzip(idx_bytes(kLarge)));
  const std::string good = contents(read_idx(path)), copy = only_copy(cache),
                    bytes = read_file(copy);
  for (const size_t at : {size_t{3}, size_t{20}, size_t{70}, size_t{90}, bytes.size() - 1}) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 16);
    std::ofstream(copy, std::ios::binary) << damaged;
    CHECK(contents(read_idx(path)) == good);
    CHECK(read_file(copy) == bytes);  // and written again
  }
  std::ofstream(copy, std::ios::binary) << bytes.substr(0, bytes.size() - 10);
  CHECK(contents(read_idx(path)) == good);
}

TEST_CASE("no cache folder, none that may be written, none wanted: no copy, no complaint") {
  const Folder folder, cache;
  const std::string path = folder.write("images.gz", gzip(idx_bytes(kLarge)));
  {
    const CacheIn in(folder.write("a file", ""));
    CHECK(read_idx(path).size() == 2000);
  }
  const CacheIn in(cache.path());
  ::setenv("DPTRAIN_NO_CACHE", "1", 1);
  CHECK(read_idx(path).size() == 2000);
  CHECK(only_copy(cache).empty());
  ::unsetenv("DPTRAIN_NO_CACHE");
  read_idx(folder.write("small.gz", gzip(idx_bytes({10, 28, 28}))));
  CHECK(only_copy(cache).empty());
}

}  // namespace
}  // namespace dpt
