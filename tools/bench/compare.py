#!/usr/bin/env python3
"""Compares the speed and memory of dptrain with PyTorch and JAX.

    tools/bench/compare.py --dptrain build/src/dptrain --python venv/bin/python --data datasets

All programs of a row take turns, five times, so that disturbances affect all of them. Each runs
a few epochs; its time is the median of those after the first (which warms up and compiles). The
table has medians over the rounds, and the ratio of the peer's median to dptrain's. A peer whose
mean loss in the first epoch differs from dptrain's by more than 1e-2 computes something else: its
row is invalid. Peers that are not installed are left out. Needs only Python's standard library.

    --rows single,wide_bf16     only these
    --random 60                 nets drawn at random, beside the programs that `dptrain export` writes
    --page docs/performance.md  also writes the tables and the pictures of that page
    --from FILE,FILE            measures nothing, but takes the figures of these files of --json
"""

import argparse
import json
import os
import pathlib
import shutil
import sys
import tempfile

import judge
import machine
import performance_page
import workloads
from programs import Dptrain, Failed, PeerProgram, has_module, peak_of, time_of


def say(text):
    print(text, file=sys.stderr, flush=True)


def measure_row(row, programs, options):
    """{name: {"times": [...], ...} or {"failed": reason}}, the programs taking turns."""
    found = {each.name: {"times": [], "memory": [], "loss": []} for each in programs}
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
            entry["memory"].append(result["memory"])
            entry["loss"] = result["loss"]
            took = f"{entry['times'][-1]:.4g} s, {result['memory']:.0f} MiB"
            say(f"{row.name} {turn + 1}/{options.rounds} {program.name}: {took}")
    return found


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dptrain", help="the binary; without it the peers are measured alone")
    parser.add_argument("--python", default=sys.executable, help="the Python that has the peers")
    parser.add_argument("--data", help="the folder that holds fashion-mnist/ (else $DPTRAIN_DATA)")
    parser.add_argument("--rows", help="which, by commas; default: those of docs/performance.md")
    parser.add_argument("--random", type=int, default=0, help="how many random nets, besides")
    parser.add_argument("--seed", type=int, default=0, help="of the random nets")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cores", type=int, default=2, help="how many cores to measure on")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one run")
    parser.add_argument("--json", default="runs/compare.json", help="where the figures go")
    parser.add_argument("--from", dest="saved", help="files of --json, by commas")
    parser.add_argument("--page", help="the page whose measured part is replaced")
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
    options.rows = options.rows.split(",") if options.rows is not None else None
    return options


def chosen(row, options):
    if row.random:
        return True
    return options.rows is None or row.name in options.rows


def programs_of(row, options, folder):
    dptrain = Dptrain(row, options, folder) if options.dptrain else None
    programs = [dptrain] if dptrain else []
    for peer in row.peers:
        if peer.exported and not dptrain:
            say(f"{row.name}: skipped {peer.name}: dptrain exports its program")
        elif has_module(options.python, peer.module):
            programs.append(PeerProgram(row, peer, options, dptrain))
        else:
            say(f"{row.name}: skipped {peer.name}: {options.python} has no {peer.module}")
    return programs


def save(figures, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{**row.fields(), "programs": found} for row, found in figures["rows"]]
    path.write_text(json.dumps({**figures, "rows": rows}, indent=1) + "\n")


def load(paths):
    """What measure() returned, from files of save(): the machine of the first file, and the rows of all; the last
    file that has a row counts."""
    figures, *more = [json.loads(pathlib.Path(each).read_text()) for each in paths]
    rows = {row["name"]: row for each in [figures, *more] for row in each["rows"]}
    for each in more:
        figures["versions"].update(each["versions"])
    figures["rows"] = []
    for fields in rows.values():
        found = fields.pop("programs")
        figures["rows"].append((workloads.Row(spec={}, peers=[], **fields), found))
    return figures


def measure(options):
    """{"machine": ..., "versions": ..., "rows": ...}, rows as [(row, found)]."""
    where = machine.describe(options.cores)
    where["disturbance"] = round(machine.disturbance(), 3)
    where["peak"] = peak_of(options) if options.dptrain else None
    versions, measured = {}, []
    figures = {"machine": where, "versions": versions, "rounds": options.rounds, "rows": measured}
    with tempfile.TemporaryDirectory() as folder:
        rows = [*workloads.rows(folder), *workloads.random_rows(options.random, options.seed)]
        for row in rows:
            programs = programs_of(row, options, folder) if chosen(row, options) else []
            if not programs:
                continue
            found = measure_row(row, programs, options)
            judge.judge(row, found)
            judge.add_share_of_peak(row, found, programs[0], where["peak"])
            measured.append((row, found))
            for program in programs:
                if isinstance(program, PeerProgram):
                    versions.update(program.versions)
                elif "dptrain" not in versions:
                    versions["dptrain"] = program.version()
            save(figures, pathlib.Path(options.json))  # an interruption keeps it
    judge.add_efficiency(measured)
    return figures


def main():
    options = arguments()
    figures = load(options.saved.split(",")) if options.saved else measure(options)
    print(judge.heading(figures))
    print(judge.table(figures["rows"]))
    if not options.saved:
        save(figures, pathlib.Path(options.json))
    if options.page:
        performance_page.write(pathlib.Path(options.page), figures)


if __name__ == "__main__":
    main()
