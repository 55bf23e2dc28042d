// Files that are installed beside the program. They are found relative to it, so that an installed
// tree may be moved.
#pragma once

#include <string>
#include <string_view>

namespace dpt {

// The directory of the running program's file, links followed; empty where /proc is missing.
std::string program_folder();

// The path of a file or directory below share/dptrain of the prefix that the program is installed
// in: PREFIX/share/dptrain/NAME for PREFIX/bin/dptrain. Empty if there is none.
std::string installed_file(std::string_view name);

// How to build again, after `packages` are installed, with what they bring: a part of a message.
std::string build_again_with(std::string_view packages);

}  // namespace dpt
