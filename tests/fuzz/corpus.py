"""Makes the corpus of the fuzzers again: the seeds below, and nothing that a fuzzer has found.

Findings are kept beside them, as found-NAME, and are not touched.
"""

import gzip
import hashlib
import hmac
import io
import json
import pathlib
import struct
import tarfile
import zipfile

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"


def idx(code, extents, elements):
    return struct.pack(f">BBBB{len(extents)}I", 0, 0, code, len(extents), *extents) + elements


def npy(descr, shape, elements, version=1):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + elements


def safetensors(header, data):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def stored_zip(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return out.getvalue()


def word(content):
    return b"X" + struct.pack("<I", len(content)) + content


def numbers(values):
    return b"(" + b"".join(b"K" + bytes([v]) for v in values) + b"t"


# The call that torch.save writes for a tensor.
def rebuilt(storage, count, sizes, strides, key=b"0"):
    storage_id = b"(" + word(b"storage") + b"ctorch\n" + storage + b"\n" + word(key) + word(b"cpu")
    return (b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage_id + b"K" + bytes([count]) + b"tQK\x00" +
            numbers(sizes) + numbers(strides) + b"\x89ccollections\nOrderedDict\n)RtR")


# A file of torch.save: a pickle of protocol 2 and its storages.
def torch_save(pickle, **storages):
    files = {"archive/data.pkl": b"\x80\x02" + pickle + b".", "archive/byteorder": b"little"}
    files |= {f"archive/data/{key[1:]}": content for key, content in storages.items()}
    return stored_zip(files | {"archive/version": b"3\n"})


def state_dict(*members):
    return b"ccollections\nOrderedDict\n)Rq\x00(" + b"".join(members) + b"u"


def text(content):
    return struct.pack("<I", len(content)) + content


BEAT = struct.pack("<qqI", 3, 812, 3)


# A message between hosts, as src/comm/hosts/frame.h has it, without a key.
def frame(number, kind, payload):
    header = b"DPTC" + struct.pack("<BBHII", 1, kind, 0, len(payload), 0)
    digest = hashlib.sha256(payload).digest()
    return header + payload + hmac.digest(b"", struct.pack("<Q", number) + header + digest, "sha256")


def tar(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


def large_member():
    member = tarfile.TarInfo("a")
    member.size = 2**30
    return member.tobuf(tarfile.USTAR_FORMAT)


CIFAR = bytes([3, 99]) + bytes(3072) + bytes([7, 0]) + b"x" * 3072
IDX = {
    "images": idx(8, (2, 3, 3), bytes(range(18))),
    "labels": idx(8, (5,), bytes(5)),
    "doubles": idx(14, (2, 1), struct.pack(">2d", 1.5, -2)),
    "shorts": idx(11, (1, 2, 1, 1), struct.pack(">2h", -1, 7)),
    "too-large": idx(8, (2**32 - 1, 2**32 - 1), b""),
}
GENERATOR = " ".join(["1"] * 624 + ["624", "0", "0"])
STATE = {
    "step": 12, "epoch": 2, "steps_of_this_epoch": 2, "steps_of_an_epoch": 5, "lr": 0.01,
    "loss_sum": 4.5, "loss_weight": 24, "seconds": 0.25, "scale": 65536, "growth_tracker": 3,
    "skipped": 1, "skipped_in_a_row": 0, "skipped_before_this_epoch": 1, "schedule": [0.5, 1e-300],
    "metrics_bytes": 100, "optimizer": "adam", "seed": 7, "build": "0.1", "generator": GENERATOR,
    "order_drawn_by": GENERATOR, "samples": "one order for all",
}
SEEDS = {
    "idx": IDX,
    "idx_gzip": {name: gzip.compress(content, mtime=0) for name, content in IDX.items()}
    | {"two-members": gzip.compress(IDX["labels"], mtime=0) * 2,
       "split-members": b"".join(gzip.compress(part, mtime=0)
                                 for part in (b"", IDX["images"][:7], IDX["images"][7:], b""))},
    "npy": {
        "floats": npy("<f4", "(2, 3)", struct.pack("<6f", *range(6))),
        "longs": npy("<i8", "(2,)", struct.pack("<2q", -1, 2**31 - 1), 2),
        "bytes": npy("|u1", "(1, 1, 2)", b"\x00\xff", 3),
        "fields": npy("<f4", "(1,)", bytes(4)).replace(b"'<f4'", b"[('a', '<f4')]"),
        "zip": b"PK\x03\x04" + bytes(26),
        "gzip": gzip.compress(npy("|b1", "(3,)", b"\x00\x01\x01"), mtime=0),
    },
    "csv": {
        "header": b'a,b,"c d"\n1,2.5,-3e2\n\n4,"5", 6 \r\n',
        "numbers": b"\xef\xbb\xbf1 2 3\n4 5 6",
        "semicolons": b"x;y\n+1;.5\n",
        "tabs": b"1\t2\n3\t4\n",
        "quote": b'1,"2\n3,4\n',
        "huge": b"1e39,nan,inf\n",
        "lost-line": b"1,,nan\n2,3,4\n",
        "index": b",a,1x1\n0,2,3\n",
        "zeros": bytes(40) + b"\n1",
    },
    "cifar": {
        "records": CIFAR,
        "wrong-label": bytes([0, 100]) + bytes(3072),
        "archive": tar({"a/train.bin": CIFAR, "empty": b""}),
        "archive-large": large_member() + bytes(512),
        "archive-gzip": gzip.compress(tar({"a/" + "b" * 90 + "/c": CIFAR}), mtime=0),
    },
    "image": {
        path.name: path.read_bytes()
        for folder in ("images", "image_kinds")
        for path in sorted((CORPUS.parent.parent / "fixtures" / folder).glob("*/*"))
        if path.name in ("420.jpg", "inks.jpg", "grey.jpg", "alpha.png", "bits.png", "palette.png",
                         "palette4.bmp", "rgb16-565.bmp", "rgb32-alpha.bmp", "binary1000.ppm", "comments-text.pgm",
                         "lossy-alpha.webp", "palette.webp", "rgb-lzw-predictor.tif", "rgb-jpeg.tif",
                         "bits-group4.tif", "planes.tif", "palette2.tif", "turned6.tif")
    },
    "safetensors": {
        "two": safetensors({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
                            "b": {"dtype": "U8", "shape": [], "data_offsets": [8, 9]},
                            "__metadata__": {"format": "pt"}}, bytes(9)),
        "escapes": safetensors({"\u00e9\U0001f600\"\\\n": {"dtype": "BF16", "shape": [0, 3],
                                                      "data_offsets": [0, 0]}}, b""),
        "overlap": safetensors({"a": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]},
                                "b": {"dtype": "I64", "shape": [1], "data_offsets": [4, 12]}},
                               bytes(12)),
        "too-large": struct.pack("<Q", 2**63) + b"{}",
        "one-large": safetensors({"a": {"dtype": "F32", "shape": [2**31], "data_offsets": [0, 2**33]},
                                  "b": {"dtype": "U8", "shape": [1],
                                        "data_offsets": [2**33, 2**33 + 1]}}, b"b"),
    },
    "torch_file": {
        "usual": torch_save(state_dict(word(b"0.weight"), rebuilt(b"FloatStorage", 6, (2, 3), (3, 1)),
                                       word(b"0.bias"), rebuilt(b"HalfStorage", 2, (2,), (1,), b"1")),
                            s0=bytes(24), s1=bytes(4)),
        "transposed": torch_save(state_dict(word(b"w"), rebuilt(b"DoubleStorage", 6, (3, 2), (1, 3))),
                                 s0=bytes(48)),
        "checkpoint": torch_save(b"}(" + word(b"epoch") + b"K\x03" + word(b"state_dict") +
                                 state_dict(word(b"n"), rebuilt(b"LongStorage", 1, (), ())) + b"u",
                                 s0=bytes(8)),
        "memory": torch_save(b"}q\x01(\x8c\x01wq\x02" + rebuilt(b"ByteStorage", 4, (2, 2), (2, 1)) +
                             b"q\x03h\x02h\x03uh\x01\x86\x85\x8a\x01\xff0", s0=b"abcd"),
        "code": torch_save(b"cposix\nsystem\n" + word(b"true") + b"\x85R"),
        "outside": torch_save(state_dict(word(b"w"), rebuilt(b"FloatStorage", 6, (9, 9), (9, 1))),
                              s0=bytes(24)),
        "packed": stored_zip({"a/data.pkl": b"."})[:-3],
    },
    "json": {
        "usual": b'{"a": [1, -2.5e-3, true, false, null], "b": {"c": "\\u00e9\\ud83d\\ude00\\n"}, "": {}}\n',
        "numbers": b"[0, -0, 9223372036854775807, 9223372036854775808, 5e-324, 1.7976931348623157e308, 0.1]",
        "python": b'{"loss": NaN, "lr": Infinity, "least": -Infinity}',
        "deep": b"[" * 70 + b"]" * 70,
        "twice": b'{"a": 1, "a": 2}',
        "cut": b'{"a": 12, "b": {"c": "x", "d": [3',
    },
    "state": {
        "usual": json.dumps(STATE, indent=2).encode(),
        "first": json.dumps({key: value for key, value in STATE.items() if key != "samples"}).encode(),
        "no-numbers": json.dumps(STATE | {"lr": "nan", "loss_sum": "-inf", "schedule": ["inf"]}).encode(),
        "below-zero": json.dumps(STATE | {"step": -1}).encode(),
        "large": json.dumps(STATE | {"seed": 2**63, "schedule": [[[[[]]]]]}).encode(),
    },
    "spec": {
        "usual": b"""data: {dataset: fashion_mnist, transforms: [to_tensor], batch_size: 100}
model:
  - flatten
  - linear: 200
    name: lin1
  - sigmoid
  - dropout: 0.2
  - linear: 10
loss: cross_entropy
optimizer: {adam: {lr: 0.01, betas: [0.9, 0.999]}}
schedule: {cosine_annealing: {}, warmup: 1}
epochs: 10
parallel: ddp
""",
        "blocks": b"""#= model.layer1.width=8
data: {dataset: {synthetic_tokens: {samples: 10}}, batch_size_per_replica: 5}
blocks:
  mlp:
    parameters: {width: 64, m: null}
    layers:
      - linear: ${width * 2 / 4 + 1}
        name: lin${m}
      - residual: {body: [relu, {linear: "${width / 2 + 1}"}], shortcut: [identity]}
model:
  - embedding: {num_embeddings: 9, embedding_dim: 3}
  - mlp: {m: 1}
    repeat: 3
    name: layer1
  - layer_norm
loss: {mse_loss: sum}
optimizer: sgd
reproducible: 8
""",
        "list": b"""data: {dataset: random, batch_size: 3}
model:
  - linear: 4
    name: a
  - linear: 4
    name: b
  - concat: {dim: -1}
    from: [a, b, "0"]
loss: {huber_loss: {delta: .5}}
optimizer: {sgd: 0.1}
clip_grad_norm: {max_norm: 1, norm_type: .inf}
name: 'it''s "quoted" \xc3\xb6'
""",
        "laughs": b"""data: {dataset: random, batch_size: 3}
blocks:
  b0: {parameters: {p: x}, layers: [{b1: {p: ["${p}", "${p}", "${p}", "${p}", "${p}", "${p}"]}}]}
  b1: {parameters: {p: x}, layers: [{b2: {p: ["${p}", "${p}", "${p}", "${p}", "${p}", "${p}"]}}]}
  b2: {parameters: {p: x}, layers: [{b3: {p: ["${p}", "${p}", "${p}", "${p}", "${p}", "${p}"]}}]}
  b3: {parameters: {p: x}, layers: [{b4: {p: "${p}"}}]}
  b4: {parameters: {p: x, q: "${p}${p}"}, layers: [{relu: , name: "a${q}", repeat: 3}]}
model: [{b0: }, {b4: 1, repeat: 20}]
loss: mse_loss
optimizer: sgd
""",
        "empty": b"""#= data.limit=
version:
name: ""
data: {dataset: {random: }, batch_size: null, batch_size_per_replica: 2, transforms: [], limit: ~}
blocks: {b: {parameters: , layers: [linear: 2]}}
model: [{b: , init: , from: , device: null}]
loss: {mse_loss: }
optimizer: {sgd: {lr: , momentum: none}}
schedule:
clip_grad_norm: null
reproducible: none
extends:
""",
        "extreme": b"""#= save.every_steps=9223372036854775807
seed: -9223372036854775808
data: {dataset: {random: {samples: 9223372036854775807, seed: 99999999999999999999}}, batch_size: 2147483648}
model: [{linear: 2, repeat: 9223372036854775807}, {dropout: 1e308}]
loss: mse_loss
optimizer: {sgd: {lr: .inf, momentum: -.inf, weight_decay: 1e999}}
epochs: 9223372036854775807
accumulate: -1
clip_grad_norm: {max_norm: .inf, norm_type: 1e-308}
""",
        "broken": b"model: [{linear: }, - x\n\t- y: &a *a]\n!t ? |\n  >\n",
    },
    "hosts": {  # the first byte is the kind of message
        "frames": b"\x00" + frame(0, 11, b"10.0.0.2:4711") + frame(1, 7, BEAT) + frame(2, 10, b""),
        "pieces": b"\x28" + frame(0, 10, b"") + frame(1, 11, bytes(300)),
        "long": b"\xf8DPTC" + struct.pack("<BBHII", 1, 11, 0, 0xFFFFFFFF, 0),
        "hello": b"\x01" + struct.pack("<iiii", 4, 2, 8, 2) +
                 b"".join(map(text, [b"hostb", b"10.0.0.2", b"1.5.0", b"spec", b"data", b"AVX2", b"3.1"])) +
                 b"\x01" + text(b"no such file"),
        "welcome": b"\x02" + struct.pack("<i", 2) +
                   b"".join(struct.pack("<ii", 8 * h, 8) + text(b"host") + text(b"10.0.0.2") for h in (0, 1)),
        "beat": b"\x03" + BEAT,
        "gathered": b"\x04" + text(b"one") + text(b"") + text(b"three"),
        "store": b"\x05" + struct.pack("<IBQ", 0x72747064, 0, 13) + b"10.0.0.2:4711" +
                 b"\x01" + struct.pack("<BQ", 0, 1 << 40),
        "endpoint": b"\x06[fd00::2]:29500",
        "nodes": b"\x07rack[1-2]node[007-012,020]-ib,login1",
        "tasks": b"\x072(x3),1",
    },
}


for target, seeds in SEEDS.items():
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in seeds.items():
        (folder / name).write_bytes(content)
