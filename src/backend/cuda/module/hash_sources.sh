#!/bin/sh
# hash_sources.sh FILE...: a header with one hash of all of them.
set -eu
hash=$(cat -- "$@" | sha256sum)
printf '#pragma once\ninline constexpr const char* kDnnSources = "%s";\n' "${hash%% *}"
