#!/usr/bin/env python3
"""Measures training steps in PyTorch as probe.sh measures dptrain's: the MLP of the DDP tutorial (batch 100), ResNet-50
(batch 128) and GPT-2 (batch 16 x 1024), with data on the GPU.

Forms: `eager` has a fused optimizer. `compiled` is forward, loss and backward from torch.compile with the fused
optimizer, into which torch.compile does not trace. In `whole` the optimizer is compiled, too. `-graph` replays the
step as a CUDA graph."""

import argparse
import functools
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F


def mlp(device, tiny):
    net = nn.Sequential(nn.Flatten(), nn.Linear(784, 200), nn.Sigmoid(), nn.Linear(200, 200), nn.LogSoftmax(1),
                        nn.Linear(200, 10)).to(device)
    optimizer = functools.partial(torch.optim.Adam, lr=0.01, capturable=device == "cuda")
    batch = 10 if tiny else 100
    return net, optimizer, torch.rand(batch, 784, device=device), torch.randint(10, (batch,), device=device)


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width))
        self.shortcut = nn.Identity()
        if inputs != 4 * width:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride, bias=False),
                                          nn.BatchNorm2d(4 * width))

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x), inplace=True)


def resnet50(device, tiny):
    """As torchvision's, which may not be installed."""
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for width, count in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for i in range(1 if tiny else count):
            layers.append(Bottleneck(inputs, width, 2 if i == 0 and width > 64 else 1))
            inputs = 4 * width
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))
    net = net.to(device, memory_format=torch.channels_last)
    optimizer = functools.partial(torch.optim.SGD, lr=0.1, momentum=0.9, weight_decay=1e-4)
    batch, size = (2, 32) if tiny else (128, 224)
    images = torch.randn(batch, 3, size, size, device=device).to(memory_format=torch.channels_last)
    return net, optimizer, images, torch.randint(1000, (batch,), device=device)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm2, self.wide = nn.LayerNorm(width), nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, x):
        n, t, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, t, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(n, t, width))
        return x + self.narrow(F.gelu(self.wide(self.norm2(x))))


class Gpt2(nn.Module):
    """configs/large/gpt2.yaml."""

    def __init__(self, layers, width, heads, length, vocabulary):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, x):
        x = self.tokens(x) + self.positions.weight[:x.shape[1]]
        return self.head(self.norm(self.blocks(x))).flatten(0, 1)


def gpt2(device, tiny):
    batch, length, vocabulary = (2, 16, 128) if tiny else (16, 1024, 50304)
    net = Gpt2(*((2, 32, 2) if tiny else (12, 768, 12)), length, vocabulary).to(device)
    optimizer = functools.partial(torch.optim.AdamW, lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1)
    tokens = torch.randint(vocabulary, (batch, length + 1), device=device)
    return net, optimizer, tokens[:, :-1].contiguous(), tokens[:, 1:].flatten()


ROWS = {"mlp-fp32": (mlp, None, 600, ("eager", "graph", "compiled-graph", "whole-graph")),
        "resnet50-fp16": (resnet50, torch.float16, 20, ("eager", "compiled")),
        "gpt2-bf16": (gpt2, torch.bfloat16, 10, ("compiled",))}


def step_of(make, half, form, device, tiny):
    """The step as a function, and the samples in its batch."""
    net, make_optimizer, x, y = make(device, tiny)
    whole = form.startswith("whole")
    optimizer = make_optimizer(net.parameters(), **({"foreach": True} if whole else {"fused": True}))

    def loss():
        with torch.autocast(device, half, enabled=half is not None):
            return F.cross_entropy(net(x), y)

    def update():
        if make is gpt2:  # as the spec's clip_grad_norm
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()

    if form.startswith(("compiled", "whole")):
        loss = torch.compile(loss)
    if whole:
        update = torch.compile(update)

    def step():
        loss().backward()
        update()
        optimizer.zero_grad(set_to_none=True)
    return step, len(x)


def captured(step):
    """The step as a graph, after the warm-up on a side stream that PyTorch asks for."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def seconds_a_step(step, steps, rounds, device):
    def finish():
        if device == "cuda":
            torch.cuda.synchronize()

    for _ in range(5 if device == "cuda" else 1):
        step()
    times = []
    for _ in range(rounds):
        finish()
        start = time.perf_counter()
        for _ in range(steps):
            step()
        finish()
        times.append((time.perf_counter() - start) / steps)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("row", choices=ROWS)
    parser.add_argument("--compile-only", action="store_true", help="one step, to fill the cache of compiled code")
    parser.add_argument("--forms", help="instead of the row's, with commas: eager, graph, compiled, whole, ...")
    parser.add_argument("--device", default="cuda", help="cpu tries the script, without graphs")
    parser.add_argument("--tiny", action="store_true", help="small sizes")
    args = parser.parse_args()
    if args.device == "cuda" and not torch.cuda.is_available():
        print("this torch sees no GPU")
        sys.exit(77)
    make, half, steps, forms = ROWS[args.row]
    if args.compile_only:
        forms = [form.replace("-graph", "") for form in forms if form.startswith(("compiled", "whole"))]
    forms = args.forms.split(",") if args.forms else forms
    steps, rounds = (1, 1) if args.tiny else (steps, 3)
    print(f"torch {torch.__version__}, CUDA {torch.version.cuda}")
    torch.backends.cudnn.benchmark = True
    failed = False
    for form in forms:
        label = f"torch {args.row} {form}"
        try:
            step, batch = step_of(make, half, form, args.device, args.tiny)
            begin = time.perf_counter()
            step()
            print(f"{label}: first step after {time.perf_counter() - begin:.1f} s", flush=True)
            if args.compile_only:
                continue
            seconds = seconds_a_step(captured(step) if form.endswith("graph") else step, steps, rounds, args.device)
            print(f"{label:35} {seconds * 1e6:10.1f} us a step {batch / seconds:10.0f} samples/s", flush=True)
        except Exception as error:  # one form that fails must not hide the others
            failed = True
            print(f"{label:35} failed: {(str(error) or repr(error)).splitlines()[0]}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
