"""Specs of the nets that compare.py measures beside the programs that `dptrain export` writes."""

PICTURES = {"dataset": "fashion_mnist", "transforms": ["to_tensor", {"divide": 255}], "shuffle": True}
NORMAL = {"init": {"normal": {"std": 0.02}}}


def of_pictures(model, batch, optimizer):
    return {
        "version": 1,
        "seed": 0,
        "data": {**PICTURES, "batch_size": batch},
        "model": model,
        "loss": "cross_entropy",
        "optimizer": optimizer,
    }


def convolution(channels):
    keys = {"out_channels": channels, "kernel_size": 5, "padding": "same"}
    return [{"conv2d": keys}, "relu", {"max_pool2d": 2}]


def gpt(layers, width, heads, sequence, batch):
    """Pre-norm transformer of characters, with PyTorch's attention."""
    attention = {"multihead_attention": {"num_heads": heads, "causal": True}}
    block = [
        {"residual": ["layer_norm", attention]},
        {"residual": ["layer_norm", {"linear": 4 * width}, "gelu", {"linear": width}]},
    ]
    return {
        "version": 1,
        "seed": 0,
        "data": {
            "dataset": {"tiny_shakespeare": {"sequence_length": sequence}},
            "batch_size": batch,
            "shuffle": True,
        },
        "blocks": {"transformer": {"layers": block}},
        "model": [
            {"embedding": {"num_embeddings": 65, "embedding_dim": width}, **NORMAL},
            {"position_embedding": None, **NORMAL},
            *[{"transformer": None} for _ in range(layers)],
            "layer_norm",
            {"linear": 65},
        ],
        "loss": {"cross_entropy": {"class_dim": -1}},
        "optimizer": {"adam_w": {"lr": 0.001}},
    }


LENET = [
    {"conv2d": {"out_channels": 6, "kernel_size": 5, "padding": 2}}, "relu", {"max_pool2d": 2},
    {"conv2d": {"out_channels": 16, "kernel_size": 5}}, "relu", {"max_pool2d": 2},
    "flatten", {"linear": 120}, "relu", {"linear": 84}, "relu", {"linear": 10},
]  # fmt: skip
CNN = [*convolution(32), *convolution(64), "flatten", {"linear": 512}, "relu", {"linear": 10}]
WIDE = ["flatten", {"linear": 2048}, "relu", {"linear": 2048}, "relu", {"linear": 10}]

# name: (what it is, spec, steps of a measured epoch, whether it has convolutions)
NETS = {
    "wide": ("MLP 784-2048-2048-10, batch 256", of_pictures(WIDE, 256, {"adam": 0.001}), 20, False),
    "lenet": ("LeNet, batch 100", of_pictures(LENET, 100, {"adam": 0.001}), 100, True),
    "cnn": ("CNN of 32 and 64 channels, batch 128", of_pictures(CNN, 128, {"adam": 0.001}), 20, True),
    "gpt": ("GPT of characters, 4 layers of 128, batch 32 x 64", gpt(4, 128, 4, 64, 32), 15, False),
    "gpt2": ("GPT-2 size, 12 layers of 768, batch 4 x 64", gpt(12, 768, 12, 64, 4), 3, False),
}
