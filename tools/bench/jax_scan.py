#!/usr/bin/env python3
"""JAX with the whole epoch jitted by lax.scan: 784-200-200-10, Adam 0.01, batch 100.

It starts from PyTorch's weights and takes its orders: both come from the Mersenne Twister that
numpy has as well, so that the losses can be compared. Compiling is not in the epochs' seconds,
nor are the orders.
"""

import time

import jax
import jax.numpy as jnp
import numpy
from jax import lax

import peer

SIZES = [(784, 200), (200, 200), (200, 10)]
BATCH = 100


class Words:
    """The 32-bit words of std::mt19937, as torch.manual_seed leaves it."""

    def __init__(self, seed):
        self.engine = numpy.random.RandomState(seed)._bit_generator

    def take(self, count):
        return self.engine.random_raw(count).astype(numpy.uint64)

    def uniform(self, bound, shape):
        """torch's uniform_(-bound, bound), one word a value."""
        high = float(numpy.float32(bound))
        u = (self.take(int(numpy.prod(shape))) & 0xFFFFFF).astype(numpy.float64) * 2.0**-24
        return (u * numpy.float32(high + high) - high).astype(numpy.float32).reshape(shape)

    def seed_of_loader(self):
        """What a DataLoader draws for an epoch: a base seed, then the seed of its order."""
        words = self.take(4)
        return int(words[3])  # the low word; only 32 bits seed an engine


def initial_parameters(words):
    parameters = []
    for fan_in, fan_out in SIZES:
        bound = 1 / numpy.sqrt(fan_in)
        weight = words.uniform(bound, (fan_out, fan_in))
        parameters.append((jnp.array(weight.T), jnp.array(words.uniform(bound, (fan_out,)))))
    return parameters


def permutation(seed, count):
    """torch.randperm: Fisher-Yates forwards, a word a place."""
    order = list(range(count))
    words = Words(seed).take(count - 1).tolist()
    for i, word in enumerate(words):
        j = i + word % (count - i)
        order[i], order[j] = order[j], order[i]
    return jnp.array(order, dtype=jnp.int32).reshape(-1, BATCH)


def loss_of(parameters, x, y):
    (w1, b1), (w2, b2), (w3, b3) = parameters
    x = jax.nn.sigmoid(x @ w1 + b1)
    x = jax.nn.log_softmax(x @ w2 + b2)
    scores = jax.nn.log_softmax(x @ w3 + b3)
    return -jnp.mean(jnp.take_along_axis(scores, y[:, None], axis=1))


def corrections(first, count):
    """Adam's bias corrections of steps first.. as PyTorch has them: in double, then rounded.

    In float32 1 - 0.999**t is off by 5e-5 in the first step, which a tenth of an epoch makes 5e-3.
    """
    t = numpy.arange(first, first + count, dtype=numpy.float64)
    scale, root = 0.01 / (1 - 0.9**t), numpy.sqrt(1 - 0.999**t)
    return jnp.array(scale, dtype=jnp.float32), jnp.array(root, dtype=jnp.float32)


def adam(parameters, gradients, m, v, scale, root):
    m = jax.tree.map(lambda a, g: 0.9 * a + 0.1 * g, m, gradients)
    v = jax.tree.map(lambda a, g: 0.999 * a + 0.001 * g * g, v, gradients)

    def moved(p, a, b):
        return p - scale * a / (jnp.sqrt(b) / root + 1e-8)

    return jax.tree.map(moved, parameters, m, v), m, v


def epoch_of(pictures, targets):
    def step(state, given):
        parameters, m, v = state
        indices, scale, root = given
        x, y = pictures[indices], targets[indices]
        loss, gradients = jax.value_and_grad(loss_of)(parameters, x, y)
        parameters, m, v = adam(parameters, gradients, m, v, scale, root)
        return (parameters, m, v), loss

    def epoch(state, given):
        state, losses = lax.scan(step, state, given)
        return state, losses.mean()

    return epoch


def main():
    options = peer.arguments(__doc__.splitlines()[0])
    images, labels = peer.fashion_mnist(peer.data_folder(options.data))
    scaled = images.reshape(-1, 784).astype(numpy.float32) / numpy.float32(255)
    pictures, targets = jnp.array(scaled / numpy.float32(255)), jnp.array(labels, dtype=jnp.int32)
    words = Words(0)
    parameters = initial_parameters(words)
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    state, steps = (parameters, zeros, zeros), len(labels) // BATCH
    compiled = None
    seconds, losses = [], []
    for number in range(options.epochs):
        batches = permutation(words.seed_of_loader(), len(labels))
        given = (batches, *corrections(1 + number * steps, steps))
        if compiled is None:
            compiled = jax.jit(epoch_of(pictures, targets)).lower(state, given).compile()
        start = time.perf_counter()
        state, loss = compiled(state, given)
        losses.append(float(loss))
        seconds.append(time.perf_counter() - start)
    peer.report("jax_scan", seconds, losses, ["jax", "numpy"])


if __name__ == "__main__":
    main()
