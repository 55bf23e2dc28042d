#!/usr/bin/env python3
"""How time and memory grow with everything that a user can make large, beside Python where it does the same.

growth.py DPTRAIN [--quick] [--markdown] [--python PYTHON] [NAME...]

Each row runs a command at three sizes n, and at a small one, whose cost is start-up and is taken off the others. It
prints the CPU time and the peak of memory at the largest size, the exponent k of cost ~ n^k, fitted through the three,
for both, and the cost of one unit. Costs too small to be measured have no exponent. With --python, a Python that has
torch and pandas does what dptrain does, at the same sizes. --quick: sizes a quarter as large. Ends with 1 if an
exponent of dptrain is above 1.1.

Where memory is large, the exponent is that of user time: how long the system takes to zero new pages depends, in a
virtual machine, on which of them its host still has.
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import machine

MOST_EXPONENT = 1.1
LEAST_SECONDS, LEAST_MIB = 0.05, 4  # below these, above start-up, noise decides
LARGE_MIB = 256  # above, the exponent is that of user time
TRAIN = "loss: mse_loss\noptimizer: {sgd: 0.001}\nepochs: 1\nsave: false\ncores: 1\n"
RANDOM = "data: {{dataset: {{random: {{samples: {}, in_features: {}, out_features: {}}}}}, batch_size: {}}}\n"


class Row:
    """make(folder, n) writes files and returns the arguments of dptrain. python: the same in Python, with n as N."""

    def __init__(self, name, sizes, make, python=None):
        self.name, self.sizes, self.make, self.python = name, sizes, make, python


def spec(folder, text):
    (folder / "t.yaml").write_text(text)
    return "t.yaml"


def table(folder, rows, columns):
    lines = [",".join(f"0.{(37 * c + 101 * k) % 1000:03}" for c in range(columns)) for k in range(7)]
    with open(folder / "t.csv", "w") as f:
        f.write(",".join(f"c{c}" for c in range(columns)) + ",y\n")
        f.writelines(f"{lines[i % 7]},{i % 2}\n" for i in range(rows))
    return spec(folder, "data: {dataset: {csv: {path: t.csv, classes: 2}}, batch_size: 100}\n"
                        "model: [{linear: 2}]\nloss: cross_entropy\noptimizer: {sgd: 0.1}\nepochs: 1\n")


def images(folder, files):
    pixels = b"P5 8 8 255\n" + bytes(range(64))
    for i in range(files):
        if i % 1000 == 0:
            (folder / f"p/{i // 1000 % 2}/{i}").mkdir(parents=True)
        (folder / f"p/{i // 1000 % 2}/{i // 1000 * 1000}/{i}.pgm").write_bytes(pixels)
    return spec(folder, "data: {dataset: {image_folder: {path: p, resize: 8, crop: 8}}, transforms: [to_tensor], "
                        "batch_size: 100}\nmodel: [flatten, {linear: 2}]\nloss: cross_entropy\noptimizer: {sgd: 0.1}\n"
                        "epochs: 1\n")


def text(folder, characters):
    (folder / "t.txt").write_text("a text of some words and letters\n" * (characters // 33))
    return spec(folder, "data: {dataset: {text: {path: t.txt, sequence_length: 64}}, batch_size: 8}\nmodel: [{embedding: "
                        "{num_embeddings: 64, embedding_dim: 8}}, {linear: 64}]\nloss: cross_entropy\n"
                        "optimizer: {sgd: 0.1}\nsteps: 1\nsave: false\n")


def classes(folder, n):
    return spec(folder, f"data: {{dataset: {{synthetic_images: {{samples: {n}, classes: {n}, shape: [1, 2, 2]}}}}, "
                        f"transforms: [to_tensor], batch_size: 8}}\nmodel: [flatten, {{linear: {n}}}]\n"
                        "loss: cross_entropy\noptimizer: {sgd: 0.1}\nsteps: 20\nsave: false\ncores: 1\n")


def layers(folder, n, more="", batch=4):
    return spec(folder, RANDOM.format(batch, 4, 4, batch) + "model:\n" + "  - {linear: 4}\n" * n + TRAIN + more)


def width(folder, parameters):
    n = round(math.sqrt(parameters))
    return spec(folder, RANDOM.format(1, n, 1, 1) + f"model: [{{linear: {n}}}, {{linear: 1}}]\n" + TRAIN)


def patterns(folder, n):
    names = "".join(f"  - {{linear: 2, name: l{i}}}\n" for i in range(n))
    frozen = ", ".join(f"l{i}.bias" for i in range(n))
    groups = "".join(f"  - {{match: l{i}.weight, lr: 0.{i % 7 + 1}}}\n" for i in range(n))
    return spec(folder, RANDOM.format(2, 2, 2, 2) + "model:\n" + names + TRAIN + f"freeze: [{frozen}]\n"
                                                    f"parameter_groups:\n{groups}")


def vocabulary(folder, n):
    return spec(folder, f"data: {{dataset: {{synthetic_tokens: {{samples: 64, vocabulary: {n}, length: 8, targets: values, out_features: 1}}}}, batch_size: 8}}\n"
                        f"model: [{{embedding: {{num_embeddings: {n}, embedding_dim: 16}}}}, {{linear: 1}}]\n" + TRAIN)


def records(folder, n):
    return spec(folder, RANDOM.format(n, 2, 1, 1) + "model: [{linear: 1}]\n" + TRAIN + "log: {every: 1}\n")


def many_runs(folder, n):
    line = '{"epoch": 1, "loss": 0.5, "seconds": 0.1, "samples_per_second": 10.0, "time": 1.0, "run": "a"}\n'
    for i in range(1, n + 1):
        (folder / f"runs/t/{i}").mkdir(parents=True)
        (folder / f"runs/t/{i}/metrics.jsonl").write_text(line)
        (folder / f"runs/t/{i}/spec.resolved.yaml").write_text(f"name: t\nseed: {i}\n")
    return "runs/t"


def long_run(folder, n):
    (folder / "runs/t/1").mkdir(parents=True)
    with open(folder / "runs/t/1/metrics.jsonl", "w") as f:
        f.writelines(f'{{"step": {i}, "epoch": 1, "loss": {1 / i:.9f}, "lr": 0.1, "time": {i}.0, "run": "a"}}\n'
                     for i in range(1, n + 1))
    (folder / "runs/t/1/spec.resolved.yaml").write_text("name: t\n")
    return "runs/t/1"


def checkpoints(folder, n):
    return spec(folder, RANDOM.format(n, 2, 1, 1) + "model: [{linear: 1}]\n"
                + TRAIN.replace("save: false", "save: {every_steps: 1, keep: 3}"))


CSV_PYTHON = ("import torch, numpy; t = torch.from_numpy(numpy.loadtxt('t.csv', delimiter=',', skiprows=1))\n"
              "x, y = t[:, :-1].float(), t[:, -1].long()")
# A step of SGD of the module m on x and y; then its weights are saved, as dptrain does after each run.
STEP = ("nn.functional.mse_loss(m(x), y).backward()\nwith torch.no_grad():\n"
        "    for p in m.parameters(): p -= 0.001 * p.grad\ntorch.save(m.state_dict(), 'model.pt')")
ROWS = [
    Row("rows of a table", [100_000, 200_000, 400_000], lambda f, n: ["check", table(f, n, 10)], CSV_PYTHON),
    Row("columns of a table", [2_000, 4_000, 8_000], lambda f, n: ["check", table(f, 500, n)], CSV_PYTHON),
    Row("rows of a table, init", [100_000, 200_000, 400_000],
        lambda f, n: table(f, n, 10) and ["init", "t.csv", "--out", "i.yaml", "--force"],
        "import pandas; t = pandas.read_csv('t.csv'); t.describe()"),
    Row("columns of a table, init", [2_000, 4_000, 8_000],
        lambda f, n: table(f, 500, n) and ["init", "t.csv", "--out", "i.yaml", "--force"],
        "import pandas; t = pandas.read_csv('t.csv'); t.describe()"),
    Row("files of images", [5_000, 10_000, 20_000], lambda f, n: ["data", images(f, n)]),
    Row("characters of a text", [8_000_000, 16_000_000, 32_000_000], lambda f, n: [text(f, n)],
        "import torch, numpy; t = numpy.fromfile('t.txt', numpy.uint8)\n"
        "torch.from_numpy(numpy.searchsorted(numpy.unique(t), t))"),
    Row("classes", [2_500, 5_000, 10_000], lambda f, n: [classes(f, n)]),
    Row("layers, check", [2_500, 5_000, 10_000], lambda f, n: ["check", layers(f, n)]),
    Row("layers, one step", [2_500, 5_000, 10_000], lambda f, n: [layers(f, n)],
        "import torch; from torch import nn\nm = nn.Sequential(*[nn.Linear(4, 4) for _ in range(N)])\n"
        "x = y = torch.ones(4, 4)\n" + STEP),
    Row("parameters of a layer", [32_000_000, 64_000_000, 128_000_000], lambda f, n: [width(f, n)],
        "import torch; from torch import nn\nn = int(N ** .5); m = nn.Sequential(nn.Linear(n, n), nn.Linear(n, 1))\n"
        "x, y = torch.randn(1, n), torch.randn(1, 1)\n" + STEP),
    Row("samples, shuffled", [20_000_000, 40_000_000, 80_000_000],
        lambda f, n: [spec(f, RANDOM.format(n, 1, 1, n // 4) + "model: [{linear: 1}]\n" + TRAIN + "steps: 1\n")],
        "import torch; from torch import nn\nm, x, y = nn.Linear(1, 1), torch.randn(N, 1), torch.randn(N, 1)\n"
        "order = torch.randperm(N); x, y = x[order[:N // 4]], y[order[:N // 4]]\n" + STEP),
    Row("samples, drawn by weight", [1_000_000, 2_000_000, 4_000_000],
        lambda f, n: [classes_by_weight(f, n)],
        "import torch, numpy; from torch import nn\n"
        "x, y = (torch.from_numpy(numpy.load(f)) for f in ('x.npy', 'y.npy'))\n"
        "weights = (1 / y.bincount().double())[y]\n"
        "order = torch.multinomial(weights, N, replacement=True)[:N // 4]\n"
        "m = nn.Linear(1, 2); x, y = x[order].float(), y[order].long()\n"
        + STEP.replace("mse_loss", "cross_entropy").split("torch.save")[0]),
    Row("ranks, one step", [8, 16, 32],
        lambda f, n: [layers(f, 200, f"parallel: ddp\ndevices: {n}\n", n)]),
    Row("devices of dp, one step", [16, 32, 64], lambda f, n: [layers(f, 200, f"parallel: dp\ndevices: {n}\n", n)]),
    Row("shards", [16, 32, 64], lambda f, n: [layers(f, 200, f"reproducible: {{shards: {n}}}\n", n)]),
    Row("hosts, plan", [64, 128, 256], lambda f, n: ["plan", layers(f, 20, "parallel: ddp\n", 1024), "--hosts", str(n)]),
    Row("stages of a pipeline", [16, 32, 64],
        lambda f, n: [layers(f, 512, f"parallel: {{pipeline: {{stages: {n}}}}}\n", 64)]),
    Row("epochs", [5_000, 10_000, 20_000], lambda f, n: [layers(f, 1, "", 4), f"epochs={n}"]),
    Row("records of steps", [50_000, 100_000, 200_000], lambda f, n: [records(f, n)]),
    Row("records, report", [50_000, 100_000, 200_000], lambda f, n: ["report", long_run(f, n)]),
    Row("runs, listed", [250, 500, 1_000], lambda f, n: ["runs", many_runs(f, n)]),
    Row("checkpoints written", [50, 100, 200], lambda f, n: [checkpoints(f, n)]),
    Row("patterns", [1_000, 2_000, 4_000], lambda f, n: ["check", patterns(f, n)]),
    Row("words of a vocabulary", [100_000, 200_000, 400_000], lambda f, n: [vocabulary(f, n)],
        "import torch; e = torch.nn.Embedding(N, 16); e(torch.arange(64)).sum().backward()"),
]


def classes_by_weight(folder, n):
    (folder / "x.npy").write_bytes(npy("|u1", (n, 1), bytes(n)))
    (folder / "y.npy").write_bytes(npy("<i4", (n,), b"".join((i % 7 > 0).to_bytes(4, "little") for i in range(7)) * (n // 7)
                                       + bytes(4 * (n % 7))))
    return spec(folder, f"data: {{dataset: {{npy: {{inputs: x.npy, targets: y.npy}}}}, sampler: weighted, batch_size: {n // 4}}}\n"
                        "model: [{linear: 2}]\nloss: cross_entropy\noptimizer: {sgd: 0.1}\nsteps: 1\nsave: false\ncores: 1\n"
                        "epochs: 1\n")


def npy(kind, shape, data):
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (63 - (len(head) + 10) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + len(head).to_bytes(2, "little") + head + data


def cost(command, folder):
    """CPU seconds, those in user mode, and the peak of memory in MiB of a command and its children."""
    out = open(folder / ".output", "w+")
    child = subprocess.Popen(command, cwd=folder, stdout=out, stderr=subprocess.STDOUT)
    _, status, used = os.wait4(child.pid, 0)
    if status != 0:
        out.seek(0)
        sys.exit(f"failed: {' '.join(map(str, command))}\n{out.read()[-2000:]}")
    return used.ru_utime + used.ru_stime, used.ru_utime, used.ru_maxrss / 1024


def made(row, folder, n):
    """What row.make returns, from a process of its own: a command's peak of memory begins at that of its parent."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        with os.fdopen(writer, "w") as out:
            json.dump(row.make(folder, n), out)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as words:
        out = json.load(words)
    os.wait()
    return out


