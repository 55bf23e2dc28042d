"""Nets drawn at random for compare.py: MLPs and convolutional nets, in fp32 and bf16."""

import random

WIDTHS, DEPTHS, BATCHES, CHANNELS = (16, 4096), (1, 32), (1, 1024), (3, 512)
MOST_WORK = 1.2e11  # floating-point operations of a training step: about half a second on two cores
MOST_WEIGHTS = 5e7
WORK_OF_AN_EPOCH = 1.5e11  # from which the number of steps follows
MOST_STEPS = 200
UPDATE_OF_A_WEIGHT = 200  # operations that take as long
INPUTS, CLASSES = 64, 10


def log_uniform(draw, limits):
    """An integer whose logarithm is uniform: as many of 16 to 64 as of 64 to 256."""
    low, high = limits
    return round(low * (high / low) ** draw.random())


def mlp(draw):
    """(about, model, inputs, work of a sample forward, weights)"""
    width, depth = log_uniform(draw, WIDTHS), log_uniform(draw, DEPTHS)
    activation = draw.choice(["relu", "gelu", "sigmoid", "tanh"])
    model = [layer for _ in range(depth) for layer in ({"linear": width}, activation)]
    weights = INPUTS * width + (depth - 1) * width * width + width * CLASSES
    dataset = {"random": {"in_features": INPUTS, "out_features": CLASSES}}
    return f"MLP {depth} x {width}, {activation}", [*model, {"linear": CLASSES}], dataset, 2 * weights, weights


def cnn(draw):
    """As mlp()."""
    size, depth, kernel = draw.choice([8, 16, 28, 32, 56]), draw.randint(1, 6), draw.choice([1, 3, 5])
    normed = draw.random() < 0.5
    channels = [3] + [log_uniform(draw, CHANNELS) for _ in range(depth)]
    model, work, weights, side = [], 0, 0, size
    for before, after in zip(channels, channels[1:]):
        model.append({"conv2d": {"out_channels": after, "kernel_size": kernel, "padding": "same"}})
        model += ["batch_norm2d", "relu"] if normed else ["relu"]
        weights += before * after * kernel**2
        work += 2 * before * after * kernel**2 * side**2
        if side >= 8 and draw.random() < 0.5:
            model.append({"max_pool2d": 2})
            side //= 2
    model += [{"adaptive_avg_pool2d": 1}, "flatten", {"linear": CLASSES}]
    dataset = {"synthetic_images": {"shape": [3, size, size], "classes": CLASSES}}
    sizes = "-".join(map(str, channels))
    about = f"CNN {sizes} of {kernel}x{kernel} on {size}x{size}{', batch norm' if normed else ''}"
    return about, model, dataset, work, weights


def specs(count, seed):
    """(about, spec, steps of an epoch) of each net; nets of too much work are drawn again."""
    draw = random.Random(seed)
    while count > 0:
        images = draw.random() < 0.5
        about, model, dataset, work, weights = (cnn if images else mlp)(draw)
        batch, precision = log_uniform(draw, BATCHES), draw.choice(["fp32", "bf16"])
        work *= 3 * batch  # forward, and the gradients of inputs and of weights
        if work > MOST_WORK or weights > MOST_WEIGHTS or (images and batch < 2):
            continue
        count -= 1
        steps = min(MOST_STEPS, max(3, round(WORK_OF_AN_EPOCH / (work + UPDATE_OF_A_WEIGHT * weights))))
        [[_, keys]] = dataset.items()
        keys |= {"samples": steps * batch, "test_samples": 1}
        yield f"{about}, batch {batch}, {precision}", {
            "version": 1,
            "seed": 0,
            "data": {"dataset": dataset, "batch_size": batch, "shuffle": True},
            "model": model,
            "loss": "cross_entropy" if images else "mse_loss",
            "optimizer": {"adam": 0.001} if draw.random() < 0.5 else {"sgd": {"lr": 0.001, "momentum": 0.9}},
            "precision": precision,
            "device": "cpu",
            "parallel": "single",
        }, steps
