#!/usr/bin/env python3
"""A deep MLP as a pipeline of two processes by torch.distributed.pipelining, over gloo on CPUs.

--schedule gpipe or 1f1b; each stage has one thread. The whole set is one tensor, taken in order.
"""

import os
import tempfile
import time

import numpy
import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

import peer

SCHEDULES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}
STAGES = 2


def layers(width, depth, outputs):
    hidden = [torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU()) for _ in range(depth)]
    return [*hidden, torch.nn.Linear(width, outputs)]


def train(rank, options, rendezvous, result):
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=STAGES
    )
    inputs = torch.from_numpy(numpy.load(options.inputs))
    targets = torch.from_numpy(numpy.load(options.targets))
    torch.manual_seed(0)
    whole = layers(inputs.shape[1], options.depth, targets.shape[1])
    half = options.depth // STAGES
    own = whole[:half] if rank == 0 else whole[half:]
    stage = PipelineStage(torch.nn.Sequential(*own), rank, STAGES, torch.device("cpu"))
    schedule = SCHEDULES[options.schedule](
        stage, options.chunks, loss_fn=torch.nn.functional.mse_loss
    )
    optimizer = torch.optim.SGD(stage.submod.parameters(), lr=options.lr)
    losses, seconds = [], []
    for _ in range(options.epochs):
        dist.barrier()
        start = time.perf_counter()
        total, steps = 0.0, 0
        for x, y in zip(inputs.split(options.batch), targets.split(options.batch)):
            optimizer.zero_grad()
            parts = []
            if rank == 0:
                schedule.step(x, return_outputs=False)
            else:
                schedule.step(target=y, losses=parts, return_outputs=False)
            optimizer.step()
            total += sum(each.item() for each in parts) / options.chunks
            steps += 1
        losses.append(total / steps)
        dist.barrier()
        seconds.append(time.perf_counter() - start)
    if rank == STAGES - 1:  # where the loss is
        result.put((seconds, losses))
    dist.destroy_process_group()


def main():
    options = peer.arguments(
        __doc__.splitlines()[0],
        inputs={"required": True},
        targets={"required": True},
        depth={"type": int, "required": True, "help": "hidden layers"},
        batch={"type": int, "required": True},
        chunks={"type": int, "required": True},
        lr={"type": float, "required": True},
        schedule={"choices": list(SCHEDULES), "required": True},
    )
    context = multiprocessing.get_context("spawn")
    result = context.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        given = (options, os.path.join(folder, "rendezvous"), result)
        multiprocessing.spawn(train, args=given, nprocs=STAGES)
    seconds, losses = result.get()
    peer.report(f"torch_pipeline_{options.schedule}", seconds, losses, ["torch", "numpy"])


if __name__ == "__main__":
    main()
