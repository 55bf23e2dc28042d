#!/usr/bin/env bash
# Runs the cases of all links over MPI, in processes of mpirun: mpi_links.sh PROGRAM. Exit code 77: skipped.
set -u
program=$1
version=$("$program" version) || { printf '%s\n' "$version"; exit 77; }
if ! command -v mpirun >/dev/null; then
  printf 'skipped: no mpirun; install openmpi-bin or mpich\n'
  exit 77
fi
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
mpirun=(mpirun)
if mpirun --version | grep -q 'Open MPI'; then mpirun+=(--oversubscribe --bind-to none); fi

fail() {
  printf 'failed: %s\n%s\n' "$1" "$2"
  exit 1
}

printf '%s\n' "$version"
out=$("${mpirun[@]}" -np 5 "$program" cases "$folder/cases" 2>&1) || fail 'a case' "$out"
printf '%s\n' "$out" | grep -qx '[0-9]* passed' || fail 'the last rank says how many cases passed' "$out"
printf '%s\n' "$out"

# Open MPI ends all ranks when one is killed; with --enable-recovery the others notice it themselves.
if mpirun --version | grep -q 'Open MPI'; then
  out=$("${mpirun[@]}" --enable-recovery -np 2 "$program" killed "$folder/killed" 2>&1)
  printf '%s\n' "$out" | grep -q '^host 1: ' || fail 'rank 0 names the host that was killed' "$out"
  printf '%s\n' "$out" | grep '^host 1: '
fi
