"""Compares the buckets in `dptrain plan --bytes` with those of PyTorch's DDP, for torchvision's resnet18.

Two ranks on gloo make two steps; from the second one on, buckets are in the order of the backward pass. Exit code 77:
torchvision is missing. Another Python may be named in $DPTRAIN_PYTHON.
"""

import argparse
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SPEC = pathlib.Path(__file__).resolve().parents[2] / "configs/large/resnet18.yaml"


def rank(number, folder):
    import torch
    import torch.distributed as dist
    import torchvision
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=number, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(torchvision.models.resnet18())
    buckets = []

    def hook(state, bucket):
        buckets.append(bucket.buffer().nbytes)
        return allreduce_hook(state, bucket)

    model.register_comm_hook(None, hook)
    for _ in range(2):
        buckets.clear()
        model(torch.randn(2, 3, 64, 64)).sum().backward()
    if number == 0:
        pathlib.Path(folder, "buckets").write_text(" ".join(map(str, buckets)))
    dist.barrier()
    dist.destroy_process_group()


def main():
    import torch

    arguments = argparse.ArgumentParser()
    arguments.add_argument("--dptrain", required=True)
    text = subprocess.run([arguments.parse_args().dptrain, "plan", SPEC, "--bytes", "parallel=ddp", "devices=2"],
                          check=True, text=True, capture_output=True, env=os.environ | {"COLUMNS": "200"}).stdout
    ours = text[text.index("DistributedDataParallel"):text.index("ZeRO 1")]
    planned = [int(n) for n in re.findall(r"^  all_reduce .* (\d+) +1$", ours, re.M)]
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(rank, (folder,), nprocs=2)
        sent = [int(n) for n in pathlib.Path(folder, "buckets").read_text().split()]
    print("planned", planned, "sent", sent)
    if planned != sent or len(sent) < 2:
        sys.exit("the buckets differ")


if __name__ == "__main__":
    if not importlib.util.find_spec("torchvision"):
        other = os.environ.get("DPTRAIN_PYTHON")
        if not other or os.environ.get("DPT_TRIED_PYTHON"):
            sys.exit(77)
        os.execve(other, [other, *sys.argv], os.environ | {"DPT_TRIED_PYTHON": "1"})
    main()