def of_dptrain(row, n, dptrain):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        words = made(row, folder, n)
        return min(cost([dptrain, *words], folder) for _ in range(2))


def of_python(row, n, python):
    """n = 0: the imports alone. None: they fail."""
    imports = row.python.split(";")[0].split("\n")[0]
    if subprocess.run([python, "-c", imports], capture_output=True).returncode != 0:
        return None
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if n > 0:
            made(row, folder, n)
        code = f"N = {n}\n{row.python}" if n > 0 else imports
        code += "\nimport os\nos._exit(0)"  # PyTorch's end takes more memory than most tasks
        return min(cost([python, "-c", code], folder) for _ in range(2))


def exponent(sizes, costs, least):
    """The slope of log(cost) over log(n); None: too little to be measured."""
    if min(costs) < least:
        return None
    x, y = [math.log(n) for n in sizes], [math.log(c) for c in costs]
    mx, my = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mx) * (b - my) for a, b in zip(x, y)) / sum((a - mx) ** 2 for a in x)


def grown(sizes, costs, base):
    """The CPU seconds and MiB at the largest size, above `base`, each with its exponent."""
    seconds, user, mib = zip(*(tuple(c - b for c, b in zip(cost, base)) for cost in costs))
    times = user if mib[-1] > LARGE_MIB else seconds
    return seconds[-1], exponent(sizes, times, LEAST_SECONDS), mib[-1], exponent(sizes, mib, LEAST_MIB)


