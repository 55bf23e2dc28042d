"""Equal seeds on all ranks after the net is made: all ranks draw the same dropout masks."""

import argparse

import torch
import torch.distributed as dist
from common import RANKS, fashion_mnist, make_net, on_ranks
from torch.nn.functional import cross_entropy, dropout
from torch.nn.parallel import DistributedDataParallel

BATCH = 50


def gradients(rank, correct, draws):
    """The share of equal elements in the ranks' masks, and the variance of the gradient that dropout causes."""
    net = DistributedDataParallel(make_net(dropout=0.5))
    images, classes = fashion_mnist("train", RANKS * BATCH)
    x, y = images[rank::RANKS], classes[rank::RANKS]
    total, squares, equal = 0, 0, 0
    for draw in range(draws):
        seed = draw * RANKS + rank if correct else draw  # the bug: rank is forgotten
        torch.manual_seed(seed)
        masks = [torch.empty(BATCH, 200) for _ in range(RANKS)]
        dist.all_gather(masks, dropout(torch.ones(BATCH, 200), 0.5))
        equal += (masks[0] == masks[1]).float().mean().item()
        torch.manual_seed(seed)
        net.zero_grad()
        cross_entropy(net(x), y).backward()
        gradient = torch.cat([p.grad.flatten() for p in net.parameters()]).double()
        total, squares = total + gradient, squares + gradient.square().sum().item()
    mean = total / draws
    variance = (squares - draws * mean.square().sum().item()) / (draws - 1)
    return equal / draws, variance


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--draws", type=int, default=400)
    given = arguments.parse_args()
    for correct in False, True:
        equal, variance = on_ranks(gradients, correct, given.draws)
        print(f"{'seed and rank' if correct else 'equal seeds'}: {100 * equal:.1f} % of the mask's elements are equal "
              f"on both ranks, variance of the gradient {variance:.3e}")
