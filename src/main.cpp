#include "cli/command.h"

int main(int argc, char** argv) { return dpt::run_command_line(argc, argv); }
