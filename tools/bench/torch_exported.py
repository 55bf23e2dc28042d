#!/usr/bin/env python3
"""A program of `dptrain export`, timed: the same net, weights, order and optimizer in PyTorch.

Only the loader is replaced, by one that indexes the data in memory. --compile puts the net and the
optimizer's update through torch.compile, --channels-last stores images and weights of convolutions
with channels last.
"""

import contextlib
import functools
import importlib.util
import io
import re
import time

import torch

import peer
import tutorial


class Batches:
    """Batches of a TensorDataset in DataLoader's order; appends each epoch's seconds by a clock."""

    def __init__(self, clock, seconds, arrange, dataset, batch_size, shuffle=False, drop_last=False):
        self.clock, self.seconds, self.batch_size, self.shuffle = clock, seconds, batch_size, shuffle
        x, *self.rest = dataset.tensors
        self.x = arrange(x)
        self.samples = len(x) - (len(x) % batch_size if drop_last else 0)

    def __iter__(self):
        start = self.clock()
        order = tutorial.loader_order(len(self.x)) if self.shuffle else torch.arange(len(self.x))
        for indices in order[: self.samples].split(self.batch_size):
            yield self.x[indices], *(each[indices] for each in self.rest)
        self.seconds.append(self.clock() - start)


class Optimizers:
    """torch.optim, with update steps that are compiled."""

    def __getattr__(self, name):
        def make(*arguments, **options):
            optimizer = getattr(torch.optim, name)(*arguments, **options)
            optimizer.step = torch.compile(optimizer.step)
            return optimizer

        return make


def load(path):
    found = importlib.util.spec_from_file_location("exported", path)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def measure(program, epochs, compiled=False, channels_last=False, clock=time.perf_counter):
    """(seconds, mean losses) of the epochs of an exported program."""
    exported = load(program)
    make_model = exported.make_model

    def arrange(images):
        last = channels_last and images.dim() == 4
        return images.to(memory_format=torch.channels_last) if last else images

    def prepared_model():
        model = make_model()
        if channels_last:
            model = model.to(memory_format=torch.channels_last)
        return torch.compile(model) if compiled else model

    seconds = []
    exported.make_model = prepared_model
    exported.EPOCHS = epochs
    exported.DataLoader = functools.partial(Batches, clock, seconds, arrange)
    if compiled:
        exported.optim = Optimizers()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exported.train(type("Arguments", (), {"losses": None, "weights": None, "save": None}))
    return seconds, [float(each) for each in re.findall(r"Loss: (\S+)", printed.getvalue())]


def main():
    options = peer.arguments(
        __doc__.splitlines()[0],
        program={"required": True, "help": "the exported program"},
        threads={"type": int, "default": 2},
        compile={"action": "store_true"},
        channels_last={"action": "store_true"},
    )
    torch.set_num_threads(options.threads)
    seconds, losses = measure(options.program, options.epochs, options.compile, options.channels_last)
    peer.report("torch_exported", seconds, losses, ["torch", "numpy"])


if __name__ == "__main__":
    main()
