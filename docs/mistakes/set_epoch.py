"""DistributedSampler without set_epoch: every epoch has the order of the first one."""

import argparse

import torch
from common import fashion_mnist, make_net, on_ranks
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def train(rank, correct, samples, epochs, seed):
    net = DistributedDataParallel(make_net(seed=seed))
    data = TensorDataset(*fashion_mnist("train", samples))
    sampler = DistributedSampler(data, seed=seed)
    loader = DataLoader(data, batch_size=100, sampler=sampler)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    orders = set()
    for epoch in range(epochs):
        if correct:
            sampler.set_epoch(epoch)  # forgotten otherwise
        orders.add(tuple(sampler))
        for x, y in loader:
            optimizer.zero_grad()
            cross_entropy(net(x), y).backward()
            optimizer.step()
    x, y = fashion_mnist("t10k")
    with torch.no_grad():
        output = net.module.eval()(x)
    return len(orders), cross_entropy(output, y).item(), (output.argmax(1) == y).float().mean().item()


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--samples", type=int, default=10000)
    arguments.add_argument("--epochs", type=int, default=20)
    arguments.add_argument("--seed", type=int, default=0)
    given = arguments.parse_args()
    for correct in False, True:
        orders, loss, accuracy = on_ranks(train, correct, given.samples, given.epochs, given.seed)
        print(f"{'with' if correct else 'without'} set_epoch: {orders} orders in {given.epochs} epochs, "
              f"test loss {loss:.4f}, accuracy {100 * accuracy:.2f} %", flush=True)
