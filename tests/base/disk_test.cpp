#include "base/disk.h"

#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <system_error>
#include <thread>

#include <doctest/doctest.h>
#include <pthread.h>
#include <sys/stat.h>

#include "base/files.h"
#include "data/folder.h"

namespace dpt {
namespace {

// A disk in memory that knows what a crash may leave of it: the bytes of a file that were synced,
// and the names of a folder that were, as POSIX promises them; or more.
class CrashingDisk : public Disk {
 public:
  std::function<void()> after;  // each call
  bool syncs = true;            // false: folders are not, which must show

  int make_folder(const std::string& path) override {
    return add(path, true) ? done(0) : error(EEXIST);
  }
  int create(const std::string& path) override {
    return add(path, false) ? done(find(path)) : error(EEXIST);
  }
  int open_folder(const std::string& path) override { return done(find(path)); }
  ssize_t write(int fd, const std::byte* bytes, size_t count) override {
    const std::scoped_lock lock(mutex_);
    count = std::min<size_t>(count, 3);  // short ones are no errors
    nodes_[static_cast<size_t>(fd)].data.append(reinterpret_cast<const char*>(bytes), count);
    if (after) after();
    return static_cast<ssize_t>(count);
  }
  int sync(int fd) override {
    const std::scoped_lock lock(mutex_);
    Node& n = nodes_[static_cast<size_t>(fd)];
    if (!n.folder || syncs) n.synced = n.data, n.kept = n.names;
    if (after) after();
    return 0;
  }
  int close(int) override { return 0; }
  int rename(const std::string& from, const std::string& to) override {
    Node& up = parent(from);
    if (!up.names.contains(name(from)) || parent(to).names.contains(name(to))) return error(ENOENT);
    parent(to).names[name(to)] = up.names[name(from)];
    up.names.erase(name(from));
    return done(0);
  }
  int remove(const std::string& path) override {
    parent(path).names.erase(name(path));
    return done(0);
  }

  // The folders of the root and their files' bytes, of what a crash now may leave. root, inner:
  // whether names that were not synced are there; data: how much of such bytes: 0, 1 or 2 halves.
  std::map<std::string, std::map<std::string, std::string>> left(bool root, bool inner,
                                                                 size_t data) const {
    std::map<std::string, std::map<std::string, std::string>> out;
    for (const auto& [folder, number] : root ? nodes_[0].names : nodes_[0].kept) {
      const Node& n = nodes_[number];
      for (const auto& [file, inode] : inner ? n.names : n.kept) {
        const Node& f = nodes_[inode];
        const size_t more = f.data.size() - f.synced.size();
        out[folder][file] = f.data.substr(0, f.synced.size() + more * data / 2);
      }
    }
    return out;
  }

 private:
  struct Node {
    bool folder = false;
    std::string data, synced;
    std::map<std::string, size_t> names, kept;
  };
  int done(int value) {
    if (after) after();
    return value;
  }
  static int error(int code) {
    errno = code;
    return -1;
  }
  static std::string name(const std::string& path) { return path.substr(path.rfind('/') + 1); }
  Node& parent(const std::string& path) {
    const size_t slash = path.rfind('/');
    return nodes_[slash == path.npos ? 0 : static_cast<size_t>(find(path.substr(0, slash)))];
  }
  int find(const std::string& path) {
    if (path == ".") return 0;
    const auto& names = parent(path).names;
    const auto at = names.find(name(path));
    return at == names.end() ? -1 : static_cast<int>(at->second);
  }
  bool add(const std::string& path, bool folder) {
    if (find(path) >= 0) return false;
    nodes_.push_back({.folder = folder});
    parent(path).names[name(path)] = nodes_.size() - 1;
    return true;
  }

