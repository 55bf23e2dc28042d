"""Compares `dptrain predict` of the specs in configs/large/ with torchvision's nets, with torchvision's weights.

Each net has random weights and random running statistics of batch norms. torch.save writes its state_dict;
`dptrain check` accepts the file as `initial_weights`, and `dptrain predict --weights` gives torchvision's outputs.
Exit code 77: torchvision is missing. Another Python may be named in $DPTRAIN_PYTHON.
"""

import argparse
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Name of the net, of torchvision and of its spec: height and width of images. 64 is two pixels in the last stage of
# the convolutional nets; the position embedding of vit_b_16 has rows for 224.
NETS = {"resnet18": 64, "resnet34": 64, "resnet50": 64, "mobilenet_v2": 64, "vit_b_16": 224}
SAMPLES = 3
# Both compute in float32, with sums in another order: an error of at most sqrt(terms) * 6e-8 per layer, which is
# 4e-6 for the largest sums (4608 terms of the ResNets), and some 50 layers add up. It is relative to the largest
# output, since outputs are sums of terms of either sign.
TOLERANCE = 1e-4


def randomize(model, torch):
    """No 0 or 1 hides an error, and the variance of activations stays about the same from layer to layer."""
    for name, value in model.state_dict().items():
        if name.endswith("running_mean"):
            value.normal_(0, 0.1)
        elif name.endswith("running_var"):
            value.uniform_(0.5, 1.5)
        elif name.endswith("num_batches_tracked"):
            value.fill_(7)
        elif value.dim() == 1 and name.endswith("weight"):
            value.uniform_(0.8, 1.2)
        elif value.dim() == 1 or name in ("class_token", "encoder.pos_embedding"):
            value.normal_(0, 0.05)
        else:
            value.normal_(0, (2 / value[0].numel()) ** 0.5)
    assert all(torch.isfinite(v).all() for v in model.state_dict().values())


def compare(dptrain, name, size, folder):
    import numpy
    import torch
    import torchvision

    def run(*words):
        done = subprocess.run([dptrain, *map(str, words)], cwd=folder, text=True, capture_output=True)
        if done.returncode != 0:
            sys.exit(f"dptrain {' '.join(map(str, words))}:\n{done.stdout}{done.stderr}")

    torch.manual_seed(3)
    model = getattr(torchvision.models, name)(weights=None).eval()
    with torch.no_grad():
        randomize(model, torch)
    torch.save(model.state_dict(), folder / "weights.pt")
    spec = ROOT / f"configs/large/{name}.yaml"
    how = ["data.dataset.samples=2", "data.dataset.test_samples=2", f"data.dataset.shape=[3, {size}, {size}]",
           "data.batch_size=2", "optimizer={sgd: 0.001}", "cores=1"]
    run("check", spec, *how, "initial_weights=weights.pt")
    run(spec, *how, "steps=1", "epochs=null", f"out={folder / name}")
    pixels = numpy.random.default_rng(5).integers(0, 256, (SAMPLES, 3, size, size), dtype=numpy.uint8)
    numpy.save(folder / "x.npy", pixels)
    run("predict", folder / name, "x.npy", "--weights", "weights.pt", "-o", "y.npy")
    got = numpy.load(folder / "y.npy")
    mean, std = (torch.tensor(v).reshape(-1, 1, 1) for v in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    with torch.no_grad():
        want = model((torch.from_numpy(pixels) / 255 - mean) / std).numpy()
    assert got.shape == want.shape == (SAMPLES, 1000), got.shape
    largest = abs(want).max()
    # Outputs of different images must differ, else the comparison would prove little.
    assert abs(want[0] - want[1]).max() > 100 * TOLERANCE * largest, name
    error = abs(got - want).max() / largest
    print(f"{name}: difference {error:.1e} of the largest output {largest:.3g}", flush=True)
    return error <= TOLERANCE  # false for nan


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--dptrain", required=True)
    arguments.add_argument("nets", nargs="*", default=list(NETS))
    given = arguments.parse_args()
    dptrain = pathlib.Path(given.dptrain).resolve()
    wrong = []
    for name in given.nets:
        with tempfile.TemporaryDirectory() as folder:
            if not compare(dptrain, name, NETS[name], pathlib.Path(folder)):
                wrong.append(name)
    if wrong:
        sys.exit(f"outputs differ by more than {TOLERANCE} of the largest: {', '.join(wrong)}")


if __name__ == "__main__":
    if not all(importlib.util.find_spec(package) for package in ("numpy", "torchvision")):
        other = os.environ.get("DPTRAIN_PYTHON")
        if not other or os.environ.get("DPT_TRIED_PYTHON"):
            sys.exit(77)
        os.execve(other, [other, *sys.argv], os.environ | {"DPT_TRIED_PYTHON": "1"})
    main()
