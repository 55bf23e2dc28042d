#!/usr/bin/env python3
"""How far `dptrain plan --link` is from steps of two hosts that this machine pretends to be, each with one core.

host_time.py DPTRAIN LINK [--rounds N]: LINK is the program of tools/bench/link.cpp (ninja -C build tests/link), which
measures the link that predictions are given. Rows of `loopback` train over 127.0.0.x. Rows with a rate train in two
network namespaces between which `tc tbf` limits it; they are skipped without root, ip and tc. The goal is an error of
at most 10 % per row. Run it on an idle machine with two cores.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

import hosts
import machine

CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs"
ROWS = [
    ("vgg", ["data.batch_size=64", "data.limit=1280"]),
    ("vgg", ["data.batch_size=256", "data.limit=1280"]),
    ("fmnist_single", ["data.batch_size=200"]),
    ("fmnist_single", ["data.batch_size=2000"]),
    ("gpt_shakespeare", ["data.batch_size=32", "data.limit=640"]),
]
COMMON = ["parallel=ddp", "devices=1", "cores=1", "evaluate=false", "epochs=3"]
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}


class Loopback:
    name = "loopback"
    places = ["127.0.0.1", "127.0.0.2"]  # what LINK takes

    @staticmethod
    def prefix(_):
        return []

    @staticmethod
    def environment(host):
        return {"DPTRAIN_NODE": str(host)}


class Limited:
    """The namespaces of hosts.py."""

    def __init__(self, rate):
        self.name = rate
        self.places = [f(host) for f in (hosts.address, hosts.space) for host in range(2)]

    @staticmethod
    def prefix(host):
        return ["ip", "netns", "exec", hosts.space(host)]

    @staticmethod
    def environment(_):
        return {"MASTER_ADDR": hosts.address(0), "DPTRAIN_TRUST_NETWORK": "1"}


def predicted(dptrain, spec, words, link):
    """Both cores measure at once, as both compute in the run."""
    commands = [["taskset", "-c", str(core), dptrain, "plan", spec, *words, "--hosts", "2", "--link", link]
                for core in range(2)]  # fmt: skip
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    times = []
    for each in both:
        out, _ = each.communicate()
        row = re.search(r"^ +2  +\d.*$", out, re.MULTILINE)
        if not row:
            sys.exit(f"{' '.join(each.args)} printed no row of 2 hosts: {out}")
        number, unit = re.split(r" {2,}", row[0].strip())[4].split()
        times.append(float(number) * UNITS[unit])
    return statistics.fmean(times)


def measured(dptrain, spec, words, network):
    """Seconds of a step: the median of the epochs after the first, which touches memory for the first time."""
    with tempfile.TemporaryDirectory() as folder:
        ranks = []
        for host in range(2):
            command = [*network.prefix(host), "taskset", "-c", str(host), dptrain, spec, *words, f"out={folder}/run"]
            variables = {"RANK": str(host), "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1",
                         "GROUP_RANK": str(host), "MASTER_PORT": "29611", **network.environment(host)}  # fmt: skip
            ranks.append(subprocess.Popen(command, env={**os.environ, **variables}, text=True,
                                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))  # fmt: skip
        errors = [rank.communicate()[1] for rank in ranks]
        if any(rank.returncode for rank in ranks):
            sys.exit("; ".join(errors))
        lines = pathlib.Path(folder, "run", "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        epochs = [r["seconds"] / r["steps"] for r in map(json.loads, lines) if "seconds" in r]
        return statistics.median(epochs[1:])


def rows(arguments, network):
    """Prints a row for each spec; their errors."""
    errors = []
    for name, words in ROWS:
        spec, words = str(CONFIGS / f"{name}.yaml"), [*COMMON, *words]
        links, pairs = [], []
        for _ in range(arguments.rounds):
            command = [arguments.link, *network.places]
            links.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
            pairs.append((predicted(arguments.dptrain, spec, words, links[-1]),
                          measured(arguments.dptrain, spec, words, network)))  # fmt: skip
        said, took = (statistics.median(each) for each in zip(*pairs))
        errors.append(abs(said / took - 1))
        print(f"{network.name:<9} {name:<16} {words[len(COMMON)][5:]:<15} link {links[-1]:<24} predicted "
              f"{1e3 * said:8.3f} ms, measured {1e3 * took:8.3f} ms, error {100 * (said / took - 1):+6.1f} %",
              flush=True)  # fmt: skip
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dptrain")
    parser.add_argument("link")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rates", nargs="*", default=["200mbit", "100mbit"])
    arguments = parser.parse_args()
    print(machine.describe(range(2)))
    errors = rows(arguments, Loopback())
    for rate in arguments.rates:
        if os.geteuid() != 0 or not (shutil.which("ip") and shutil.which("tc")):
            print(f"{rate}: skipped: needs root, ip and tc")
            continue
        with contextlib.ExitStack() as stack:
            try:
                # A burst passes at once, as no link does. With less, the kernel misses the rate.
                stack.enter_context(hosts.network(rate, burst="32kb"))
            except SystemExit as error:  # the kernel has no namespaces, or no tbf
                print(f"{rate}: skipped: {error}")
                continue
            errors += rows(arguments, Limited(rate))
    print(f"{sum(e <= 0.1 for e in errors)} of {len(errors)} rows within 10 %, "
          f"median error {100 * statistics.median(errors):.1f} %")  # fmt: skip


if __name__ == "__main__":
    main()
