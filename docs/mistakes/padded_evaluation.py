"""An evaluation with DistributedSampler: it repeats samples until all ranks have as many, and counts them twice."""

import argparse

import torch
import torch.distributed as dist
from common import RANKS, fashion_mnist, make_net, on_ranks
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset


def evaluate(rank, correct, weights, images):
    """Samples that were counted, and how many of them are right."""
    net = make_net().eval()
    net.load_state_dict(weights)
    data = TensorDataset(*fashion_mnist("t10k", images))
    if correct:
        loader = DataLoader(Subset(data, range(rank, len(data), RANKS)), batch_size=100)
    else:
        loader = DataLoader(data, batch_size=100, sampler=DistributedSampler(data, shuffle=False))
    sums = torch.zeros(2)
    with torch.no_grad():
        for x, y in loader:
            sums += torch.tensor([len(y), (net(x).argmax(1) == y).sum()])
    dist.all_reduce(sums)
    return sums.tolist()


def trained():
    """Weights after one epoch of 10,000 samples in one process."""
    net = make_net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    images, classes = fashion_mnist("train", 10000)
    for x, y in zip(images.split(100), classes.split(100)):
        optimizer.zero_grad()
        cross_entropy(net(x), y).backward()
        optimizer.step()
    return net.state_dict()


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--images", type=int, default=101)
    given = arguments.parse_args()
    weights = trained()
    for correct in False, True:
        count, right = on_ranks(evaluate, correct, weights, given.images)
        print(f"{'rank::RANKS' if correct else 'DistributedSampler'}: {count:.0f} samples counted, "
              f"{right:.0f} right, accuracy {100 * right / count:.2f} %")
    for ranks in 2, 8, 64:
        twice = sum(len(DistributedSampler(range(given.images), ranks, 0)) for _ in range(ranks)) - given.images
        print(f"DistributedSampler on {ranks} ranks: {twice} of {given.images} samples counted twice")
