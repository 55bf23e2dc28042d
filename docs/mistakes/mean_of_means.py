"""Ranks with unequal batches: DDP takes the mean of the ranks' means, not the mean over the samples."""

import torch
import torch.distributed as dist
from common import RANKS, fashion_mnist, make_net, on_ranks
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

SAMPLES, BATCH = 991, 90  # 11 batches of 90 and one of 1: in the last step rank 0 has 90 samples, rank 1 has 1


def train(rank, correct):
    """One epoch; rank r has the batches r, r + 2, ... Returns the weights, and the last step's loss as it is logged."""
    net = DistributedDataParallel(make_net())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    images, classes = fashion_mnist("train", SAMPLES)
    for first in range(rank * BATCH, SAMPLES, RANKS * BATCH):
        x, y = images[first:first + BATCH], classes[first:first + BATCH]
        optimizer.zero_grad()
        loss = cross_entropy(net(x), y)
        if correct:
            count = torch.tensor(float(len(y)))
            dist.all_reduce(count)
            loss = loss * (RANKS * len(y) / count)  # forgotten otherwise: DDP divides by RANKS
        loss.backward()
        optimizer.step()
    logged = loss.detach()
    dist.all_reduce(logged)
    return weights_of(net.module), logged.item() / RANKS


def train_alone():
    """The same epoch in one process: each step has the samples of both ranks."""
    net = make_net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    images, classes = fashion_mnist("train", SAMPLES)
    for x, y in zip(images.split(RANKS * BATCH), classes.split(RANKS * BATCH)):
        optimizer.zero_grad()
        loss = cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
    return weights_of(net), loss.item()


def weights_of(net):
    return torch.cat([p.detach().flatten() for p in net.parameters()])


if __name__ == "__main__":
    start = weights_of(make_net())
    exact, loss = train_alone()
    print(f"one process: last loss {loss:.6f}")
    for correct in False, True:
        weights, loss = on_ranks(train, correct)
        error = (weights - exact).norm() / (exact - start).norm()
        print(f"{'weighted means' if correct else 'mean of means'}: last loss {loss:.6f}, "
              f"weights off by {100 * error:.4f} % of the epoch's change")
