"""What the programs of docs/mistakes.md share: Fashion-MNIST, the net of configs/ddp_mistakes.yaml, and DDP ranks."""

import gzip
import os
import pathlib
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

RANKS = 2


def fashion_mnist(split, count=None):
    """The first images, float [N, 1, 28, 28] in [0, 1], and classes [N]. split: "train" or "t10k"."""
    folder = next(p for p in pathlib.Path(os.environ.get("DPTRAIN_DATA", "datasets")).iterdir()
                  if p.name.replace("-", "").replace("_", "") == "fashionmnist")

    def content(name, head):
        path = folder / f"{split}-{name}-ubyte"
        data = path.read_bytes() if path.exists() else gzip.open(f"{path}.gz").read()
        return torch.frombuffer(bytearray(data[head:]), dtype=torch.uint8)

    images = content("images-idx3", 16).reshape(-1, 1, 28, 28)[:count]
    return images.float() / 255, content("labels-idx1", 8)[:count].long()


def make_net(dropout=0.0, seed=0):
    """Equal on all ranks, since they have the same seed, and equal to dptrain's net for the same `seed`."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 200), nn.ReLU(), nn.Dropout(dropout), nn.Linear(200, 10))


def on_ranks(function, *args):
    """Runs function(rank, *args) in RANKS processes that gloo connects; returns what rank 0 returns."""
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(_rank, (function, args, folder), nprocs=RANKS)
        return torch.load(f"{folder}/result.pt", weights_only=True)


def _rank(rank, function, args, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=RANKS)
    result = function(rank, *args)
    if rank == 0:
        torch.save(result, f"{folder}/result.pt")
    dist.barrier()
    dist.destroy_process_group()