  std::mutex mutex_;  // files are written at once, folders are not changed meanwhile
  std::vector<Node> nodes_{{.folder = true}};
};

struct Files {
  std::map<std::string, std::string> texts;
  std::vector<FileContent> content() const {
    std::vector<FileContent> out;
    for (const auto& [name, text] : texts) {
      const auto bytes = std::as_bytes(std::span(text));
      out.push_back({name, {bytes.first(bytes.size() / 2), bytes.subspan(bytes.size() / 2)}});
    }
    return out;
  }
};

const Files kOne{{{"a", "the first file"}, {"b", "another"}}};
const Files kTwo{{{"a", "the first file, later"}, {"b", "one more"}, {"c", ""}}};

// How many states that a crash may leave were looked at, and how many of them broke the promise: a
// folder with its own name is whole, and once one is written there is always one.
struct Looked {
  size_t states = 0, broken = 0;
};

Looked look_at_crashes(bool syncs) {
  CrashingDisk disk;
  Looked out;
  bool written = false;
  disk.syncs = syncs;
  disk.after = [&] {
    for (const int state : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}) {
      bool any = false, whole = true;
      for (const auto& [name, files] :
           disk.left(state % 2 == 1, state / 2 % 2 == 1, static_cast<size_t>(state / 4))) {
        if (is_aside(name)) continue;
        any = true;
        whole = whole && files == (name == "one" ? kOne : kTwo).texts;
      }
      ++out.states;
      out.broken += !whole || (written && !any);
    }
  };
  write_folder(disk, "one", kOne.content());
  written = true;
  write_folder(disk, "two", kTwo.content());
  CHECK(remove_folder(disk, "one"));
  return out;
}

TEST_CASE("after a crash at any time a folder is whole or not there, and one is there") {
  const Looked looked = look_at_crashes(true);
  CHECK(looked.states > 500);
  CHECK(looked.broken == 0);
  CHECK(look_at_crashes(false).broken > 0);  // so the check sees what syncs are for
}

// The n-th call fails, as on a disk that is full.
class FullDisk : public Disk {
 public:
  explicit FullDisk(int n) : left_(n) {}
  bool failed() const { return left_ <= 0; }
  int make_folder(const std::string& p) override { return full() ? -1 : Disk::make_folder(p); }
  int create(const std::string& p) override { return full() ? -1 : Disk::create(p); }
  int open_folder(const std::string& p) override { return full() ? -1 : Disk::open_folder(p); }
  ssize_t write(int fd, const std::byte* bytes, size_t count) override {
    if (full()) return count % 2 == 0 ? -1 : 0;  // or, without an error, nothing
    return Disk::write(fd, bytes, std::min<size_t>(count, 5));
  }
  int sync(int fd) override { return full() ? -1 : Disk::sync(fd); }
  int rename(const std::string& a, const std::string& b) override {
    return full() ? -1 : Disk::rename(a, b);
  }