def shown(cost):
    seconds, mib = f"{cost[0]:.2f}", f"{cost[2]:.0f}"
    k, k_memory = ("-" if k is None else f"{k:.2f}" for k in (cost[1], cost[3]))
    return seconds, k, mib, k_memory


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dptrain")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--python", help="a Python that has torch and pandas")
    parser.add_argument("names", nargs="*")
    given = parser.parse_intermixed_args()
    dptrain = os.path.abspath(given.dptrain)
    head = ["grows", "n", "CPU s", "k", "MiB", "k", "a unit", "Python s", "k", "MiB", "k"]
    form = "{:28} {:>12} {:>8} {:>5} {:>8} {:>5} {:>10} {:>9} {:>5} {:>7} {:>5}"
    if given.markdown:
        form = "| " + " | ".join(["{}"] * len(head)) + " |"
    print(machine.describe(range(os.cpu_count())), f"{time.strftime('%Y-%m-%d')}\n")
    print(form.format(*head), *(["|" + "---|" * len(head)] if given.markdown else []), sep="\n")
    worst = 0.0
    for row in ROWS:
        if given.names and not any(row.name.startswith(n) for n in given.names):
            continue
        sizes = [n // 4 if given.quick else n for n in row.sizes]
        base = of_dptrain(row, max(1, sizes[0] // 50), dptrain)
        own = grown(sizes, [of_dptrain(row, n, dptrain) for n in sizes], base)
        worst = max([worst, *(k for k in (own[1], own[3]) if k)])
        peer = ["-"] * 4
        if given.python and row.python and (imports := of_python(row, 0, given.python)):
            peer = shown(grown(sizes, [of_python(row, n, given.python) for n in sizes], imports))
        unit = f"{own[0] / sizes[-1] * 1e6:.3g} us"
        print(form.format(row.name, f"{sizes[-1]:,}", *shown(own), unit, *peer), flush=True)
    print(f"\nthe largest exponent is {worst:.2f}; at most {MOST_EXPONENT} is wanted")
    sys.exit(worst > MOST_EXPONENT)


if __name__ == "__main__":
    main()
