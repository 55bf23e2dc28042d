#!/usr/bin/env python3
"""Runs tools/demo_day.sh --quick on small stand-ins for its data sets, and with programs that do not do their part.

usage: demo_day.py --dptrain PROGRAM
"""
import argparse, os, pathlib, random, subprocess, sys, tempfile
from sandbox import ROOT, write_stand_ins

PARTS = ["Data and first specs", "Learning rate", "Training with validation and early stopping", "Sweep of batch sizes",
         "Speed-up of dp and ddp", "Report of several runs", "TensorBoard"]


def write_text(folder):
    """As many bytes and different characters as Tiny Shakespeare has."""
    characters = "".join(chr(c) for c in range(33, 97)) + "\n"
    numbers = random.Random(1)
    folder.mkdir(parents=True)
    some = "".join(numbers.choice(characters[:20]) for _ in range(10_000))
    (folder / "input.txt").write_text((characters + some * 112)[:1115394])


def demo(folder, *arguments):
    environment = dict(os.environ, DPTRAIN_DATA=str(folder / "data"))
    command = [ROOT / "tools/demo_day.sh", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


def check(ok, what, run):
    if not ok:
        sys.exit(f"wrong: {what}\nexit code {run.returncode}\n{run.stdout}{run.stderr}")


def commands(text):
    return [line for line in text.splitlines() if line.startswith("$ ")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dptrain", required=True)
    dptrain = os.path.abspath(parser.parse_args().dptrain)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_stand_ins(folder / "data/fashion-mnist")
        write_text(folder / "data/tinyshakespeare")
        quick = demo(folder, "--quick", "--dptrain", dptrain, "--out", folder / "day")
        check(quick.returncode == 0 and "Everything held.\n" in quick.stdout, "--quick", quick)
        for part in PARTS:
            check(f"== {part}" in quick.stdout and f" s  {part}" in quick.stdout, part, quick)
        for page in "runs/day/1/report.html", "sweeps/day/1/sweep.html", "several.html":
            check((folder / "day" / page).stat().st_size > 10_000, page, quick)
        planned = demo(folder, "--quick", "--dry-run")
        same = [c for c in commands(quick.stdout) if "read_events.py" not in c and "optimizer.lr=0." not in c]
        check(planned.returncode == 0 and set(same) <= set(commands(planned.stdout)), "--dry-run", planned)
        again = demo(folder, "--quick", "--dptrain", dptrain, "--out", folder / "day")
        check(again.returncode == 2 and "is not empty; see --help" in again.stderr, "a folder in use", again)
        useless = {"true": "Data and first specs: there is no file fashion_mnist.yaml", "false": "ended with exit code"}
        for program, reason in useless.items():
            broken = demo(folder, "--quick", "--dptrain", f"/bin/{program}", "--out", folder / program)
            check(broken.returncode == 1 and reason in broken.stderr, f"/bin/{program}", broken)


main()
