"""The small nets of layers.py: for each word of the spec language, the nets that use it.

A word without an entry gets a default net. If that does not fit, its row fails, so no word is
left out unnoticed.
"""

from dataclasses import dataclass, field

CLASSES, VOCABULARY, WIDTH = 10, 100, 64
CLASSIFY = [{"linear": CLASSES}]


def conv(dimensions, channels, kernel=3):
    keys = {"out_channels": channels, "kernel_size": kernel, "padding": "same"}
    return {f"conv{dimensions}d": keys}


def pooled(dimensions):
    return [{f"adaptive_avg_pool{dimensions}d": 1}, "flatten", *CLASSIFY]


@dataclass
class Kind:
    shape: list  # of a sample
    batch: int
    before: list  # layers before the word's
    behind: list


KINDS = {
    "rows": Kind([256], 128, [{"linear": 256}], CLASSIFY),
    "signal": Kind([8, 128], 32, [conv(1, 16)], pooled(1)),
    "image": Kind([3, 32, 32], 32, [conv(2, 16)], pooled(2)),
    "volume": Kind([2, 12, 12, 12], 16, [conv(3, 8)], pooled(3)),
    "tokens": Kind(
        [32],
        32,
        [{"embedding": {"num_embeddings": VOCABULARY, "embedding_dim": WIDTH}}],
        ["flatten", *CLASSIFY],
    ),
}


@dataclass
class Net:
    kind: str = "rows"
    layers: list = None  # None: the word itself
    behind: list = None  # None: those of the kind
    about: str = ""
    loss: object = "cross_entropy"
    optimizer: object = field(default_factory=lambda: {"sgd": 0.001})
    target: object = None  # f(random generator, samples) -> array; None: a class for each sample
    shape: list = None  # None: that of the kind
    draws: bool = False  # at random, other numbers than PyTorch: losses may differ

    def model(self):
        kind = KINDS[self.kind]
        return [*kind.before, *self.layers, *(kind.behind if self.behind is None else self.behind)]


# Targets.


def values(*shape):
    return lambda draw, n: draw.standard_normal((n, *shape), dtype="float32")


def zeros_and_ones(*shape):
    return lambda draw, n: draw.integers(0, 2, (n, *shape)).astype("float32")


def signs(*shape):
    return lambda draw, n: (2 * draw.integers(0, 2, (n, *shape)) - 1).astype("float32")


def counts(*shape):
    return lambda draw, n: draw.poisson(2, (n, *shape)).astype("float32")


def classes(*shape, low=0, high=CLASSES):
    def make(draw, n):
        out = draw.integers(low, high, (n, *shape))
        out.flat[:2] = low, high - 1
        return out

    return make


def probabilities(*shape):
    def make(draw, n):
        out = draw.random((n, *shape), dtype="float32")
        return out / out.sum(1, keepdims=True)

    return make


def labels(draw, n):
    """Two classes of each sample, the rest -1."""
    out = draw.permuted([range(CLASSES)] * n, axis=1)
    out[:, 2:] = -1
    return out


# Layers.

MAP = [{"linear": WIDTH}]
PIXELS = conv(2, CLASSES, 1)


def convolutions():
    out = {}
    for dimensions, kind in [(1, "signal"), (2, "image"), (3, "volume")]:
        channels = 8 if dimensions == 3 else 16
        word = f"conv{dimensions}d"
        [keys] = conv(dimensions, channels).values()
        out[word] = [
            Net(kind, [{word: keys}]),
            Net(kind, [{word: {**keys, "groups": channels}}], about="depthwise"),
            Net(kind, [{word: {**keys, "padding": 1, "stride": 2}}], about="stride 2"),
        ]
        word = f"conv_transpose{dimensions}d"
        keys = {"out_channels": channels, "kernel_size": 2, "stride": 2}
        out[word] = [Net(kind, [{word: keys}])]
        for name in ["max_pool", "avg_pool"]:
            word = f"{name}{dimensions}d"
            wide = {"kernel_size": 3, "stride": 2, "padding": 1}
            out[word] = [
                Net(kind, [{word: 2}]),
                Net(kind, [{word: wide}], about="overlapping"),
            ]
        for name in ["adaptive_avg_pool", "adaptive_max_pool"]:
            out[f"{name}{dimensions}d"] = [Net(kind, [{f"{name}{dimensions}d": 4}])]
        out[f"batch_norm{dimensions}d"] = [Net(kind, [f"batch_norm{dimensions}d"])]
    out["batch_norm1d"].append(Net("rows", ["batch_norm1d"], about="[N, C]"))
    return out


