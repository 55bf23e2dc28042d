// One process of mpirun: runs the cases of all links over MPI. mpi_links.sh starts it.
//
//   mpi_links version               MPI's version; exit code 77 and the reason if there is none
//   mpi_links cases FOLDER          prints 'N passed' if all is well
//   mpi_links killed FOLDER         rank 1 is killed amid messages; rank 0 prints the message
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>

#include "comm/links/conformance.h"
#include "comm/links/connect_link.h"
#include "comm/links/gather_files.h"
#include "comm/links/load.h"

namespace dpt {
namespace {

int number_of(const char* a, const char* b) {
  const char* const text = std::getenv(a) ? std::getenv(a) : std::getenv(b);
  return text ? std::atoi(text) : 0;
}

std::unique_ptr<Link> connect(const std::string& folder, int host, int hosts, double timeout_s) {
  std::filesystem::create_directories(folder);
  return connect_link("mpi", {.host = host,
                              .hosts = hosts,
                              .address = "",
                              .timeout_s = timeout_s,
                              .all_gather = gather_files(folder, host, hosts)});
}

int run_cases(const std::string& folder, int rank, int ranks) {
  int passed = 0;
  for (const LinkCase& c : link_cases())
    for (const int hosts : {2, 3, 5}) {
      if (hosts > ranks || (c.hosts != 0 && c.hosts != hosts)) continue;
      // The leaders are the last ranks, so that a host's number is not its rank.
      const int host = rank - (ranks - hosts);
      if (host < 0) continue;
      const auto link =
          connect(fmt::format("{}/{}.{}", folder, c.name, hosts), host, hosts, c.timeout_s);
      try {
        c.body(*link);
        ++passed;
      } catch (const std::exception& e) {
        fmt::print("FAILED: {} on {} hosts, host {}: {}\n", c.name, hosts, host, e.what());
        std::fflush(stdout);
        return 1;
      }
    }
  if (rank == ranks - 1) fmt::print("{} passed\n", passed);
  return 0;
}

int be_killed(const std::string& folder, int rank) {
  const auto link = connect(folder, rank, 2, 1);
  std::vector<std::byte> small(1), large(size_t{64} << 20), never(1);
  if (rank == 1) {
    const Link::Request r = link->receive(0, 0, small);
    link->send(0, 1, large);
    link->wait(r);
    return raise(SIGKILL);
  }
  link->wait(link->send(1, 0, small));
  const std::string text = rank_error([&] {
    link->wait(link->receive(1, 1, large));
    link->wait(link->receive(1, 2, never));
  });
  fmt::print("{}\n", text);
  std::fflush(stdout);
  std::_Exit(6);
}

int run(const std::vector<std::string_view>& words) {
  const LoadedLinkModule& loaded = loaded_link_module("mpi");
  if (!loaded.module) {
    fmt::print("skipped: {}\n", loaded.problem);
    return 77;
  }
  if (words.at(1) == "version") {
    fmt::print("{}\n", loaded.module->build());
    return 0;
  }
  const int rank = number_of("OMPI_COMM_WORLD_RANK", "PMI_RANK");
  const int ranks = number_of("OMPI_COMM_WORLD_SIZE", "PMI_SIZE");
  loaded.module->start();
  const std::string folder(words.at(2));
  const int code = words[1] == "cases" ? run_cases(folder, rank, ranks) : be_killed(folder, rank);
  loaded.module->stop();
  return code;
}

}  // namespace
}  // namespace dpt

int main(int count, char** words) {
  try {
    return dpt::run({words, words + count});
  } catch (const std::exception& e) {
    fmt::print("FAILED: {}\n", e.what());
    return 1;
  }
}
