#!/usr/bin/env bash
# Two network namespaces as two hosts, to try runs on several machines on one (docs/several-machines.md).
set -u

usage() {
  cat <<'TEXT'
Usage: tools/two_hosts.sh up | down | run COMMAND... | on ADDRESS COMMAND...
  up    makes the network namespaces 10.77.0.1 and 10.77.0.2, each with one interface that has this address
  run   runs COMMAND on both at once, as hosta and hostb, with the variables of ranks 0 and 1 (RANK, WORLD_SIZE,
        LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR). Exits with the first code that is not 0
  on    runs COMMAND on one of them, as mpirun --mca plm_rsh_agent 'tools/two_hosts.sh on' does
  down  removes them
It needs root. Without root, first start a shell in which you are root over namespaces of your own:
  unshare --map-root-user --mount --net sh -c 'mount -t tmpfs tmpfs /run && ip link set lo up && exec bash'
TEXT
}

addresses=(10.77.0.1 10.77.0.2) names=(hosta hostb)

fail() {  # what happened, what to do
  printf 'two_hosts.sh: error: %s\n  %s\n' "$1" "$2" >&2
  exit 1
}

up() {
  for a in "${addresses[@]}"; do
    ip netns add "$a" ||
      fail "the network namespace $a cannot be made" 'run it as root (see --help), or first "down" if it exists'
  done
  ip link add eth0 netns "${addresses[0]}" type veth peer name eth0 netns "${addresses[1]}" || exit 1
  for a in "${addresses[@]}"; do
    ip -n "$a" address add "$a/24" dev eth0 && ip -n "$a" link set lo up && ip -n "$a" link set eth0 up || exit 1
  done
}

down() {
  for a in "${addresses[@]}"; do ip netns delete "$a"; done
}

# Runs a command on host $1 (0 or 1), which has a name of its own there.
on_host() {
  local k=$1
  shift
  # shellcheck disable=SC2016  # the inner shell expands it
  exec ip netns exec "${addresses[k]}" unshare --uts sh -c 'hostname "$0" && exec "$@"' "${names[k]}" "$@"
}

run() {
  local pids=() code=0 one
  for k in 0 1; do
    (
      export RANK=$k WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=${addresses[0]}
      on_host "$k" "$@"
    ) &
    pids+=($!)
  done
  trap 'kill -INT "${pids[@]}" 2>/dev/null' INT TERM
  for pid in "${pids[@]}"; do
    wait "$pid"
    one=$?
    [ "$code" -ne 0 ] || code=$one
  done
  exit "$code"
}

[ $# -gt 0 ] || { usage >&2; exit 2; }
command=$1
shift
case $command in
  up | down) [ $# -eq 0 ] || { usage >&2; exit 2; }; "$command" ;;
  run) [ $# -gt 0 ] || { usage >&2; exit 2; }; run "$@" ;;
  on)
    [ $# -gt 1 ] || { usage >&2; exit 2; }
    for k in 0 1; do
      if [ "$1" = "${addresses[k]}" ]; then
        shift
        on_host "$k" sh -c "$*"  # as ssh does: one text for the shell
      fi
    done
    fail "there is no host $1" "its hosts are ${addresses[*]}"
    ;;
  -h | --help) usage ;;
  *) printf 'two_hosts.sh: unknown command %s\n' "$command" >&2; usage >&2; exit 2 ;;
esac
