"""fmnist as a PyTorch program, written by `dptrain export --to torch`.

The initial weights and the order of samples are dptrain's, so that one loss curve can be laid
over the other. `--losses FILE` writes each step's loss, for `dptrain compare`. `--weights FILE`
starts from weights of dptrain, and `--save FILE` writes the trained ones.
"""

import argparse
import gzip
import os
import struct
import tempfile
from collections import OrderedDict
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

SEED = 3
EPOCHS = 3
RANKS = 2
BATCH_SIZE = 10  # of each rank


def read_idx(path):
    """A file of the MNIST format, gzipped or not, as a tensor of bytes."""
    data = Path(path).read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    rank = data[3]
    shape = struct.unpack_from(f">{rank}I", data, 4)
    return torch.frombuffer(bytearray(data), dtype=torch.uint8, offset=4 + 4 * rank).reshape(shape)


def load_weights(model, path, partial=False):
    """From a .safetensors file, as dptrain's, or from torch.save; partial: only what fits."""
    if Path(path).suffix == ".safetensors":
        from safetensors.torch import load_file

        state = load_file(path)
    else:
        state = torch.load(path, weights_only=True)
        if not any(torch.is_tensor(value) for value in state.values()):
            keys = ("state_dict", "model_state_dict", "model")
            state = next(state[key] for key in keys if isinstance(state.get(key), dict))
    own = model.state_dict()
    wrappers = ("module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")
    weights = {}
    for name, value in state.items():
        if name not in own:  # wrappers of modules add to names
            name = ".".join(part for part in name.split(".") if part not in wrappers)
        if name not in own and f"{name}.weight" in own:  # a bare parameter
            name += ".weight"
        fits = name in own and own[name].shape == value.shape
        if fits or not partial:
            weights[name] = value
    model.load_state_dict(weights, strict=not partial)


def write_weights(state, path):
    if Path(path).suffix == ".safetensors":
        from safetensors.torch import save_file

        save_file(state, path)
    else:
        torch.save(state, path)


def sum_over_ranks(value):
    total = torch.tensor(value, dtype=torch.float64)
    dist.all_reduce(total)
    return total.item()


def train_data():
    x = read_idx("configs/train-images.gz")
    y = read_idx("labels.gz").long()
    x = x.float()
    x = x / 2
    return TensorDataset(x, y)


def make_model():
    return nn.Sequential(
        OrderedDict([
            ("0", nn.Flatten()),
            ("lin1", nn.Linear(784, 200)),
            ("2", nn.Sigmoid()),
            ("3", nn.Linear(200, 10)),
        ])
    )


def train(rank, store, arguments):
    dist.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=RANKS
    )
    torch.set_num_threads(max(1, os.cpu_count() // RANKS))
    data = train_data()
    torch.manual_seed(SEED)
    model = make_model()
    if arguments.weights:
        load_weights(model, arguments.weights)
    model = DistributedDataParallel(model)
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    sampler = DistributedSampler(data, num_replicas=RANKS, rank=rank)
    loader = DataLoader(data, batch_size=BATCH_SIZE, sampler=sampler)
    losses = []
    for epoch in range(EPOCHS):
        total, weight = 0.0, 0
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            loss = loss.item()
            optimizer.step()
            count = sum_over_ranks(len(x))
            loss = sum_over_ranks(loss * len(x)) / count
            losses.append(loss)
            total += loss * count
            weight += count
        mean = total / weight
        if rank == 0:
            print(f"Epoch [{epoch + 1}/{EPOCHS}], Loss: {mean:.4f}")
    if rank == 0 and arguments.losses:
        lines = [
            f'{{"step": {step}, "loss": {loss:.9g}}}\n' for step, loss in enumerate(losses, 1)
        ]
        Path(arguments.losses).write_text("".join(lines))
    if rank == 0 and arguments.save:
        write_weights(model.module.state_dict(), arguments.save)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--losses", metavar="FILE", help="where each step's loss goes")
    parser.add_argument("--weights", metavar="FILE", help="initial weights, .safetensors or .pt")
    parser.add_argument("--save", metavar="FILE", help="trained weights, .safetensors or .pt")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(train, args=(Path(folder) / "store", arguments), nprocs=RANKS)
