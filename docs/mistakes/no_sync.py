"""Gradient accumulation without no_sync: DDP sums the gradients of every micro-batch over the ranks."""

import argparse
import contextlib
import time

import torch
import torch.distributed as dist
from common import fashion_mnist, make_net, on_ranks
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

MICRO, ACCUMULATE = 50, 4  # a step has 4 micro-batches of 50 samples on each rank


def train(rank, correct, samples):
    """One epoch: the bytes that ranks sum per step, the epoch's seconds, and the weights."""
    net = DistributedDataParallel(make_net())
    summed = 0

    def counting(state, bucket):
        nonlocal summed
        summed += bucket.buffer().nbytes
        return allreduce_hook(state, bucket)

    net.register_comm_hook(None, counting)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    images, classes = (v[rank::dist.get_world_size()] for v in fashion_mnist("train", samples))
    begin, steps = time.perf_counter(), 0
    for x, y in zip(images.split(MICRO * ACCUMULATE), classes.split(MICRO * ACCUMULATE)):
        optimizer.zero_grad()
        for i, (part, target) in enumerate(zip(x.split(MICRO), y.split(MICRO))):
            last = i == ACCUMULATE - 1
            with net.no_sync() if correct and not last else contextlib.nullcontext():  # no_sync: forgotten otherwise
                (cross_entropy(net(part), target) / ACCUMULATE).backward()
        optimizer.step()
        steps += 1
    seconds = time.perf_counter() - begin
    return summed / steps, seconds, torch.cat([p.detach().flatten() for p in net.parameters()])


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--samples", type=int, default=60000)
    given = arguments.parse_args()
    weights = []
    for correct in False, True:
        summed, seconds, result = on_ranks(train, correct, given.samples)
        weights.append(result)
        print(f"{'with' if correct else 'without'} no_sync: {summed:.0f} bytes per rank and step, "
              f"{seconds:.2f} s per epoch", flush=True)
    print(f"largest difference of the weights: {(weights[0] - weights[1]).abs().max():.1e}")
