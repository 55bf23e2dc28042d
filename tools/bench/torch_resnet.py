#!/usr/bin/env python3
"""PyTorch on torchvision's ResNet-50, random images of 3 x 224 x 224 in memory, SGD with momentum.

An epoch is as many steps as compare.py's spec has. --channels-last, --compile and --autocast (in
bfloat16) say how.
"""

import contextlib
import time

import torch
import torchvision

import peer
import workloads


def main():
    options = peer.arguments(
        __doc__.splitlines()[0],
        threads={"type": int, "default": 2},
        **{name: {"action": "store_true"} for name in ["channels-last", "compile", "autocast"]},
    )
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    format = torch.channels_last if options.channels_last else torch.contiguous_format
    model = torchvision.models.resnet50().to(memory_format=format)
    criterion = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    batch, steps = workloads.RESNET_BATCH, workloads.RESNET_STEPS
    images = torch.randn(batch, 3, 224, 224).to(memory_format=format)
    targets = torch.randint(0, 1000, (batch,))

    def loss_of(x, y):
        return criterion(model(x), y)

    if options.compile:
        loss_of = torch.compile(loss_of)
    half = torch.autocast("cpu", torch.bfloat16) if options.autocast else contextlib.nullcontext()
    seconds, losses = [], []
    for _ in range(options.epochs):
        start = time.perf_counter()
        total = 0.0
        for _ in range(steps):
            with half:
                loss = loss_of(images, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        losses.append(total / steps)
        seconds.append(time.perf_counter() - start)
    peer.report("torch_resnet", seconds, losses, ["torch", "torchvision"])


if __name__ == "__main__":
    main()
