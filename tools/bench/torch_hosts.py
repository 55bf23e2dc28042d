#!/usr/bin/env python3
"""PyTorch's DistributedDataParallel over gloo, one rank of it; hosts.py starts one on each host.

RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and GLOO_SOCKET_IFNAME are set as torchrun sets them. --net mlp: the
tutorial's net, its data in memory, batch 100 for each rank. --net resnet: ResNet-50 on random images of 3 x 224 x 224.
"""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler

import peer
import tutorial
import workloads


def mlp(options):
    images, labels = tutorial.in_memory(*peer.fashion_mnist(peer.data_folder(options.data)))
    model = tutorial.Net()
    order = torch.tensor(list(DistributedSampler(range(len(images)), shuffle=True)))
    batches = [(images[each], labels[each]) for each in order.split(100)]
    return model, torch.optim.Adam(model.parameters(), lr=0.01), batches


def resnet(options):
    import torchvision

    model = torchvision.models.resnet50()
    batch = workloads.RESNET_BATCH
    images = torch.randn(batch, 3, 224, 224)
    targets = torch.randint(0, 1000, (batch,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    return model, optimizer, [(images, targets)] * workloads.RESNET_STEPS


def main():
    options = peer.arguments(
        __doc__.splitlines()[0], net={"choices": ["mlp", "resnet"], "default": "mlp"}
    )
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net, optimizer, batches = {"mlp": mlp, "resnet": resnet}[options.net](options)
    model = DistributedDataParallel(net)
    seconds, losses = tutorial.train(model, batches, optimizer, options.epochs)
    if dist.get_rank() == 0:
        peer.report(f"torch_hosts_{options.net}", seconds, losses, ["torch"])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
