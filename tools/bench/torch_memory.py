#!/usr/bin/env python3
"""PyTorch with all data in memory and no loader: 784-200-200-10, Adam 0.01, batch 100.

--compile puts forward and loss, and the optimizer's update, through torch.compile; --autocast
computes in bfloat16.
"""

import time

import torch

import peer
import tutorial


def main():
    options = peer.arguments(
        __doc__.splitlines()[0],
        threads={"type": int, "default": 2},
        compile={"action": "store_true"},
        autocast={"action": "store_true"},
    )
    torch.set_num_threads(options.threads)
    folder = peer.data_folder(options.data)
    pictures, targets = tutorial.in_memory(*peer.fashion_mnist(folder))
    torch.manual_seed(0)
    model = tutorial.Net()
    criterion = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def loss_of(x, y):
        with torch.autocast("cpu", torch.bfloat16, enabled=options.autocast):
            return criterion(model(x), y)

    update = optimizer.step
    if options.compile:
        loss_of, update = torch.compile(loss_of), torch.compile(update)

    seconds, losses = [], []
    for _ in range(options.epochs):
        start = time.perf_counter()
        total = torch.zeros(())
        batches = tutorial.loader_order(len(targets)).split(100)
        for indices in batches:
            loss = loss_of(pictures[indices], targets[indices])
            optimizer.zero_grad()
            loss.backward()
            update()
            total += loss.detach()
        losses.append(total.item() / len(batches))
        seconds.append(time.perf_counter() - start)
    name = "torch_compiled" if options.compile else "torch_memory"
    peer.report(name, seconds, losses, ["torch", "numpy"])


if __name__ == "__main__":
    main()