def upsampled():
    modes = {"signal": ["nearest", "linear"], "image": ["nearest", "bilinear", "bicubic"],
             "volume": ["nearest", "trilinear"]}  # fmt: skip
    return [
        Net(kind, [{"upsample": {"scale_factor": 2, "mode": mode}}], about=f"{mode}, {kind}")
        for kind, names in modes.items()
        for mode in names
    ]


def joined(word):
    """Two branches."""
    left = {"linear": 256, "name": "left"}
    right = {"linear": 256, "from": "first", "name": "right"}
    return [Net("rows", [{"relu": None, "name": "first"}, left, right, {word: None, "from": ["left", "right"]}])]


LAYERS = {
    **convolutions(),
    "flatten": [Net("image", ["flatten"], CLASSIFY)],
    "linear": [Net(layers=[{"linear": 256}])],
    "embedding": [Net("tokens", [])],
    "position_embedding": [Net("tokens")],
    "class_token": [Net("tokens")],
    "identity": [Net()],
    "dropout": [Net(draws=True)],
    "dropout2d": [Net("image", draws=True)],
    "threshold": [Net(layers=[{"threshold": {"threshold": 0.1, "value": 0}}])],
    "gelu": [Net(), Net(layers=[{"gelu": {"approximate": "tanh"}}], about="tanh")],
    "glu": [Net(), Net("image", about="of channels")],
    "softmax": [Net(), Net("image", about="of channels")],
    "log_softmax": [Net(), Net("image", about="of channels")],
    "layer_norm": [Net("tokens")],
    "rms_norm": [Net("tokens")],
    "multihead_attention": [Net("tokens", [{"multihead_attention": {"num_heads": 4}}])],
    "add": joined("add"),
    "multiply": joined("multiply"),
    "concat": joined("concat"),
    "permute": [Net("tokens", [{"permute": [2, 1]}])],
    "reshape": [Net(layers=[{"reshape": [16, 16]}, "flatten"])],
    "select": [Net("tokens", [{"select": -1}], CLASSIFY)],
    "group_norm": [Net("image", [{"group_norm": 4}])],
    "instance_norm": [Net("image")],
    "upsample": upsampled(),
    "pixel_shuffle": [Net("image", [{"pixel_shuffle": 2}])],
    "pixel_unshuffle": [Net("image", [{"pixel_unshuffle": 2}])],
    "pad": [
        Net("image", [{"pad": {"padding": 2, "mode": mode}}], about=mode)
        for mode in ["constant", "reflect", "replicate", "circular"]
    ],
    "prelu": [Net(), Net("image", [{"prelu": 16}], about="of channels")],
    "residual": [Net(layers=[{"residual": [{"linear": 256}, "relu"]}])],
}

# Losses.


def loss(word, target, behind=None, layers=(), **more):
    keys = more.pop("keys", {})
    return Net(layers=["relu", *layers], behind=behind or MAP, loss={word: keys} if keys else word,
               target=target, **more)  # fmt: skip


def of_classes(word, *last):
    """Of a class for each sample, and of one for each pixel."""
    return [
        loss(word, classes(), [*CLASSIFY, *last]),
        loss(word, classes(32, 32), [PIXELS, *last], kind="image", about="of pixels"),
    ]


