"""fmnist as a PyTorch program, written by `dptrain export --to torch`.

The initial weights and the order of samples are dptrain's, so that one loss curve can be laid
over the other. `--losses FILE` writes each step's loss, for `dptrain compare`. `--weights FILE`
starts from weights of dptrain, and `--save FILE` writes the trained ones.
"""

import argparse
import gzip
import os
import struct
import sys
import tempfile
import zipfile
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


def without_ones(shape):
    """Leading dimensions of 1 do not count: bare parameters have them."""
    return without_ones(shape[1:]) if shape[:1] == (1,) else shape


def load_weights(model, path, partial=False):
    """From a safetensors file, as dptrain's, or from torch.save; partial: only what fits."""
    if zipfile.is_zipfile(path):
        file = torch.load(path, weights_only=True)
        entries = (file.get(key) for key in ["state_dict", "model_state_dict", "model"])
        state = next((entry for entry in entries if isinstance(entry, dict)), file)
    else:
        from safetensors.torch import load_file

        state = load_file(path)
    state = {name: value for name, value in state.items() if torch.is_tensor(value)}
    wrappers = ["module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"]
    names = {
        ".".join(part for part in name.split(".") if part not in wrappers): name
        for name in reversed(state)
    }
    names |= {name: name for name in state}
    own_names = model.state_dict().keys()
    if names.keys().isdisjoint(own_names | {n.removesuffix(".weight") for n in own_names}):
        # The model was a part of another module: Lightning's model.0.weight.
        ends = [n[: -len(own)] for own in own_names for n in names if n.endswith("." + own)]
        prefix = max(ends, key=ends.count, default="")
        names = {n.removeprefix(prefix): found for n, found in names.items()}
    weights, used, missing, other = {}, set(), [], []
    for name, own in model.state_dict().items():
        found = names.get(name, names.get(name.removesuffix(".weight")))  # or a bare parameter
        used.add(found)
        if found is None:
            if not name.endswith("num_batches_tracked"):
                missing.append(name)
            continue
        value = state[found]
        converts = value.is_floating_point() or not own.is_floating_point()
        if converts and without_ones(value.shape) == without_ones(own.shape):
            weights[name] = value.reshape(own.shape)
        else:
            other.append(f"{name} {list(own.shape)}, in the file {list(value.shape)} {value.dtype}")
    unused = [name for name in state if name not in used]
    if missing or other or unused:
        text = f"{path}: not in the file: {missing}; other shape: {other}; unused: {unused}"
        if not partial or not weights:
            raise ValueError(text)
        if dist.get_rank() == 0:
            print(text, file=sys.stderr)
    model.load_state_dict(weights, strict=False)


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
