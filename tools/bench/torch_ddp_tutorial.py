#!/usr/bin/env python3
"""The tutorial's Fashion-MNIST script on DistributedDataParallel, over gloo on CPUs.

--form loop is its own loop: a Dataset, a DataLoader and a Python transform for every picture.
--form memory takes the same samples in the same order from one tensor. Both print rank 0's own mean
of its steps' losses, as the tutorial does. It never calls set_epoch: the order is the same in each
epoch. Its ToTensor divides by 255, and its transform does so again.
"""

import json
import os
import pathlib
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

import peer
import tutorial


class InMemory:
    """The batches of a DataLoader without one: the whole set is one float tensor."""

    def __init__(self, images, labels, sampler, batch_size):
        self.images, self.labels = tutorial.in_memory(images, labels)
        self.sampler = sampler
        self.batch_size = batch_size

    def __iter__(self):
        order = torch.tensor(list(self.sampler))
        for indices in order.split(self.batch_size):
            yield self.images[indices], self.labels[indices]


def train(rank, world_size, options, rendezvous, result):
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // world_size))
    dist.init_process_group(
        "gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=world_size
    )
    torch.manual_seed(0)
    model = DistributedDataParallel(tutorial.Net())
    criterion = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    images, labels = peer.fashion_mnist(peer.data_folder(options.data))
    sampler = DistributedSampler(range(len(images)), num_replicas=world_size, rank=rank)
    if options.form == "loop":
        data = tutorial.Pictures(images, labels)
        batches = DataLoader(data, batch_size=100, shuffle=False, num_workers=0, sampler=sampler)
    else:
        batches = InMemory(images, labels, sampler, 100)

    losses, seconds = [], []
    for epoch in range(options.epochs):
        start = time.perf_counter()
        total, steps = 0.0, 0
        for pictures, targets in batches:
            loss = criterion(model(pictures), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            steps += 1
        losses.append(total / steps)
        seconds.append(time.perf_counter() - start)
        if rank == 0 and not options.json:
            print(f"Epoch [{epoch + 1}/{options.epochs}], Loss: {losses[-1]:.4f}", flush=True)
    if rank == 0:
        result.put((seconds, losses))
    dist.destroy_process_group()


def record(path, options, losses):
    """The fixture: rank 0's ten losses."""
    head = {
        "about": "rank 0's mean of its steps' losses in each epoch: 784-200-200-10, Adam 0.01, "
        "batch 100 for each of two ranks, pixels divided by 255 twice, the same order every epoch",
        "made_by": f"tools/bench/torch_ddp_tutorial.py --form {options.form}",
        "torch": torch.__version__.split("+")[0],
        "world_size": options.ranks,
        "loss": losses,
    }
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items())
    pathlib.Path(path).write_text("{\n" + lines + "\n}\n")


def main():
    options = peer.arguments(
        __doc__.splitlines()[0],
        epochs=10,
        ranks={"type": int, "default": 2},
        form={"choices": ["loop", "memory"], "default": "loop"},
        json={"action": "store_true", "help": "one line of JSON instead of the epochs'"},
        record={"metavar": "FILE", "help": "write the losses there"},
    )
    context = multiprocessing.get_context("spawn")
    result = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        given = (options.ranks, options, os.path.join(folder, "rendezvous"), result)
        multiprocessing.spawn(train, args=given, nprocs=options.ranks)
    seconds, losses = result.get()
    if options.json:
        peer.report(f"torch_ddp_{options.form}", seconds, losses, ["torch", "numpy"])
    else:
        print("seconds per epoch:", " ".join(f"{each:.2f}" for each in seconds), file=sys.stderr)
    if options.record:
        record(options.record, options, losses)


if __name__ == "__main__":
    main()
