#!/usr/bin/env python3
"""Compares dptrain on two hosts with PyTorch's DistributedDataParallel over gloo.

    tools/bench/hosts.py --dptrain build/src/dptrain --python venv/bin/python --data datasets

The hosts are two network namespaces, joined by a pair of virtual interfaces; each has one rank on one core. Programs
take turns. A row shows the median over the rounds of the seconds of an epoch after the first, and the bytes that a host
sends in a step beside those of an ideal all-reduce, 2 (N - 1) / N of the gradients. They are the interface's own count,
with the headers of TCP and IP, of the epochs after the first: the difference between a long and a short run. Needs
root, `ip` and, for --rate, `tc`.
"""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import machine
import workloads

HERE = pathlib.Path(__file__).resolve().parent
HOSTS = 2
CARD = "bench"  # the name of each host's interface
PARAMETERS = {"mlp": 784 * 200 + 200 + 200 * 200 + 200 + 200 * 10 + 10, "resnet": 25_557_032}
STEPS = {"mlp": 300, "resnet": workloads.RESNET_STEPS}
EPOCHS = {"mlp": 4, "resnet": 3}
PORT = 29500


def space(host):
    return f"dptrain-bench-{host}"


def address(host):
    return f"10.77.0.{host + 1}"


def sh(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stderr.strip()}")


@contextlib.contextmanager
def network(rate, burst="256kb"):
    """Two namespaces with an interface each; rate of each direction, and what passes at once, as tc writes them."""
    for host in range(HOSTS):
        subprocess.run(["ip", "netns", "del", space(host)], capture_output=True)
    try:
        for host in range(HOSTS):
            sh("ip", "netns", "add", space(host))
        sh("ip", "link", "add", "name", CARD, "netns", space(0), "type", "veth",
           "peer", "name", CARD, "netns", space(1))  # fmt: skip
        for host in range(HOSTS):
            inside = ["ip", "-n", space(host)]
            sh(*inside, "link", "set", "lo", "up")
            sh(*inside, "addr", "add", f"{address(host)}/24", "dev", CARD)
            sh(*inside, "link", "set", CARD, "up")
            if rate:
                sh("ip", "netns", "exec", space(host), "tc", "qdisc", "add", "dev", CARD, "root",
                   "tbf", "rate", rate, "burst", burst, "latency", "50ms")  # fmt: skip
        yield
    finally:
        for host in range(HOSTS):
            subprocess.run(["ip", "netns", "del", space(host)], capture_output=True)


def sent(host):
    path = f"/sys/class/net/{CARD}/statistics/tx_bytes"
    return int(subprocess.check_output(["ip", "netns", "exec", space(host), "cat", path]))


def run(command, options):
    """Standard output of host 0's rank, and the bytes that each host sent."""
    before = [sent(host) for host in range(HOSTS)]
    ranks = []
    for host in range(HOSTS):
        environment = {
            **os.environ,
            "RANK": str(host), "WORLD_SIZE": str(HOSTS), "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1",
            "GROUP_RANK": str(host), "MASTER_ADDR": address(0), "MASTER_PORT": str(PORT),
            "GLOO_SOCKET_IFNAME": CARD, "DPTRAIN_TRUST_NETWORK": "1",
        }  # fmt: skip
        if options.data:
            environment["DPTRAIN_DATA"] = options.data
        core = options.cores[host % len(options.cores)]
        prefix = ["ip", "netns", "exec", space(host), "taskset", "-c", str(core)]
        ranks.append(
            subprocess.Popen([*prefix, *command], env=environment, text=True, stdout=subprocess.PIPE)
        )
    outputs = [rank.communicate(timeout=options.timeout)[0] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        raise SystemExit(f"{' '.join(command)}: exit codes {[rank.returncode for rank in ranks]}")
    return outputs[0], [sent(host) - was for host, was in enumerate(before)]


def specs(folder):
    mlp = workloads.tutorial(
        "bench_hosts", {"batch_size_per_replica": 100}, parallel="ddp", cores=1, log={"loss": "rank0"}
    )
    images = HOSTS * workloads.RESNET_BATCH
    resnet = {
        "extends": str(workloads.RESNET),
        "name": "bench_hosts_resnet",
        "data": {"batch_size": images, "limit": images * workloads.RESNET_STEPS},
        "device": "cpu",
        "cores": 1,
        "parallel": "ddp",
    }
    out = {}
    for name, spec in {"mlp": mlp, "resnet": resnet}.items():
        out[name] = pathlib.Path(folder) / f"{name}.yaml"
        out[name].write_text(json.dumps(spec) + "\n")
    return out


def dptrain(net, epochs, spec, folder, options):
    """Seconds of each epoch, and bytes sent by each host."""
    out = pathlib.Path(folder) / f"{net}_{epochs}_{os.urandom(4).hex()}"
    _, sizes = run([options.dptrain, str(spec), f"epochs={epochs}", f"out={out}"], options)
    records = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
    return [r["seconds"] for r in records if "seconds" in r and "step" not in r], sizes


def torch(net, epochs, options):
    command = [options.python, str(HERE / "torch_hosts.py"), "--net", net, "--epochs", str(epochs)]
    text, sizes = run(command, options)
    return json.loads(text.strip().splitlines()[-1])["seconds_per_epoch"], sizes


def measure(net, specs_of, folder, options):
    programs = {"dptrain": lambda epochs: dptrain(net, epochs, specs_of[net], folder, options)}
    if options.python:
        programs["PyTorch"] = lambda epochs: torch(net, epochs, options)
    times = {name: [] for name in programs}
    ratios = {}
    for turn in range(options.rounds):
        for name, program in programs.items():
            seconds, sizes = program(EPOCHS[net])
            times[name] += seconds[1:]
            if turn == 0:
                _, short = program(1)
                steps = STEPS[net] * (EPOCHS[net] - 1)
                ideal = 2 * (HOSTS - 1) / HOSTS * 4 * PARAMETERS[net]
                per_step = [(a - b) / steps for a, b in zip(sizes, short)]
                ratios[name] = max(per_step) / ideal
    medians = {name: statistics.median(each) for name, each in times.items()}
    for name, seconds in medians.items():
        against = f", {seconds / medians['dptrain']:.2f}x dptrain's" if name != "dptrain" else ""
        print(f"{net:<8} {name:<8} {1e3 * seconds / STEPS[net]:9.3f} ms a step{against}; "
              f"a host sends {ratios[name]:.3f} times the ideal's bytes")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dptrain", required=True)
    parser.add_argument("--python", help="one with torch and torchvision; without it only dptrain runs")
    parser.add_argument("--data", help="folder of data sets")
    parser.add_argument("--rows", default="mlp,resnet")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rate", help="of each direction: 10gbit, 1gbit")
    parser.add_argument("--timeout", type=int, default=600, help="seconds for each run")
    options = parser.parse_args()
    options.cores = sorted(os.sched_getaffinity(0))
    if os.geteuid() != 0:
        sys.exit("hosts.py: network namespaces need root: run it with sudo")
    print(machine.describe(options.cores))
    with tempfile.TemporaryDirectory() as folder, network(options.rate):
        specs_of = specs(folder)
        for net in options.rows.split(","):
            measure(net, specs_of, folder, options)


if __name__ == "__main__":
    main()
