#!/usr/bin/env python3
"""Compares each layer, loss and optimizer with PyTorch, in small nets and on one thread.

    PYTHON_WITH_TORCH tools/bench/layers.py DPTRAIN [WORD ...] [--rounds 3] [--json FILE]

The words are those of `dptrain schema`, so none is left out; layer_nets.py has their nets. The
peer is the program that `dptrain export` writes, so both compute the same; a row whose losses
differ by more than 1 % fails. A word that PyTorch does not have says `no peer`. dptrain and
PyTorch take turns. Times are CPU times of a step, the medians of the rounds, so that other
programs disturb them little; start-up and the first epoch are not in them. Prints a table in
Markdown, the lowest ratio first. Ends with 1 if a row failed.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import layer_nets
import machine
import numpy
import torch
import torch_exported

EPOCHS, STEPS = 4, 10  # of a round; dptrain has more epochs if they are short
LEAST_SECONDS, MOST_EPOCHS = 0.3, 400
LEAST_RATIO = 1.5
MODIFIERS = {"name", "from", "init", "freeze", "checkpoint", "device", "repeat"}


@dataclasses.dataclass
class Row:
    section: str
    word: str
    net: layer_nets.Net
    ours: list = dataclasses.field(default_factory=list)  # CPU seconds of a step, of each round
    theirs: list = dataclasses.field(default_factory=list)
    trouble: str = ""  # why there is no ratio
    failed: bool = False

    def name(self):
        return f"{self.word}, {self.net.about}" if self.net.about else self.word

    def ratio(self):
        return statistics.median(self.theirs) / statistics.median(self.ours) if self.theirs else None


class Failed(Exception):
    """A row that could not be measured, with the reason."""


def run(*command, folder=None):
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise Failed((result.stderr.strip() or result.stdout.strip()).splitlines()[0])
    return result.stdout


def words(dptrain):
    """(section, word) of each layer, loss and optimizer that the program has."""
    definitions = json.loads(run(dptrain, "schema"))["definitions"]
    for section in ["layer", "loss", "optimizer"]:
        for word in definitions[section]["properties"]:
            if word not in MODIFIERS:
                yield section, word


def write_spec(net, folder):
    """spec.yaml, with its arrays."""
    draw = numpy.random.default_rng(0)
    kind = layer_nets.KINDS[net.kind]
    samples = STEPS * kind.batch
    shape = (samples, *(net.shape or kind.shape))
    if net.kind == "tokens":
        inputs = draw.integers(0, layer_nets.VOCABULARY, shape)
        inputs.flat[0] = layer_nets.VOCABULARY - 1
    else:
        inputs = draw.standard_normal(shape, dtype="float32")
    numpy.save(folder / "inputs.npy", inputs)
    numpy.save(folder / "targets.npy", (net.target or layer_nets.classes())(draw, samples))
    spec = {
        "seed": 0,
        "data": {
            "dataset": {"npy": {"inputs": "inputs.npy", "targets": "targets.npy"}},
            "batch_size": kind.batch,
            "shuffle": False,
        },
        "model": net.model(),
        "loss": net.loss,
        "optimizer": net.optimizer,
        "cores": 1,
        "parallel": "single",
        "device": "cpu",
        "save": False,
        "out": "run",
    }
    (folder / "spec.yaml").write_text(json.dumps(spec, indent=1) + "\n")  # JSON is YAML


def train(dptrain, folder, epochs):
    """CPU seconds of the process, and the epochs of metrics.jsonl."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run("rm", "-rf", "run", folder=folder)
    run(dptrain, "spec.yaml", f"epochs={epochs}", folder=folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    records = map(json.loads, (folder / "run/metrics.jsonl").read_text().splitlines())
    epochs = [each for each in records if "epoch" in each and "step" not in each and "seconds" in each]
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, epochs


def ours(dptrain, folder):
    """(CPU seconds of a step, mean loss of the first epoch)"""
    first, [epoch] = train(dptrain, folder, 1)
    more = min(MOST_EPOCHS, max(EPOCHS - 1, round(LEAST_SECONDS / epoch["seconds"])))
    both, _ = train(dptrain, folder, 1 + more)
    return (both - first) / more / STEPS, epoch["loss"]


def theirs(folder):
    """As ours(), by the exported program."""
    with contextlib.chdir(folder):
        seconds, losses = torch_exported.measure("spec.py", EPOCHS, clock=time.process_time)
    return statistics.median(seconds[1:]) / STEPS, losses[0]


def measure(row, dptrain, folder, rounds):
    write_spec(row.net, folder)
    run(dptrain, "check", "spec.yaml", folder=folder)
    try:
        run(dptrain, "export", "spec.yaml", "-o", "spec.py", folder=folder)
    except Failed as reason:
        row.trouble = f"no peer: {reason}"
    for _ in range(rounds):
        seconds, loss = ours(dptrain, folder)
        row.ours.append(seconds)
        if row.trouble:
            continue
        try:
            seconds, loss_there = theirs(folder)
        except ImportError as reason:
            row.trouble = f"no peer: {reason}"
            continue
        row.theirs.append(seconds)
        if abs(loss - loss_there) > 1e-2 * max(abs(loss), 1e-2) and not row.net.draws:
            raise Failed(f"losses {loss:.4f} and {loss_there:.4f}")


def table(rows):
    lines = ["| layer, loss or optimizer | dptrain, CPU ms a step | PyTorch | dptrain is |", "|---|---|---|---|"]
    for row in sorted(rows, key=lambda each: (each.ratio() is None, each.ratio())):
        times = [f"{1000 * statistics.median(each):.3f}" if each else "" for each in (row.ours, row.theirs)]
        ratio = f"{row.ratio():.2f}x" if row.theirs else row.trouble
        lines.append(f"| {row.name()} | {times[0]} | {times[1]} | {ratio} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dptrain", type=os.path.abspath)
    parser.add_argument("words", nargs="*", help="only these")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path, help="a file for the figures")
    options = parser.parse_intermixed_args()
    torch.set_num_threads(1)
    rows = []
    for section, word in words(options.dptrain):
        if options.words and word not in options.words:
            continue
        for net in layer_nets.nets(section, word):
            row = Row(section, word, net)
            rows.append(row)
            with tempfile.TemporaryDirectory() as folder:
                try:
                    measure(row, options.dptrain, pathlib.Path(folder), options.rounds)
                except Failed as reason:
                    row.failed, row.trouble, row.theirs = True, f"failed: {reason}", []
            said = f"{row.ratio():.2f}x" if row.theirs else row.trouble
            print(f"{row.name()}: {said}", file=sys.stderr, flush=True)
    where = machine.describe([0])
    print(f"{where['model']}, family {where['family']}, load {where['load']}; PyTorch {torch.__version__}")
    print(table(rows))
    below = [row for row in rows if row.theirs and row.ratio() < LEAST_RATIO]
    print(f"{len(rows)} rows, {len(below)} below {LEAST_RATIO}x, {sum(row.failed for row in rows)} failed")
    if options.json:
        figures = [{"section": row.section, "name": row.name(), "ours": row.ours, "theirs": row.theirs,
                    "trouble": row.trouble} for row in rows]  # fmt: skip
        options.json.write_text(json.dumps({"machine": where, "rows": figures}, indent=1) + "\n")
    return int(any(row.failed for row in rows))


if __name__ == "__main__":
    sys.exit(main())
