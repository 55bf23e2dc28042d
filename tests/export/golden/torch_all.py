"""all as a PyTorch program, written by `dptrain export --to torch`.

The initial weights and the order of samples are dptrain's, so that one loss curve can be laid
over the other. `--losses FILE` writes each step's loss, for `dptrain compare`. `--weights FILE`
starts from weights of dptrain, and `--save FILE` writes the trained ones.

Dropout masks are PyTorch's; dptrain draws the same ones with `random: torch`.
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
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset

SEED = 0
EPOCHS = 3
STEPS = 15
BATCH_SIZE = 20
ACCUMULATE = 2  # parts that a batch is computed in


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


def weight_of(criterion, y):
    """What the mean divides by: the sum of the weights of these targets."""
    kept = y[y != criterion.ignore_index]
    return len(kept) if criterion.weight is None else criterion.weight[kept].sum().item()


def train_data():
    x = read_idx("configs/train-images.gz")
    y = read_idx("labels.gz").long()
    x, y = x[:90], y[:90]
    x = x.float()
    return TensorDataset(x, y)


def test_data():
    x = read_idx("configs/test-images.gz")
    y = read_idx("labels.gz").long()
    x = x.float()
    return TensorDataset(x, y)


class Residual(nn.Module):
    """body(x) + shortcut(x)"""

    def __init__(self, body, shortcut):
        super().__init__()
        self.body = body
        self.shortcut = shortcut

    def forward(self, x):
        return self.body(x) + self.shortcut(x)


def make_model():
    model = nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, 20),
        Residual(
            nn.Sequential(
                nn.ReLU(),
                nn.Linear(20, 20),
            ),
            nn.Identity(),
        ),
        nn.Dropout(0.1),
        nn.Linear(20, 10),
    )
    load_weights(model, "configs/start.safetensors")
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name not in ["1.weight", "1.bias"])
    return model


@torch.no_grad()
def evaluate(model, criterion, data):
    model.eval()
    total = 0.0
    weight = 0
    right = 0
    for x, y in DataLoader(data, batch_size=50):
        output = model(x)
        count = weight_of(criterion, y)
        if count:  # else all targets are ignored, and their mean is nan
            total += criterion(output, y).item() * count
            weight += count
        right += (output.argmax(dim=1) == y).sum().item()
    model.train()
    return total / weight if weight else math.nan, right / len(data)


def train(arguments):
    data = train_data()
    test = test_data()
    torch.manual_seed(SEED)
    model = make_model()
    if arguments.weights:
        load_weights(model, arguments.weights)
    criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], dtype=torch.float32), label_smoothing=0.1)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = lr_scheduler.OneCycleLR(optimizer, max_lr=0.2, total_steps=15)
    loader = DataLoader(data, batch_size=BATCH_SIZE, shuffle=True, drop_last=True)
    losses = []
    for epoch in range(EPOCHS):
        total, weight = 0.0, 0
        for x, y in loader:
            optimizer.zero_grad()
            whole = weight_of(criterion, y)
            loss = 0.0 if whole else math.nan
            for x_part, y_part in zip(x.chunk(ACCUMULATE), y.chunk(ACCUMULATE)):
                share = weight_of(criterion, y_part) / whole if whole else 0
                output = model(x_part)
                part = criterion(output, y_part) * share if share else output.sum() * 0
                part.backward()
                loss += part.item()
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            nn.utils.clip_grad_value_(model.parameters(), 0.5)
            optimizer.step()
            scheduler.step()
            losses.append(loss)
            if not math.isnan(loss):  # else all targets are ignored
                total += loss * weight_of(criterion, y)
                weight += weight_of(criterion, y)
            if len(losses) == STEPS:
                break
        mean = total / weight if weight else math.nan
        print(f"Epoch [{epoch + 1}/{EPOCHS}], Loss: {mean:.4f}")
        if (epoch + 1) % 2 == 0:
            test_loss, accuracy = evaluate(model, criterion, test)
            print(f"Test loss: {test_loss:.4f}, accuracy: {accuracy:.4f}")
        if len(losses) == STEPS:
            break
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
