"""The tutorial's network, its pictures and its transforms, for every peer made with PyTorch."""

import time

import torch
from torch.utils.data import Dataset


class Net(torch.nn.Module):
    """784-200-200-10 with the tutorial's log_softmax before the last layer."""

    def __init__(self):
        super().__init__()
        self.lin1 = torch.nn.Linear(784, 200)
        self.lin2 = torch.nn.Linear(200, 200)
        self.lin3 = torch.nn.Linear(200, 10)

    def forward(self, x):
        x = torch.flatten(x, 1)
        x = torch.sigmoid(self.lin1(x))
        x = torch.nn.functional.log_softmax(self.lin2(x), dim=1)
        return self.lin3(x)


class Pictures(Dataset):
    """One picture at a time through the transforms, as torchvision's FashionMNIST gives them.

    torchvision makes a PIL image of each array before ToTensor turns it back; that is left out
    here, so that the loop is somewhat faster than the tutorial's own.
    """

    def __init__(self, images, labels):
        self.images = torch.from_numpy(images.copy())
        self.labels = torch.from_numpy(labels.copy())

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return divide_again(to_tensor(self.images[index].numpy())), int(self.labels[index])


def to_tensor(picture):
    """torchvision's ToTensor for a grey picture: [28, 28] bytes to [1, 28, 28] in 0 to 1."""
    tensor = torch.from_numpy(picture[:, :, None]).permute(2, 0, 1).contiguous()
    return tensor.to(torch.float32).div(255)


def divide_again(tensor):
    return tensor / 255


def in_memory(images, labels):
    """All pictures after the same transforms [N, 784], and their labels [N]."""
    whole = torch.from_numpy(images.copy()).reshape(-1, 784).to(torch.float32)
    return divide_again(whole.div(255)), torch.from_numpy(labels.copy()).to(torch.int64)


def loader_order(samples):
    """The order that DataLoader(shuffle=True) takes next, and the words it takes for it."""
    torch.empty((), dtype=torch.int64).random_()  # the seed of workers that nobody starts
    seed = int(torch.empty((), dtype=torch.int64).random_())
    return torch.randperm(samples, generator=torch.Generator().manual_seed(seed))


def train(model, batches, optimizer, epochs):
    """The tutorial's loop. Seconds and mean loss of each epoch; batches: (inputs, targets) pairs."""
    criterion = torch.nn.CrossEntropyLoss()
    seconds, losses = [], []
    for _ in range(epochs):
        start = time.perf_counter()
        total = 0.0
        for inputs, targets in batches:
            loss = criterion(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        losses.append(total / len(batches))
        seconds.append(time.perf_counter() - start)
    return seconds, losses
