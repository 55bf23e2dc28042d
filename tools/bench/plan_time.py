#!/usr/bin/env python3
"""How far `dptrain plan --time` is from the steps that `dptrain bench` measures, for shipped specs in several modes.

plan_time.py DPTRAIN [--rounds N]: predictions and measurements alternate; medians of each; the machine is named. The
goal is an error of at most 15 % per row. Run it on an idle machine.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess

import machine

CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs"
ROWS = [
    ("fmnist_single", "single", ["cores=1"]),
    ("fmnist_single", "ddp", ["devices=2"]),
    ("fmnist_single", "dp", ["devices=2"]),
    ("lenet", "single", ["cores=1"]),
    ("lenet", "ddp", ["devices=2"]),
    ("mlp_mse_sgd", "single", ["cores=1"]),
    ("gpt_shakespeare", "single", ["cores=1"]),
    ("gpt_shakespeare", "ddp", ["devices=2"]),
    ("vgg", "single", ["cores=1"]),
    ("vgg", "ddp", ["devices=2"]),
    ("pipe_toy", "pipeline", []),
    ("large/resnet18", "single", ["cores=1", "data.batch_size=16"]),
]
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}


def run(command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def predicted(dptrain, spec, mode, words):
    text = run([dptrain, "plan", spec, f"parallel={mode}", *words, "--time"])
    number, unit = re.search(r"predicted: ([\d.]+) (\w+) per step", text).groups()
    return float(number) * UNITS[unit]


def measured(dptrain, spec, mode, words):
    out = run(
        [dptrain, "bench", spec, *words, "--modes", mode, "--rounds", "1", "--seconds", "0.7", "--json"]
    )
    row = json.loads(out)["rows"][0]
    return row["batch_size"] / row["samples_per_second"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dptrain")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    print(machine.describe(range(machine.os.cpu_count())))
    errors = []
    for name, mode, words in ROWS:
        spec = str(CONFIGS / f"{name}.yaml")
        pairs = []
        try:
            for _ in range(arguments.rounds):
                pairs.append(
                    [f(arguments.dptrain, spec, mode, words) for f in (predicted, measured)]
                )
        except subprocess.CalledProcessError as error:
            print(f"{name:<18} {mode:<9} not measured: {error.stderr.strip().splitlines()[-1]}")
            continue
        said, took = (statistics.median(each) for each in zip(*pairs))
        errors.append(abs(said / took - 1))
        print(f"{name:<18} {mode:<9} predicted {1e3 * said:9.3f} ms, measured {1e3 * took:9.3f} ms, "
              f"error {100 * (said / took - 1):+6.1f} %")  # fmt: skip
    print(f"{sum(e <= 0.15 for e in errors)} of {len(errors)} rows within 15 %, "
          f"median error {100 * statistics.median(errors):.1f} %")  # fmt: skip


if __name__ == "__main__":
    main()
