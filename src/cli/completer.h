// Completes command lines, for the scripts that `dptrain completion SHELL` prints.
#pragma once

#include <string>
#include <vector>

namespace dpt {

// What `dptrain __complete ...` prints. words: a shell, then
//   zsh, fish:  the words before the cursor, without the program's name; the last may be empty
//   bash:       the line before the cursor, and $COMP_WORDBREAKS
// The first line is `words`, or `files` or `specs` if the shell adds names of files or of YAML
// files. For bash, the second line is what these names begin with. The other lines are candidates:
// what the last word becomes, a tab and a help text; for bash, what replaces the part of the last
// word behind its last break, with backslashes where it needs them.
std::string completions(const std::vector<std::string>& words);

}  // namespace dpt
