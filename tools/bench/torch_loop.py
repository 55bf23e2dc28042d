#!/usr/bin/env python3
"""PyTorch as the tutorial writes it, one process: DataLoader, Python transforms, loss.item()."""

import torch
from torch.utils.data import DataLoader

import peer
import tutorial


def main():
    options = peer.arguments(__doc__, threads={"type": int, "default": 2})
    torch.set_num_threads(options.threads)
    data = tutorial.Pictures(*peer.fashion_mnist(peer.data_folder(options.data)))
    torch.manual_seed(0)
    model = tutorial.Net()
    batches = DataLoader(data, batch_size=100, shuffle=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    seconds, losses = tutorial.train(model, batches, optimizer, options.epochs)
    peer.report("torch_loop", seconds, losses, ["torch", "numpy"])


if __name__ == "__main__":
    main()
