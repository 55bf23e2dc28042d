"""Trains models, exports them, and compares what other programs compute with `dptrain predict -o`.

  onnx         onnx.checker accepts every model; onnxruntime's outputs are within rtol 1e-4, atol 1e-5 (see ATOL)
  torch        torch.load(weights_only=True) reads every state_dict; the exported program's model loads it
               and computes the same within the same tolerance; dptrain reads what torch.save writes

The models: the tutorial's table, and every spec in configs/ after one step; random_layers.py has every layer. Each
package is tested if Python has it. Another Python may be named in $DPTRAIN_PYTHON. Exit code 77: neither is there.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Differences are those of float32 sums in another order, so they grow with the largest terms: ATOL is for outputs up
# to 1, and is multiplied with the largest output otherwise.
RTOL, ATOL = 1e-4, 1e-5
# One step of small batches, in one process; the weights then differ from the initial ones.
SMALL = ["steps=1", "epochs=null", "schedule=null", "evaluate=false", "data.validation=none", "parallel=single",
         "devices=null", "memory_limit=null", "data.limit=4", "reproducible=none", "accumulate=1", "precision=fp32",
         "data.batch_size=2"]
# After one step the running statistics of nets with batch norm are still those before it, and activations grow with every layer to
# outputs in the thousands. After these steps they are those of the data.
RESNET = ["steps=40", "data.dataset.shape=[3, 64, 64]", "data.limit=8", "optimizer.lr=0.001", "data.batch_size=4"]
# Of sequences of 1024 tokens it predicts 300 MB of scores.
GPT2 = ["data.dataset.length=16"]

TUTORIAL = """
data:
  dataset: {csv: {path: train.csv, test_path: test.csv, targets: label, classes: 2}}
  batch_size: 50
model:
  - linear: 32
  - relu
  - linear: 2
loss: cross_entropy
optimizer: {adam: 0.01}
epochs: 10
evaluate: true
"""


def write_points(folder):
    """The tutorial's tables."""
    random.seed(1)
    for name, count in ("train.csv", 1600), ("test.csv", 400):
        with open(folder / name, "w") as f:
            print("x,y,label", file=f)
            for _ in range(count):
                x, y = random.uniform(-1, 1), random.uniform(-1, 1)
                print(f"{x:.4f},{y:.4f},{int(x * y > 0)}", file=f)


def write_data(folder):
    """Stand-ins in the format of Fashion-MNIST and of Tiny Shakespeare."""
    (folder / "fashion_mnist").mkdir(parents=True)
    for split in "train", "t10k":
        for name, shape in ("images-idx3", (8, 28, 28)), ("labels-idx1", (8,)):
            size = 1
            for n in shape:
                size *= n
            data = random.Random(2).randbytes(size) if len(shape) > 1 else bytes(range(8))
            (folder / f"fashion_mnist/{split}-{name}-ubyte").write_bytes(
                struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape) + data)
    (folder / "tiny_shakespeare").mkdir()
    numbers = random.Random(3)
    text = bytes(range(48, 48 + 65)) + bytes(numbers.randrange(48, 48 + 65) for _ in range(1115394 - 65))
    (folder / "tiny_shakespeare/input.txt").write_bytes(text)


