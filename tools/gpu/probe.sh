#!/usr/bin/env bash
# Runs the probes of an unpacked bundle of tools/gpu/bundle.sh on a machine with a GPU: probe.sh --help
exec python3 "$(dirname "${BASH_SOURCE[0]}")/probe.py" "$@"
