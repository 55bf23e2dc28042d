#!/usr/bin/env python3
"""PyTorch steps of Linear(10, 10): MSE, SGD 0.001, batch 32, all data in memory, in order."""

import time

import numpy
import torch

import peer


def main():
    options = peer.arguments(
        __doc__,
        inputs={"required": True, "help": "inputs [N, 10], float32, .npy"},
        targets={"required": True, "help": "targets [N, 10], float32, .npy"},
        threads={"type": int, "default": 1, "help": "more only slow such a small net"},
    )
    torch.set_num_threads(options.threads)
    inputs = torch.from_numpy(numpy.load(options.inputs)).split(32)
    targets = torch.from_numpy(numpy.load(options.targets)).split(32)
    torch.manual_seed(0)
    model = torch.nn.Linear(10, 10)
    criterion = torch.nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    seconds, losses = [], []
    for _ in range(options.epochs):
        start = time.perf_counter()
        total = torch.zeros(())
        for x, y in zip(inputs, targets, strict=True):
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        losses.append(total.item() / len(inputs))
        seconds.append(time.perf_counter() - start)
    peer.report("torch_linear", seconds, losses, ["torch", "numpy"])


if __name__ == "__main__":
    main()