WEIGHTS = [1 + i % 3 for i in range(WIDTH)]
PAIRS = [2, 256]
LOSSES = {
    "cross_entropy": [
        *of_classes("cross_entropy"),
        loss("cross_entropy", classes(), CLASSIFY, keys={"label_smoothing": 0.1}, about="smoothed"),
        loss("cross_entropy", probabilities(CLASSES), CLASSIFY, about="probabilities"),
        loss("cross_entropy", probabilities(CLASSES, 32, 32), [PIXELS], kind="image",
             about="probabilities of pixels"),
        loss("cross_entropy", classes(32, high=VOCABULARY), [{"linear": VOCABULARY}], kind="tokens",
             keys={"class_dim": -1}, about="of tokens"),
    ],
    "nll_loss": of_classes("nll_loss", "log_softmax"),
    "focal_loss": of_classes("focal_loss"),
    "dice_loss": of_classes("dice_loss")[1:],
    "sigmoid_dice_loss": [loss("sigmoid_dice_loss", zeros_and_ones(1, 32, 32), [conv(2, 1, 1)], kind="image")],
    "bce_loss": [
        loss("bce_loss", zeros_and_ones(WIDTH), [*MAP, "sigmoid"]),
        loss("bce_loss", zeros_and_ones(WIDTH), [*MAP, "sigmoid"], keys={"weight": WEIGHTS},
             about="weights"),
    ],
    "bce_with_logits_loss": [
        loss("bce_with_logits_loss", zeros_and_ones(WIDTH)),
        loss("bce_with_logits_loss", zeros_and_ones(WIDTH),
             keys={"weight": WEIGHTS, "pos_weight": WEIGHTS}, about="weights"),
    ],
    "kl_div": [loss("kl_div", probabilities(WIDTH), [*MAP, "log_softmax"])],
    "poisson_nll_loss": [loss("poisson_nll_loss", counts(WIDTH))],
    "soft_margin_loss": [loss("soft_margin_loss", signs(WIDTH))],
    "multilabel_soft_margin_loss": [loss("multilabel_soft_margin_loss", zeros_and_ones(WIDTH))],
    "hinge_embedding_loss": [loss("hinge_embedding_loss", signs(WIDTH))],
    "sigmoid_focal_loss": [loss("sigmoid_focal_loss", zeros_and_ones(WIDTH))],
    "margin_ranking_loss": [loss("margin_ranking_loss", signs(1), [{"linear": 1}], shape=PAIRS)],
    "multi_margin_loss": [loss("multi_margin_loss", classes(), CLASSIFY)],
    "multilabel_margin_loss": [loss("multilabel_margin_loss", labels, CLASSIFY)],
    "gaussian_nll_loss": [
        loss("gaussian_nll_loss", values(WIDTH), [{"linear": 2 * WIDTH}], keys={"log_variance": True})
    ],
    "cosine_embedding_loss": [loss("cosine_embedding_loss", signs(1), shape=PAIRS)],
    "triplet_margin_loss": [loss("triplet_margin_loss", values(1), shape=[3, 256])],
    "ctc_loss": [loss("ctc_loss", classes(8, low=1, high=30), [{"linear": 30}], kind="tokens")],
}  # fmt: skip

# Optimizers.


def optimizer(word, about="", **keys):
    return Net(layers=["relu", {"linear": 256}, "relu"], optimizer={word: {"lr": 0.001, **keys}},
               about=about)  # fmt: skip


OPTIMIZERS = {
    "sgd": [optimizer("sgd"), optimizer("sgd", "momentum", momentum=0.9, nesterov=True)],
    "adam": [optimizer("adam"), optimizer("adam", "amsgrad", amsgrad=True)],
    "rms_prop": [optimizer("rms_prop"), optimizer("rms_prop", "centered", momentum=0.9, centered=True)],
}


def nets(section, word):
    """The nets of a word of the section layer, loss or optimizer."""
    if section == "layer":
        out = LAYERS.get(word, [Net()])
        for net in out:
            net.layers = [word] if net.layers is None else net.layers
        return out
    if section == "loss":
        return LOSSES.get(word, [loss(word, values(WIDTH))])
    return OPTIMIZERS.get(word, [optimizer(word)])
