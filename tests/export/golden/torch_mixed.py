"""mixed as a PyTorch program, written by `dptrain export --to torch`.

The initial weights and the order of samples are dptrain's, so that one loss curve can be laid
over the other. `--losses FILE` writes each step's loss, for `dptrain compare`. `--weights FILE`
starts from weights of dptrain, and `--save FILE` writes the trained ones.

Random transforms are torchvision's, with PyTorch's random numbers: images are changed in
the same way as in dptrain, but not by the same amounts.

Samples are mixed in the same way as in dptrain, with PyTorch's random numbers, so their
partners and shares differ.
"""

import argparse
import gzip
import math
import struct
import sys
import zipfile
from pathlib import Path

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler
from torchvision import transforms

SEED = 0
EPOCHS = 3
BATCH_SIZE = 20


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
        print(text, file=sys.stderr)
    model.load_state_dict(weights, strict=False)


def write_weights(state, path):
    if Path(path).suffix == ".safetensors":
        from safetensors.torch import save_file

        save_file(state, path)
    else:
        torch.save(state, path)


class Transformed(torch.utils.data.Dataset):
    """Samples of `data`, transformed each time they are read, with random numbers of their own."""

    def __init__(self, data, transform):
        self.data = data
        self.transform = transform
        self.state = torch.Generator().manual_seed(SEED).get_state()

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        x, y = self.data[index]
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(self.state)
            x, y = self.transform(x.unsqueeze(0), torch.as_tensor(y).unsqueeze(0))
            self.state = torch.get_rng_state()
        return x.squeeze(0), y.squeeze(0)


class Mixed(torch.utils.data.Dataset):
    """Samples of `data`, each mixed with another one by a share of its own."""

    def __init__(self, data, mixings):
        self.data = data
        self.mixings = mixings
        self.state = torch.Generator().manual_seed(SEED + 1).get_state()

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        x, y = self.data[index]
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(self.state)
            mix, alpha, p = self.mixings[torch.randint(len(self.mixings), ()).item()]
            if torch.rand(()).item() < p:
                share = torch.distributions.Beta(alpha, alpha).sample().item()
                other_x, other_y = self.data[torch.randint(len(self.data), ()).item()]
                x, share = mix(x, other_x, share)
                y = share * y + (1 - share) * other_y
            self.state = torch.get_rng_state()
        return x, y


def mixup(x, other, share):
    return share * x + (1 - share) * other, share


def cutmix(x, other, share):
    """Pastes a box of the other image. The share is that of the pixels that are left."""
    height, width = x.shape[-2:]
    row, column = torch.randint(height, ()).item(), torch.randint(width, ()).item()
    half = 0.5 * math.sqrt(1 - share)
    top, bottom = max(row - int(half * height), 0), min(row + int(half * height), height)
    left, right = max(column - int(half * width), 0), min(column + int(half * width), width)
    x = x.clone()
    x[..., top:bottom, left:right] = other[..., top:bottom, left:right]
    return x, 1 - (bottom - top) * (right - left) / (height * width)


def class_weights(y):
    """1 / the number of samples of the class, so that all classes are drawn equally often."""
    _, index, counts = torch.unique(y, return_inverse=True, return_counts=True)
    return 1 / counts[index].double()


def weight_of(criterion, y):
    """What the mean divides by: the sum of the weights of these targets."""
    kept = y[y != criterion.ignore_index]
    return len(kept) if criterion.weight is None else criterion.weight[kept].sum().item()


def train_transform(x, y):
    x = transforms.RandomHorizontalFlip()(x)
    x = x.float() / 255 if x.dtype == torch.uint8 else x.float()
    y = torch.nn.functional.one_hot(y, 10).float()
    return x, y


def train_data():
    x = read_idx("configs/train-images.gz")
    y = read_idx("labels.gz").long()
    x, y = x[:90], y[:90]
    weights = class_weights(y)
    data = TensorDataset(x, y)
    data = Transformed(data, train_transform)
    return Mixed(data, [(mixup, 0.2, 1.0), (cutmix, 1.0, 0.5)]), weights  # alpha, probability


def test_data():
    x = read_idx("configs/test-images.gz")
    y = read_idx("labels.gz").long()
    x = x.float() / 255 if x.dtype == torch.uint8 else x.float()
    return TensorDataset(x, y)


def make_model():
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(1728, 10),
    )


@torch.no_grad()
def evaluate(model, criterion, data):
    model.eval()
    total = 0.0
    weight = 0
    right = 0
    for x, y in DataLoader(data, batch_size=1000):
        output = model(x)
        count = weight_of(criterion, y)
        if count:  # else all targets are ignored, and their mean is nan
            total += criterion(output, y).item() * count
            weight += count
        right += (output.argmax(dim=1) == y).sum().item()
    model.train()
    return total / weight if weight else math.nan, right / len(data)


def train(arguments):
    data, weights = train_data()
    test = test_data()
    torch.manual_seed(SEED)
    model = make_model()
    if arguments.weights:
        load_weights(model, arguments.weights)
    criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], dtype=torch.float32), label_smoothing=0.1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    sampler = WeightedRandomSampler(weights, len(weights))
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
            losses.append(loss)
            total += loss * len(x)
            weight += len(x)
        mean = total / weight
        print(f"Epoch [{epoch + 1}/{EPOCHS}], Loss: {mean:.4f}")
        test_loss, accuracy = evaluate(model, criterion, test)
        print(f"Test loss: {test_loss:.4f}, accuracy: {accuracy:.4f}")
    if arguments.losses:
        lines = [
            f'{{"step": {step}, "loss": {loss:.9g}}}\n' for step, loss in enumerate(losses, 1)
        ]
        Path(arguments.losses).write_text("".join(lines))
    if arguments.save:
        write_weights(model.state_dict(), arguments.save)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--losses", metavar="FILE", help="where each step's loss goes")
    parser.add_argument("--weights", metavar="FILE", help="initial weights, .safetensors or .pt")
    parser.add_argument("--save", metavar="FILE", help="trained weights, .safetensors or .pt")
    arguments = parser.parse_args()
    train(arguments)
