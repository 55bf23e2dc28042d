#!/usr/bin/env python3
"""Disturbs runs on several hosts at random, and checks how they end and that they go on from their checkpoint.

  tools/faults/run.py --dptrain build/src/dptrain                  # 100 faults, about a quarter of an hour
  tools/faults/run.py --dptrain build/src/dptrain --count 10 --kind KillLeader --seed 3

Each fault hits a short training on 2 or 3 hosts with 1 or 2 ranks each, at a random time. Then every rank that is left
must end with code 6, every host with one message that names host, rank, epoch and step, within the limits of kinds.py,
and nothing may be left behind: processes, sockets, shared memory. After that all ranks are started again with
`--resume auto`, and must end in the weights of a run without faults, to the bit.

Hosts are pretended (DPTRAIN_NODE), or network namespaces where the network is the fault, which needs root. Prints a
line for each fault and a summary. The same seed gives the same faults, but not at the same steps. Exit code 1: a fault
did not end as it must.
"""

import argparse
import collections
import hashlib
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time

import check
import network
from cluster import Cluster, shared_memory
from kinds import KINDS

LAYOUTS = ((1, 1), (2, 2), (1, 2), (1, 1, 1), (2, 1, 2))
SPEC = """
data:
  dataset: {synthetic_images: {samples: 960, shape: [1, 6, 6]}}
  transforms: [to_tensor]
  batch_size: 48
model: [flatten, {linear: 24}, relu, {linear: 10}]
loss: cross_entropy
optimizer: {adam: 0.01}
parallel: ddp
cores: 1
save: {every_epochs: 0, every_steps: 70}
reproducible: {shards: 8, gradients: stored}
"""


def sha256(folder):
    return hashlib.sha256((folder / "run/model.safetensors").read_bytes()).hexdigest()


class Runs:
    """Runs of one program. References are made once for each number of epochs."""

    def __init__(self, dptrain, folder, seconds):
        self.dptrain, self.folder, self.seconds = dptrain, folder, seconds
        self.spec = folder / "faults.yaml"
        self.spec.write_text(SPEC)
        self._rates, self._weights = {}, {}

    def new_folder(self, name):
        out = self.folder / name
        out.mkdir()
        return out

    def cluster(self, folder, layout, epochs, words=(), net=None):
        all_words = [str(self.spec), f"epochs={epochs}", f"out={folder}/run", *words]
        return Cluster(self.dptrain, all_words, layout, folder, net)

    def epochs(self, layout, seconds):
        """So many take about this time."""
        if layout not in self._rates:
            folder = self.new_folder(f"calibration{len(self._rates)}")
            some = 40
            cluster = self.cluster(folder, layout, some)
            cluster.start()
            cluster.wait_for_epoch(1)
            began = time.monotonic()
            if problems := check.end_of_whole_run(cluster):
                cluster.kill()
                sys.exit(f"an undisturbed run on hosts with {layout} ranks fails: {'; '.join(problems)}")
            self._rates[layout] = some / max(0.01, time.monotonic() - began)
        return max(20, min(100_000, int(self._rates[layout] * seconds)))

    def weights(self, epochs):
        if epochs not in self._weights:
            folder = self.new_folder(f"reference{epochs}")
            cluster = self.cluster(folder, (1,), epochs, ["devices=1"])
            cluster.start()
            if problems := check.end_of_whole_run(cluster):
                sys.exit(f"the undisturbed run fails: {'; '.join(problems)}")
            self._weights[epochs] = sha256(folder)
        return self._weights[epochs]


def fits(kind, layout):
    return len(layout) >= kind.hosts and max(layout) >= kind.ranks_of_host


