#!/usr/bin/env python3
"""Compares the speed of dptrain with PyTorch and JAX.

    tools/bench/compare.py --dptrain build/dptrain --python venv/bin/python --data datasets

All programs of a row take turns, five times, so that disturbances affect all of them. Each runs
a few epochs; its time is the median of those after the first (which warms up and compiles). The
table has medians and bests over the rounds, and the ratio of the peer's median to dptrain's. A peer
whose mean loss in the first epoch differs from dptrain's by more than 1e-2 computes something else:
its row is invalid. Peers that are not installed are left out. Needs only Python's standard library.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import machine
import workloads

HERE = pathlib.Path(__file__).resolve().parent
LOSS_TOLERANCE = 1e-2


class Failed(Exception):
    """A program that could not be measured, with the reason."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def run(command, options):
    """Standard output and wall seconds of a command on the cores that are measured."""
    environment = dict(os.environ)
    if options.data:
        environment["DPTRAIN_DATA"] = options.data
    start = time.perf_counter()
    try:
        child = subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # so that its own children can be ended with it
            preexec_fn=lambda: os.sched_setaffinity(0, options.cores),
        )
    except OSError as error:
        raise Failed(str(error)) from None
    try:
        stdout, stderr = child.communicate(timeout=options.timeout)
    except subprocess.TimeoutExpired:
        raise Failed(f"not done after {options.timeout} s") from None
    finally:
        if child.returncode is None:  # too slow, or interrupted
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    wall = time.perf_counter() - start
    if child.returncode != 0:
        tail = (stderr.strip() or stdout.strip() or "no message").splitlines()[-1]
        raise Failed(f"exit code {child.returncode}: {tail}")
    return stdout, wall


class Dptrain:
    name = "dptrain"

    def __init__(self, row, options, folder):
        self.row, self.options = row, options
        self.spec = workloads.write_spec(row, folder)
        self.out = pathlib.Path(folder) / f"run_{row.name}"

    def measure(self):
        shutil.rmtree(self.out, ignore_errors=True)
        arguments = [f"epochs={self.row.epochs}", f"out={self.out}"]
        _, wall = run([self.options.dptrain, str(self.spec), *arguments], self.options)
        text = (self.out / "metrics.jsonl").read_text()
        epochs = [each for each in map(json.loads, text.splitlines()) if "epoch" in each]
        epochs = [each for each in epochs if "seconds" in each and "step" not in each]
        if len(epochs) != self.row.epochs:
            raise Failed(f"metrics.jsonl has {len(epochs)} epochs instead of {self.row.epochs}")
        return {
            "seconds": [each["seconds"] for each in epochs],
            "loss": [each["loss"] for each in epochs],
            "wall": wall,
        }

    def version(self):
        try:
            first = run([self.options.dptrain, "--version"], self.options)[0].splitlines()[0]
        except (Failed, IndexError):
            return "unknown"
        return first.removeprefix("dptrain").strip()


class PeerProgram:
    def __init__(self, row, peer, options):
        self.row, self.peer, self.options = row, peer, options
        self.name = peer.name
        self.versions = {}

    def measure(self):
        epochs = self.row.epochs if self.row.cold else self.peer.epochs or self.row.epochs
        command = [self.options.python, str(HERE / self.peer.script), "--epochs", str(epochs)]
        if self.options.data:
            command += ["--data", self.options.data]
        if self.peer.threads:
            command += ["--threads", str(len(self.options.cores))]
        stdout, wall = run([*command, *self.peer.arguments], self.options)
        line = json.loads(stdout.strip().splitlines()[-1])
        self.versions = line["versions"]
        return {"seconds": line["seconds_per_epoch"], "loss": line["loss"], "wall": wall}


def has_module(python, module):
    code = f"import importlib.util as u; raise SystemExit(not u.find_spec('{module}'))"
    try:
        return subprocess.run([python, "-c", code], capture_output=True).returncode == 0
    except OSError:
        return False


def time_of(row, result):
    """Seconds of one run: of the whole process, or the median epoch after the first."""
    if row.cold:
        return result["wall"]
    later = result["seconds"][1:] or result["seconds"]
    return statistics.median(later)


def measure_row(row, programs, options):
    """{name: {"times": [...], "loss": [...]} or {"failed": reason}}, the programs taking turns."""
    found = {each.name: {"times": [], "loss": []} for each in programs}
    for turn in range(options.rounds):
        shift = turn % len(programs)
        for program in programs[shift:] + programs[:shift]:
            entry = found[program.name]
            if "failed" in entry:
                continue
            try:
                result = program.measure()
            except (Failed, OSError, ValueError, KeyError, IndexError) as error:
                entry["failed"] = str(error)
                say(f"{row.name}: {program.name}: {error}")
                continue
            entry["times"].append(time_of(row, result))
            entry["loss"] = result["loss"]
            took = f"{entry['times'][-1]:.4g} s"
            say(f"{row.name} {turn + 1}/{options.rounds} {program.name}: {took}")
    return found