class Test:
    def __init__(self, dptrain, folder):
        import numpy

        self.np = numpy
        self.dptrain, self.folder = dptrain, folder
        self.environment = os.environ | {"DPTRAIN_DATA": str(folder / "data")}
        self.onnx = importlib.util.find_spec("onnx") and importlib.util.find_spec("onnxruntime")
        self.torch = importlib.util.find_spec("torch")
        self.failures, self.worst = [], {"onnxruntime": 0.0, "torch": 0.0}
        self.models = 0

    def run(self, *words):
        done = subprocess.run([self.dptrain, *map(str, words)], cwd=self.folder, env=self.environment, text=True,
                              capture_output=True)
        if done.returncode != 0:
            sys.exit(f"dptrain {' '.join(map(str, words))}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def samples(self, run, count):
        """Random samples of the run's form as a file, and as its transforms make them for the model."""
        np, form = self.np, json.loads((run / "data.json").read_text())
        shape, kind = form["sample"]["shape"], form["sample"]["type"]
        generator = np.random.default_rng(5)
        if kind == "u8":
            raw = generator.integers(0, 256, (count, *shape), dtype=np.uint8)
        elif kind == "i32":
            raw = generator.integers(0, form["tokens"], (count, *shape), dtype=np.int32)
        else:
            raw = generator.standard_normal((count, *shape)).astype(np.float32)
        np.save(self.folder / "x.npy", raw)
        if kind == "i32":
            return raw.astype(np.int64)
        x = raw.astype(np.float32)
        text = transforms((run / "spec.resolved.yaml").read_text())
        unknown = set(re.findall(r"[a-z_]+", text)) - {"to_tensor", "divide", "by", "normalize", "mean", "std", "e"}
        if unknown:
            sys.exit(f"the test does not know the transforms {unknown}")
        if "to_tensor" in text and kind == "u8":
            x = x / np.float32(255)
        if "divide" in text:
            x = x / np.float32(numbers_of(text, "divide")[0])
        if "normalize" in text:
            mean, std = (np.array(numbers_of(text, key), np.float32).reshape(-1, 1, 1) for key in ("mean", "std"))
            x = (x - mean) / std
        return x

    def compare(self, name, program, got, want):
        np = self.np
        if got.shape != want.shape or got.dtype != np.float32:
            return self.failures.append(f"{name}: {program} gives {got.shape} {got.dtype}, not {want.shape}")
        atol = ATOL * max(1, np.abs(want).max())
        share = float((np.abs(got - want) / (atol + RTOL * np.abs(want))).max())
        self.worst[program] = max(self.worst[program], share)
        if not share <= 1:
            self.failures.append(f"{name}: {program} differs by {np.abs(got - want).max()}, {share} of the tolerance")

    def model(self, name, run, count=3):
        """Exports a trained run and compares."""
        started, np = time.time(), self.np
        x = self.samples(run, count)
        self.run("predict", run, "x.npy", "-o", "y.npy")
        want = np.load(self.folder / "y.npy")
        if not np.isfinite(want).all():
            return self.failures.append(f"{name}: outputs are not finite")
        self.models += 1
        if self.onnx:
            self.check_onnx(name, run, x, want)
        if self.torch:
            self.check_torch(name, run, x, want)
        print(f"{name}: {time.time() - started:.1f} s", flush=True)

    def check_onnx(self, name, run, x, want):
        import onnx
        import onnxruntime

        self.run("export", run, "-o", "m.onnx")
        onnx.checker.check_model(str(self.folder / "m.onnx"), full_check=True)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        try:
            session = onnxruntime.InferenceSession(self.folder / "m.onnx", options, providers=["CPUExecutionProvider"])
            self.compare(name, "onnxruntime", session.run(["output"], {"input": x})[0], want)
        except Exception as e:  # its classes have no base of their own
            return self.failures.append(f"{name}: onnxruntime refuses it: {str(e)[:300]}")
        # Any number of samples.
        self.compare(name, "onnxruntime", session.run(["output"], {"input": x[:1]})[0], want[:1])

    def check_torch(self, name, run, x, want):
        import torch

        self.run("export", run, "-o", "m.pt")
        state = torch.load(self.folder / "m.pt", weights_only=True)
        self.run("export", run, "-o", "program.py")
        spec = importlib.util.spec_from_file_location("program", self.folder / "program.py")
        program = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(program)
        model = program.make_model()
        model.load_state_dict(state)
        with torch.no_grad():
            self.compare(name, "torch", model.eval()(torch.from_numpy(x)).numpy(), want)
        torch.save(model.state_dict(), self.folder / "torch.pt")
        self.run("predict", run, "x.npy", "--weights", "torch.pt", "-o", "z.npy")
        if not (self.np.load(self.folder / "z.npy") == want).all():
            self.failures.append(f"{name}: the weights of torch.save are read as others")


def transforms(text):
    """The text of data.transforms in a resolved spec, in flow or block style."""
    found = re.search(r"^  transforms:(.*\n(?:  [ -].*\n)*)", text, re.M)
    return found[1] if found else ""


def numbers_of(text, key):
    """The number or the list behind a key."""
    return [float(n) for n in re.findall(r"[-\d.e]+", re.search(key + r": (\[[^]]*\]|[-\d.e]+)", text)[1])]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--dptrain", required=True)
    dptrain = pathlib.Path(arguments.parse_args().dptrain).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        test = Test(dptrain, folder)
        write_data(folder / "data")
        write_points(folder)
        (folder / "points.yaml").write_text(TUTORIAL)
        test.run("points.yaml", "out=points")
        test.model("tutorial", folder / "points", 200)
        for spec in sorted((ROOT / "configs").rglob("*.yaml")):
            out = folder / spec.stem
            more = RESNET if "resnet" in spec.stem or "mobilenet" in spec.stem else GPT2 if spec.stem == "gpt2" else []
            test.run(spec, *SMALL, *more, f"out={out}")
            test.model(spec.stem, out)
    print(f"{test.models} models; the largest difference is {test.worst} of the tolerance")
    if test.failures:
        sys.exit("\n".join(test.failures))


def need_packages():
    """Goes on in the other Python, or skips the test, where Python has not the packages."""
    packages = [importlib.util.find_spec(name) for name in ("numpy", "torch", "onnxruntime")]
    if not packages[0] or not any(packages[1:]):
        other = os.environ.get("DPTRAIN_PYTHON")
        if not other or os.environ.get("DPT_TRIED_PYTHON"):
            sys.exit(77)
        os.execve(other, [other, *sys.argv], os.environ | {"DPT_TRIED_PYTHON": "1"})


if __name__ == "__main__":
    need_packages()
    main()
