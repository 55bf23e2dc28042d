"""Judges how a run ended after a fault."""

import re
import signal
import time

from cluster import shared_memory

POSITION = re.compile(r"at epoch (\d+), step \d+")


def wrong_message(lines, names):
    """What is wrong with what a host says; empty: nothing."""
    if len(lines) != 1:
        return f"{len(lines)} messages: {lines}"
    line = lines[0]
    if not re.search(r"rank \d+ ", line) or not re.search(r"host \d+ \(", line) or not POSITION.search(line):
        return f"no rank, host, epoch and step: {line}"
    if not any(name in line for name in names):
        return f"none of {', '.join(names)}: {line}"
    return ""


def wrong_epoch(line, epoch):
    """Positions may be a step old, and host 0's output an epoch."""
    told = int(POSITION.search(line)[1])
    return "" if abs(told - epoch) <= 2 else f"host 0 was in epoch {epoch}: {line}"


def end_of_faulted_run(cluster, effect, began):
    """Waits for the end. Returns (what is wrong, seconds until the last rank ended)."""
    out_of_run = (*effect.killed, *effect.stopped)
    left = [r for r in cluster.ranks if r not in out_of_run]
    wrong = []
    if not cluster.wait(left, effect.limit_s + 10):
        return [f"{', '.join(str(r) for r in left if r.look() is None)} did not end"], time.monotonic() - began
    seconds = max(r.ended for r in left) - began if left else 0.0
    if seconds > effect.limit_s:
        wrong.append(f"took {seconds:.1f} s of {effect.limit_s} s")
    wrong += [f"{r} ended with {r.look()}" for r in left if r.look() != 6]
    for host in sorted({r.host for r in left}):
        lines = cluster.messages(host, out_of_run)
        problem = wrong_message(lines, effect.names)
        if not problem and cluster.ranks[0] not in out_of_run:
            problem = wrong_epoch(lines[0], cluster.epoch())
        if problem:
            wrong.append(f"host {host}: {problem}")
    # Who was suspended ends, too, once it runs again.
    for r in effect.stopped:
        r.process.send_signal(signal.SIGCONT)
    if not cluster.wait(effect.stopped, 5):
        wrong.append(f"{effect.stopped[0]} did not end when it ran again")
    cluster.wait(effect.killed, 5)
    return wrong, seconds


def left_behind(cluster, memory_before):
    time.sleep(0.05)
    return cluster.left_behind() + [f"/dev/shm/{name}" for name in sorted(shared_memory() - memory_before)]


def end_of_whole_run(cluster, limit_s=120):
    """What is wrong with a run that must end well."""
    if not cluster.wait(cluster.ranks, limit_s):
        return ["it did not end"]
    return [f"{r} ended with {r.look()}: {r.err.read_text()[-300:]}" for r in cluster.ranks if r.look() != 0]