def judge(row, found):
    """Adds median, best and, against dptrain, ratios and whether the loss agrees."""
    for entry in found.values():
        if entry["times"] and "failed" not in entry:
            entry["median"] = statistics.median(entry["times"])
            entry["best"] = min(entry["times"])
    ours = found.get("dptrain", {})
    for name, entry in found.items():
        if name == "dptrain" or "median" not in entry or "median" not in ours:
            continue
        if row.same_data:
            entry["loss_difference"] = abs(entry["loss"][0] - ours["loss"][0]) / abs(ours["loss"][0])
            entry["void"] = not entry["loss_difference"] <= LOSS_TOLERANCE  # a nan is void, too
        if entry.get("void"):
            continue
        entry["ratio"] = entry["median"] / ours["median"]
        entry["ratio_of_bests"] = entry["best"] / ours["best"]


def add_efficiency(measured):
    """For pipelines of two stages: the share of two cores in use, and its ratio to the bubble's bound."""
    times = {row.name: found.get("dptrain", {}).get("median") for row, found in measured}
    for row, found in measured:
        if row.bound and times.get(row.alone) and times[row.name]:
            entry = found["dptrain"]
            entry["efficiency"] = times[row.alone] / (2 * times[row.name])
            entry["of_bound"] = entry["efficiency"] / row.bound


def seconds(value, row):
    if row.samples:
        return f"{row.samples / value:.2f} samples/s"
    return f"{value / row.steps * 1e6:.2f} us" if row.steps else f"{value:.3f} s"


def table(measured):
    """Markdown: one line for each program of each row."""
    lines = [
        "| what | program | median | best | dptrain is | by the bests | loss, epoch 1 |",
        "|---|---|---|---|---|---|---|",
    ]
    for row, found in measured:
        unit = "a step" if row.steps else "in all" if row.cold else "an epoch"
        if row.samples:
            unit = ""
        for name, entry in found.items():
            start = f"| {row.about} | {name} |"
            if "median" not in entry:
                lines.append(f"{start} failed | | | | |")
                continue
            times = f" {seconds(entry['median'], row)} {unit} | {seconds(entry['best'], row)} |"
            ratios = " | |"
            if entry.get("void"):
                ratios = f" void: loss {100 * entry['loss_difference']:.1f} % away | |"
            elif "ratio" in entry:
                ratios = f" {entry['ratio']:.2f}x as fast | {entry['ratio_of_bests']:.2f}x |"
            lines.append(f"{start}{times}{ratios} {entry['loss'][0]:.5f} |")
            if "efficiency" in entry:
                bound = f"{100 * entry['of_bound']:.0f} % of the bubble's bound {row.bound:.3f}"
                lines[-1] += f" efficiency {entry['efficiency']:.3f}, {bound} |"
    return "\n".join(lines)


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dptrain", help="the binary; without it the peers are measured alone")
    parser.add_argument("--python", default=sys.executable, help="the Python that has the peers")
    parser.add_argument("--data", help="the folder that holds fashion-mnist/ (else $DPTRAIN_DATA)")
    parser.add_argument("--rows", default="single,ddp,linear,cold", help="which, by commas")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cores", type=int, default=2, help="how many cores to measure on")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one run")
    parser.add_argument("--json", default="runs/compare.json", help="where the figures go")
    options = parser.parse_args()
    options.cores = sorted(os.sched_getaffinity(0))[: options.cores]
    for name in ["dptrain", "python"]:
        given = getattr(options, name)
        if given and not shutil.which(given):
            parser.error(f"--{name} {given}: no such program")
        if given:
            setattr(options, name, os.path.abspath(shutil.which(given)))
    options.data = options.data or os.environ.get("DPTRAIN_DATA")
    options.data = os.path.abspath(options.data) if options.data else None
    options.rows = options.rows.split(",")
    return options


def programs_of(row, options, folder):
    programs = [Dptrain(row, options, folder)] if options.dptrain else []
    for peer in row.peers:
        if has_module(options.python, peer.module):
            programs.append(PeerProgram(row, peer, options))
        else:
            say(f"{row.name}: skipped {peer.name}: {options.python} has no {peer.module}")
    return programs


def main():
    options = arguments()
    where = machine.describe(options.cores)
    where["disturbance"] = round(machine.disturbance(), 3)
    versions, measured = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for row in workloads.rows(folder):
            if row.name not in options.rows:
                continue
            programs = programs_of(row, options, folder)
            if not programs:
                say(f"{row.name}: nothing to measure")
                continue
            found = measure_row(row, programs, options)
            judge(row, found)
            measured.append((row, found))
            for program in programs:
                if isinstance(program, PeerProgram):
                    versions.update(program.versions)
                elif "dptrain" not in versions:
                    versions["dptrain"] = program.version()
    add_efficiency(measured)
    cores = f"{where['cores']} of {where['cores_there']} cores"
    print(f"{where['model']} ({where['family']}), {cores}, {' '.join(where['isa'])}")
    print(f"{where['system']}; load {where['load']}, disturbance {where['disturbance']}")
    print(", ".join(f"{name} {version}" for name, version in sorted(versions.items())))
    print(f"medians of {options.rounds} rounds, the programs taking turns\n")
    print(table(measured))
    path = pathlib.Path(options.json)
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"row": row.name, "about": row.about, "programs": found} for row, found in measured]
    figures = {"machine": where, "versions": versions, "rows": rows}
    path.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