def disturb(runs, folder, kind, layout, generator, networks):
    """Returns (what happened, what is wrong, seconds to the end, whether the fault came in time)."""
    memory = shared_memory()
    net = networks(len(layout)) if kind.on_network else None
    epochs = runs.epochs(layout, max(kind.seconds, runs.seconds))
    cluster = runs.cluster(folder, layout, epochs, kind.words, net)
    try:
        cluster.start(proxy_of=kind.proxy_of())
        if not cluster.wait_for_epoch(1):
            kind.repair(cluster)
            return "", [f"it did not begin: {cluster.ranks[0].err.read_text()[-300:]}"], 0.0, True
        time.sleep(generator.uniform(0, 0.5 * runs.seconds))
        if any([r.look() is not None for r in cluster.ranks]):
            kind.repair(cluster)
            return "", [], 0.0, False
        began = time.monotonic()
        effect = kind.inject(cluster, generator)
        # The run may have been about to end.
        if effect.ends and cluster.wait(cluster.ranks, 0.2) and all([r.look() == 0 for r in cluster.ranks]):
            kind.repair(cluster)
            return "", [], 0.0, False
        if effect.ends:
            wrong, seconds = check.end_of_faulted_run(cluster, effect, began)
        else:
            wrong, seconds = check.end_of_whole_run(cluster), 0.0
        kind.repair(cluster)
        cluster.kill()
        wrong += [f"left behind: {thing}" for thing in check.left_behind(cluster, memory)]
        if effect.ends:
            cluster.start(["--resume", "auto"])
            wrong += [f"resumed: {problem}" for problem in check.end_of_whole_run(cluster)]
            wrong += [f"left behind: {thing}" for thing in check.left_behind(cluster, memory)]
        if not wrong and sha256(folder) != runs.weights(epochs):
            wrong.append("other weights than those of a run without faults")
        return effect.text, wrong, seconds, True
    finally:
        cluster.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dptrain", required=True)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=[k.__name__ for k in KINDS], help="only faults of this kind")
    parser.add_argument("--seconds", type=float, default=2.5, help="of training in an undisturbed run")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # namespaces are removed
    generator = random.Random(given.seed)
    why_not = network.why_not()
    if why_not:
        print(f"skipped: faults of the network: {why_not}")
    shares = {k: n for k, n in KINDS.items() if given.kind in (None, k.__name__) and not (k.on_network and why_not)}
    if not shares:
        return 77
    folder = pathlib.Path(tempfile.mkdtemp(prefix="dptrain-faults-"))
    runs = Runs(str(pathlib.Path(given.dptrain).resolve()), folder, given.seconds)
    nets, failed, longest, counts = {}, 0, collections.defaultdict(float), collections.Counter()

    def networks(hosts):
        if hosts not in nets:
            for other in nets.values():
                other.close()
            nets.clear()
            nets[hosts] = network.Network(hosts)
        return nets[hosts]

    began = time.monotonic()
    try:
        number = 0
        while number < given.count:
            make = generator.choices(list(shares), shares.values())[0]
            layout = generator.choice([x for x in LAYOUTS if fits(make, x)])
            own = runs.new_folder(f"fault{number}")
            text, wrong, seconds, in_time = disturb(runs, own, make(), layout, generator, networks)
            if not in_time:
                shutil.rmtree(own)
                continue
            number += 1
            counts[make.name] += 1
            longest[make.name] = max(longest[make.name], seconds)
            failed += bool(wrong)
            end = f", ended after {seconds:.2f} s" if seconds else ""
            print(f"{number:3} {'wrong' if wrong else 'good '} ranks {'+'.join(map(str, layout))}: "
                  f"{text or make.name}{end}{''.join(f'{chr(10)}      {w}' for w in wrong)}", flush=True)
            if not wrong:
                shutil.rmtree(own)
    finally:
        for net in nets.values():
            net.close()
    for name, count in sorted(counts.items()):
        print(f"{count:4} {name}{f', at most {longest[name]:.2f} s to the end' if longest[name] else ''}")
    print(f"{given.count - failed} of {given.count} faults ended as they must, in {time.monotonic() - began:.0f} s")
    if failed:
        print(f"what they left is in {folder}")
    else:
        shutil.rmtree(folder)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
