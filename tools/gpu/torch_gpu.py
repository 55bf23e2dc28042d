#!/usr/bin/env python3
"""Measures in PyTorch what tools/gpu/check.sh measures: the MLP of the DDP tutorial (batch 100) and ResNet-50 (batch
128), eager, compiled, captured in a CUDA graph, and both; data on the GPU. --device cpu tests the script, without
graphs."""

import argparse
import statistics
import time

import torch
from torch import nn


def mlp(device):
    net = nn.Sequential(nn.Flatten(), nn.Linear(784, 200), nn.Sigmoid(), nn.Linear(200, 200),
                        nn.LogSoftmax(1), nn.Linear(200, 10)).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01, capturable=device == "cuda")
    return net, optimizer, torch.rand(100, 784, device=device), torch.randint(10, (100,), device=device)


def resnet(device):
    import torchvision

    net = torchvision.models.resnet50().to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    images = torch.randn(128, 3, 224, 224, device=device).to(memory_format=torch.channels_last)
    return net, optimizer, images, torch.randint(1000, (128,), device=device)


def step_of(net, optimizer, x, y, half):
    def step():
        with torch.autocast(x.device.type, half, enabled=half is not None):
            loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    return step


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


def seconds_a_step(step, steps, device):
    def finish():
        if device == "cuda":
            torch.cuda.synchronize()

    for _ in range(10 if device == "cuda" else 1):
        step()
    rounds = []
    for _ in range(5):
        finish()
        start = time.perf_counter()
        for _ in range(steps):
            step()
        finish()
        rounds.append((time.perf_counter() - start) / steps)
    return statistics.median(rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--row", help="this row alone: mlp-fp32, resnet50-tf32 or resnet50-fp16")
    parser.add_argument("--form", help="this form alone: eager, graph, compiled or compiled-graph")
    args = parser.parse_args()
    device = args.device
    print(f"torch {torch.__version__}, CUDA {torch.version.cuda}")
    torch.backends.cudnn.benchmark = True
    rows = [("mlp-fp32", mlp, None, 600), ("resnet50-tf32", resnet, None, 20), ("resnet50-fp16", resnet, torch.float16, 20)]
    forms = ["eager", "graph", "compiled", "compiled-graph"]
    if device != "cuda":
        rows, forms = rows[:1], forms[:1]
    rows = [row for row in rows if args.row in (None, row[0])]
    forms = [form for form in forms if args.form in (None, form)]
    if not rows or not forms:
        parser.error("there is no such row or form")
    # What takes longest to compile comes last.
    for form in forms:
        for name, make, half, steps in rows:
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = name.endswith("tf32")
            label = f"torch {name} {form}"
            try:
                net, optimizer, x, y = make(device)
                step = step_of(torch.compile(net) if form.startswith("compiled") else net, optimizer, x, y, half)
                seconds = seconds_a_step(captured(step) if form.endswith("graph") else step, steps, device)
                print(f"{label:35} {seconds * 1e6:10.1f} us a step {len(x) / seconds:10.0f} samples/s", flush=True)
            except Exception as error:  # one form that fails must not hide the others
                print(f"{label:35} failed: {(str(error) or repr(error)).splitlines()[0]}", flush=True)


if __name__ == "__main__":
    main()
