#!/usr/bin/env python3
"""Compares what dptrain reads from the data files of installed Python packages with what other packages read.

    tools/real_files.py --dptrain build/src/dptrain [PATH ...]

PATH: files or folders, by default the folders of scikit-learn, statsmodels, vega_datasets and others that are
installed. Tables, images, arrays and weights go through init, check, one epoch and predict, and are compared with
pandas, Pillow, numpy and safetensors. A difference is an error, and a refusal is printed with its reason. A kind of
file whose package is not installed is skipped. To add a kind, write a module with NEEDS and a function
(Tool, path) -> Result, and add it to KINDS.
"""
import argparse
import importlib.util
import pathlib
import sys
import tempfile

import real_arrays
import real_images
import real_tables
import real_weights
from real_tool import Refused, Result, Tool, Wrong

PACKAGES = ["sklearn", "statsmodels", "vega_datasets", "seaborn", "skimage", "numpy", "scipy", "safetensors",
            "lpips", "facenet_pytorch", "silero_vad"]
KINDS = {
    **dict.fromkeys([".csv", ".tsv"], (real_tables, real_tables.check_csv)),
    **dict.fromkeys([".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".pnm", ".webp", ".tif", ".tiff", ".gif"],
                    (real_images, real_images.check_image)),
    **dict.fromkeys([".npy", ".npz"], (real_arrays, real_arrays.check_array)),
    **dict.fromkeys([".safetensors", ".pt", ".pth"], (real_weights, real_weights.check_weights)),
}


def files_of(paths):
    for path in paths or [pathlib.Path(importlib.util.find_spec(p).origin).parent for p in PACKAGES
                          if importlib.util.find_spec(p)]:
        path = pathlib.Path(path).resolve()
        yield from sorted(f for f in path.rglob("*") if f.suffix.lower() in KINDS) if path.is_dir() else [path]


def check(program, path):
    module, function = KINDS[path.suffix.lower()]
    missing = [m for m in module.NEEDS if not importlib.util.find_spec(m)]
    if missing:
        return Result("skipped", f"{', '.join(missing)} not installed")
    with tempfile.TemporaryDirectory() as folder:
        try:
            return function(Tool(program, pathlib.Path(folder)), path)
        except Refused as e:
            return Result("refused", str(e))
        except Wrong as e:
            return Result("WRONG", str(e))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dptrain", required=True)
    parser.add_argument("paths", nargs="*")
    arguments = parser.parse_args()
    counts = {}
    for path in files_of(arguments.paths):
        result = check(str(pathlib.Path(arguments.dptrain).resolve()), path)
        counts[result.verdict] = counts.get(result.verdict, 0) + 1
        print(f"{result.verdict:8} {path.name}: {result.text}", flush=True)
    print(", ".join(f"{n} {verdict}" for verdict, n in sorted(counts.items())))
    return 1 if counts.get("WRONG") else 0


if __name__ == "__main__":
    sys.exit(main())