 private:
  bool full() {
    errno = ENOSPC;
    return --left_ == 0;
  }
  std::atomic<int> left_;
};

std::map<std::string, std::string> files_in(const std::string& folder) {
  std::map<std::string, std::string> out;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    out[file.path().filename().string()] = read_file(file.path().string());
  return out;
}

TEST_CASE("whichever call fails, what was there stays and nothing is left behind") {
  const Folder folder;
  Disk disk;
  write_folder(disk, folder.file("one"), kOne.content());
  int n = 1;
  for (bool clean = false; !clean; ++n) {
    CAPTURE(n);
    REQUIRE(n < 100);
    FullDisk full(n);
    bool threw = false;
    try {
      write_folder(full, folder.file("two"), kTwo.content());
    } catch (const Error& e) {
      threw = true;
      CHECK(std::string(e.what()).find("No space left on device") != std::string::npos);
    }
    clean = !full.failed();
    CHECK(threw != clean);
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      names.insert(entry.path().filename().string());
    CHECK(files_in(folder.file("one")) == kOne.texts);
    const bool there = names.contains("two");  // the last sync may fail when all is there
    CHECK(names.size() == (there ? 2 : 1));
    if (clean) CHECK(there);
    if (there) CHECK(files_in(folder.file("two")) == kTwo.texts);
    disk.remove(folder.file("two"));
  }
  CHECK(n > 20);
  CHECK_THROWS_AS(write_folder(disk, folder.file("no/folder"), kOne.content()), Error);
}

TEST_CASE(
    "whichever call fails, a file is the old one or the new one, and nothing is left behind") {
  const Folder folder;
  const std::string path = folder.file("file");
  int n = 1;
  for (bool clean = false; !clean; ++n) {
    CAPTURE(n);
    REQUIRE(n < 100);
    Disk disk;
    write_file(disk, path, "the old text");
    FullDisk full(n);
    bool threw = false;
    try {
      write_file(full, path, "the new text");
    } catch (const DiskFull& e) {
      threw = true;
      CHECK(std::string(e.what()) ==
            path + " cannot be written: No space left on device; free some disk space");
    }
    clean = !full.failed();
    CHECK(files_in(folder.path()) ==
          std::map<std::string, std::string>{{"file", threw ? "the old text" : "the new text"}});
  }
  CHECK(n > 5);
}

TEST_CASE("a file that fails its check leaves what was there") {
  const Folder folder;
  folder.write("file", "old");
  Disk disk;
  const auto refuse = [&](const std::string& made) {
    CHECK(read_file(made) == "new");
    throw Error(Fault::data, "wrong");
  };
  CHECK_THROWS_AS(write_file(disk, folder.file("file"), "new", refuse), Error);
  CHECK(read_file(folder.file("file")) == "old");
  const std::filesystem::directory_iterator files(folder.path());
  CHECK(std::distance(begin(files), end(files)) == 1);
  write_file(disk, folder.file("file"), "new", [](const std::string&) {});
  CHECK(read_file(folder.file("file")) == "new");
}

TEST_CASE("a link is replaced by the file, and what it leads to stays") {
  const Folder folder;
  folder.write("elsewhere", "somebody's");
  std::filesystem::create_symlink(folder.file("elsewhere"), folder.file("file"));
  Disk disk;
  write_file(disk, folder.file("file"), "ours");
  CHECK(read_file(folder.file("elsewhere")) == "somebody's");
  CHECK(read_file(folder.file("file")) == "ours");
  CHECK_FALSE(std::filesystem::is_symlink(folder.file("file")));
}

TEST_CASE("what a crash has left under temporary names is removed, and nothing else") {
  const Folder folder;
  folder.write("model.safetensors", "kept");
  folder.write(".aside-model.safetensors.4711", "half of one");
  folder.write(".aside-step-000001/a", "half of one");
  Disk disk;
  remove_asides(disk, folder.path());
  CHECK(files_in(folder.path()) ==
        std::map<std::string, std::string>{{"model.safetensors", "kept"}});
}

TEST_CASE("a folder is written where no thread can be started") {
  const Folder folder;
  pthread_attr_t before, huge;
  REQUIRE(pthread_getattr_default_np(&before) == 0);
  REQUIRE(pthread_getattr_default_np(&huge) == 0);
  REQUIRE(pthread_attr_setstacksize(&huge, size_t{1} << 50) == 0);  // more than there are addresses
  REQUIRE(pthread_setattr_default_np(&huge) == 0);
  Disk disk;
  bool started = true;
  try {
    std::thread([] {}).join();
  } catch (const std::system_error&) {
    started = false;
  }
  CHECK_NOTHROW(write_folder(disk, folder.file("one"), kOne.content()));
  std::future<void> thrown = start_beside([] { throw Error(Fault::data, "kept for get()"); });
  pthread_setattr_default_np(&before);
  pthread_attr_destroy(&before);
  pthread_attr_destroy(&huge);
  CHECK_FALSE(started);
  CHECK(files_in(folder.file("one")) == kOne.texts);
  CHECK_THROWS_AS(thrown.get(), Error);
}

// Knows the descriptor of what is reserved; fails with `error`, where that is not 0.
class Reserving : public Disk {
 public:
  int error = 0, fd = -1;
  int reserve(const std::string& folder, int64_t bytes) override {
    errno = error;
    return fd = error != 0 ? -1 : Disk::reserve(folder, bytes);
  }
};

TEST_CASE("room for a file is held until it is released, or refused at once") {
  const Folder folder;
  Reserving disk;
  const auto held = [&] {
    struct stat status {};
    REQUIRE(::fstat(disk.fd, &status) == 0);
    return int64_t{status.st_blocks} * 512;
  };
  {
    ReservedSpace room(disk, folder.file("file"), 1 << 20);
    if (disk.fd >= 0) {  // the file system of temporary files may have no such thing
      CHECK(held() >= 1 << 20);
      room.release();
      CHECK(held() == 0);
    }
  }
  CHECK(files_in(folder.path()).empty());
  disk.error = EOPNOTSUPP;
  CHECK_NOTHROW(ReservedSpace(disk, folder.file("file"), 1));
  disk.error = EDQUOT;
  CHECK_THROWS_AS(ReservedSpace(disk, folder.file("file"), 1), DiskFull);
  disk.error = EFBIG;
  CHECK_THROWS_WITH_AS(ReservedSpace(disk, folder.file("file"), 1),
                       doctest::Contains("raise the limit on the size of files (ulimit -f)"),
                       Error);
}

}  // namespace
}  // namespace dpt
