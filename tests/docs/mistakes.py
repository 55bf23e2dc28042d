"""Runs the programs of docs/mistakes/ on small stand-ins of Fashion-MNIST, and dptrain's specs beside them.

Each program must show its mistake, and dptrain must not make it. Exit code 77: torch is missing. Another Python may be
named in $DPTRAIN_PYTHON.
"""

import argparse
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from sandbox import write_stand_ins

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "docs/mistakes"


def numbers(pattern, text):
    found = re.findall(pattern, text)
    assert len(found) == 2, f"{pattern!r} is not twice in:\n{text}"
    return [float(n) for n in found]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--dptrain", required=True)
    dptrain = pathlib.Path(arguments.parse_args().dptrain).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_stand_ins(folder / "data/fashion-mnist")
        os.environ["DPTRAIN_DATA"] = str(folder / "data")

        def run(*words):
            done = subprocess.run(list(map(str, words)), cwd=folder, text=True, capture_output=True)
            if done.returncode != 0:
                sys.exit(f"{' '.join(map(str, words))}:\n{done.stdout}{done.stderr}")
            print(done.stdout, end="", flush=True)
            return done.stdout

        def program(name, *words):
            return run(sys.executable, PROGRAMS / name, *words)

        def train(out, *words):
            return run(dptrain, ROOT / "configs/ddp_mistakes.yaml", "cores=1", f"out={folder / out}", *words)

        text = program("set_epoch.py", "--samples", "600", "--epochs", "3")
        assert numbers(r"(\d+) orders in 3 epochs", text) == [1, 3]
        losses = [train(f"order{i}", "data.limit=600", "epochs=3", f"data.reshuffle={value}")
                  for i, value in enumerate(("false", "true"))]
        assert losses[0] != losses[1]

        wrong, right = numbers(r"weights off by ([\d.]+) %", program("mean_of_means.py"))
        # The right one differs by rounding: some 1e-7 of the weights, which is 1e-5 of the epoch's change.
        assert wrong > 1 and right < 0.01, (wrong, right)
        check_exact(run, train, dptrain, folder)

        assert numbers(r"(\d+) samples counted,", program("padded_evaluation.py")) == [102, 101]
        evaluated = [run(dptrain, "eval", ROOT / "configs/ddp_mistakes.yaml", f"out={folder}/order1", "cores=1", mode,
                         f"devices={devices}")
                     for mode, devices in (("parallel=single", 1), ("parallel=ddp", 2), ("parallel=ddp", 3))]
        assert evaluated[0] == evaluated[1] == evaluated[2], evaluated

        wrong, right = numbers(r"([\d.]+) % of the mask's elements", program("dropout_seeds.py", "--draws", "10"))
        # Half of 100,000 elements, give or take six standard deviations.
        assert wrong == 100 and abs(right - 50) < 1, (wrong, right)
        often = train("masks1", "model[3].p=0.5", "reproducible=8", "data.limit=600", "epochs=1", "parallel=single",
                      "devices=1", "data.batch_size_per_replica=200")
        ranks = train("masks2", "model[3].p=0.5", "reproducible=8", "data.limit=600", "epochs=1")
        assert epochs_of(often) == epochs_of(ranks)

        text = program("no_sync.py", "--samples", "800")
        wrong, right = numbers(r"(\d+) bytes per rank and step", text)
        assert wrong == 4 * right == 4 * 4 * (784 * 200 + 200 + 200 * 10 + 10)
        # Sums in another order.
        assert float(re.search(r"difference of the weights: ([\d.e+-]+)", text)[1]) < 1e-5


def epochs_of(text):
    return [line for line in text.splitlines() if line.startswith("Epoch")]


def check_exact(run, train, dptrain, folder):
    """dptrain's ranks with unequal batches have the weights of PyTorch in one process."""
    sys.path.insert(0, str(PROGRAMS))
    import torch
    from mean_of_means import BATCH, SAMPLES, make_net, train_alone, weights_of

    train("uneven", f"data.limit={SAMPLES}", f"data.batch_size_per_replica={BATCH}", "data.shuffle=false",
          "optimizer={sgd: 0.1}", "epochs=1")
    run(dptrain, "export", folder / "uneven", "-o", "uneven.pt")
    net = make_net()
    start = weights_of(net)
    net.load_state_dict(torch.load(folder / "uneven.pt", weights_only=True))
    exact, _ = train_alone()
    error = (weights_of(net) - exact).norm() / (exact - start).norm()
    print(f"dptrain: weights off by {100 * error:.4f} % of the epoch's change")
    assert error < 1e-4, error


if __name__ == "__main__":
    if not importlib.util.find_spec("torch"):
        other = os.environ.get("DPTRAIN_PYTHON")
        if not other or os.environ.get("DPT_TRIED_PYTHON"):
            sys.exit(77)
        os.execve(other, [other, *sys.argv], os.environ | {"DPT_TRIED_PYTHON": "1"})
    main()
