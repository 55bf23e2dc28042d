"""What the peer programs share: arguments, Fashion-MNIST from its IDX files, the line of JSON."""

import argparse
import gzip
import importlib.metadata
import json
import os
import pathlib
import platform
import struct

import numpy

HERE = pathlib.Path(__file__).resolve().parent


def read_idx(path):
    """An IDX file (gzip or not) of unsigned bytes as a numpy array."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rb") as file:
        raw = file.read()
    dims = raw[3]
    shape = struct.unpack(f">{dims}I", raw[4 : 4 + 4 * dims])
    return numpy.frombuffer(raw, numpy.uint8, offset=4 + 4 * dims).reshape(shape)


def data_folder(given):
    """--data, else $DPTRAIN_DATA, else the folders where tools/ puts it."""
    root = HERE.parent.parent
    roots = [given] if given else [os.environ.get("DPTRAIN_DATA"), root / "datasets"]
    for each in roots:
        for folder in [pathlib.Path(each), pathlib.Path(each) / "fashion-mnist"] if each else []:
            if list(folder.glob("train-images-idx3-ubyte*")):
                return folder
    raise SystemExit("no Fashion-MNIST found: give --data DIR with train-images-idx3-ubyte.gz")


def fashion_mnist(folder):
    """Training images [60000, 28, 28] and labels [60000], both bytes."""
    [images] = folder.glob("train-images-idx3-ubyte*")
    [labels] = folder.glob("train-labels-idx1-ubyte*")
    return read_idx(images), read_idx(labels)


def arguments(about, epochs=2, **more):
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--data", help="folder of Fashion-MNIST")
    for name, options in more.items():
        parser.add_argument(f"--{name.replace('_', '-')}", **options)
    return parser.parse_args()


def versions(*packages):
    found = {each: importlib.metadata.version(each) for each in packages}
    return {"python": platform.python_version(), **found}


def report(name, seconds, losses, packages):
    """The one line that compare.py reads; loss is the mean over the steps of each epoch."""
    line = {"name": name, "seconds_per_epoch": seconds, "loss": losses}
    print(json.dumps({**line, "versions": versions(*packages)}), flush=True)
