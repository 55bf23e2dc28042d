"""The measured part of docs/performance.md and its pictures, from the figures of compare.py."""

import math
import pathlib
import re
import textwrap

import judge

BEGIN = "<!-- Measured: written by tools/bench/compare.py --page. -->"
END = "<!-- End of the measured part. -->"
LOWEST = 12  # random nets that the page lists
GOAL = 1.5
KINDS = [("MLP", "fp32", "#4477aa"), ("MLP", "bf16", "#99bbdd"), ("CNN", "fp32", "#cc5522"),
         ("CNN", "bf16", "#eeaa88")]  # fmt: skip


def fastest(found):
    """(name, entry) of the fastest peer that is PyTorch; None: there is none."""
    peers = [each for each in found.items() if each[0].startswith("PyTorch") and "ratio" in each[1]]
    return min(peers, key=lambda each: each[1]["ratio"], default=None)


def by_ratio(measured):
    """(ratio to the fastest PyTorch, row, found) of the rows that have one, the lowest first."""
    rows = [(best[1]["ratio"], row, found) for row, found in measured if (best := fastest(found))]
    return sorted(rows, key=lambda each: each[0])


def way(name):
    return name.removeprefix("PyTorch DDP").removeprefix("PyTorch").removeprefix(",").strip()


def number(x):
    return f"{x:.0f}x" if x >= 20 else f"{x:.1f}x" if x >= 10 else f"{x:.2f}x"


def share(entry):
    return f"{100 * entry['share_of_peak']:.0f} %" if "share_of_peak" in entry else ""


def filled(text):
    return textwrap.fill(" ".join(text.split()), 100, break_on_hyphens=False)


def paragraphs(figures):
    where, versions = figures["machine"], figures["versions"]
    peak = where["peak"] / 1e9
    counts = sorted({len(found["dptrain"]["times"]) for row, found in figures["rows"] if not row.random})
    rounds = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    ours = re.sub(r"git [^,]*, ", "", versions["dptrain"])
    kind = "virtual " if where["virtual"] else ""
    text = f"""Machine: {where['cores']} of {where['cores_there']} cores of a {kind}{where['model']}
    (family, model and stepping {where['family']}; {', '.join(where['isa'])}). Together they compute
    {peak:.0f} GFLOP/s by fma (`dptrain doctor`). dptrain {ours}; PyTorch
    {versions.get('torch', '-')}, JAX {versions.get('jax', '-')}. The programs took turns; numbers are
    medians of {rounds} rounds."""
    return filled(text) + "\n"


def training_table(measured):
    times = {row.name: found["dptrain"].get("median") for row, found in measured}
    lines = [
        "| net | dptrain | of fma's peak | bf16 is | fastest PyTorch | dptrain is | others | memory: ours, PyTorch's |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row, found in measured:
        ours = found["dptrain"]
        best = fastest(found)
        if row.alone or "median" not in ours or best is None:
            continue
        name, peer = best
        plain = times.get(row.name.removesuffix("_bf16")) if row.name.endswith("_bf16") else None
        half = f"{number(plain / ours['median'])} fp32" if plain else ""
        others = "; ".join(
            f"{way(each)} {number(entry['ratio'])}"
            for each, entry in found.items()
            if "ratio" in entry and ("JAX" in each or "loop" in each)
        )
        memory = ""
        if not row.name.startswith("ddp"):
            memory = f"{ours['peak_memory']:.0f}, {peer['peak_memory']:.0f} MiB"
        lines.append(
            f"| {row.about} | {judge.time_text(row, ours['median'])} | {share(ours)} | {half} "
            f"| {judge.time_text(row, peer['median'])} ({way(name)}) | {number(peer['ratio'])} | {others} | {memory} |"
        )
    return "\n".join(lines)


def pipeline_table(measured):
    lines = [
        "| two stages on two cores | dptrain | share of the bound | torch.distributed.pipelining | dptrain is |",
        "|---|---|---|---|---|",
    ]
    net = ""
    for row, found in measured:
        if row.name.endswith("_single") and not row.alone:
            net = row.about.removesuffix(", on one core")
        if not row.alone or "median" not in found["dptrain"]:
            continue
        ours = found["dptrain"]
        [peer] = [entry for name, entry in found.items() if name != "dptrain"]
        about = row.about.replace("the same in two stages", net)
        share = f"{100 * ours['of_bound']:.0f} %" if "of_bound" in ours else ""
        times, ratio = (
            (judge.time_text(row, peer["median"]), number(peer["ratio"])) if "ratio" in peer else ("", "")
        )
        lines.append(f"| {about} | {judge.time_text(row, ours['median'])} | {share} | {times} | {ratio} |")
    return "\n".join(lines) if len(lines) > 2 else ""


def random_part(measured):
    """Text and table of the random nets."""
    ratios = by_ratio(measured)
    if not ratios:
        return ""
    mean = math.exp(sum(math.log(each[0]) for each in ratios) / len(ratios))
    below = sum(each[0] < GOAL for each in ratios)
    drawn = sum(row.random for row, _ in measured)
    left_out = drawn - len(ratios)
    void = f" Left out, since their losses were more than 1 % apart: {left_out}." if left_out else ""
    about = f"""{len(ratios)} nets drawn at random: MLPs of 1 to 32 layers of 16 to 4096, convolutions of 3 to
    512 channels, batches of 1 to 1024. Each runs beside the program that `dptrain export` writes for it,
    eager and compiled; the faster one counts. The geometric mean is {number(mean)}; {below} of the nets
    are below {GOAL}x. Measured in one round.{void}"""
    lines = [
        filled(about),
        "",
        "![The ratio of each net, sorted](pictures/random_nets.svg)",
        "",
        "| the lowest | dptrain | share of fma's peak | PyTorch | dptrain is |",
        "|---|---|---|---|---|",
    ]
    for ratio, row, found in ratios[:LOWEST]:
        ours, (name, peer) = found["dptrain"], fastest(found)
        lines.append(
            f"| {row.about} | {judge.time_text(row, ours['median'])} | {share(ours)} "
            f"| {judge.time_text(row, peer['median'])} ({way(name)}) | {number(ratio)} |"
        )
    return "\n".join(lines)


class Picture:
    """An SVG, drawn from the top down."""

    def __init__(self, width, height, title, below):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13" fill="#222222">',
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        ]
        self.text(20, 26, title, size=16)
        self.text(20, 46, below, size=12, color="#666666")

    def text(self, x, y, text, size=13, color="#222222", anchor="start"):
        text = text.replace("&", "&amp;").replace("<", "&lt;")
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{color}" text-anchor="{anchor}">{text}</text>'
        )

    def box(self, x, y, width, height, color):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}" fill="{color}"/>')

    def line(self, x1, y1, x2, y2, color, dashes=""):
        self.parts.append(f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="{color}"'
                          f'{f" stroke-dasharray={chr(34)}{dashes}{chr(34)}" if dashes else ""}/>')

    def dot(self, x, y, color):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{color}"/>')

    def write(self, path):
        path.write_text("\n".join([*self.parts, "</svg>"]) + "\n")


def logarithmic(least, most, start, end):
    """A place for each ratio from `least` to `most`."""
    return lambda x: start + (end - start) * math.log(x / least) / math.log(most / least)


def draw_rows(measured, path):
    """A bar for each row: the ratio to PyTorch's fastest way."""
    bars = [(row, found, fastest(found)) for row, found in measured if not row.alone]
    bars = [(row, found, best[1]["ratio"]) for row, found, best in bars if best]
    most = max(ratio for _, _, ratio in bars)
    left, right, top, step = 380, 860, 84, 24
    place = logarithmic(min(1, *(each[2] for each in bars)), most, left, right - 50)
    bottom = top + step * len(bars)
    picture = Picture(right + 40, bottom + 20, "How many times as fast as PyTorch dptrain trains",
                      "PyTorch's fastest way of each row; logarithmic scale; dark: fp32, light: bf16")  # fmt: skip
    for tick in [1, 2, 5, 10, 20, 50, 100, 200]:
        if tick <= most:
            picture.line(place(tick), top - 8, place(tick), bottom, "#dddddd")
            picture.text(place(tick), top - 12, f"{tick}x", 11, "#666666", "middle")
    for index, (row, _, ratio) in enumerate(bars):
        y = top + step * index
        picture.text(left - 10, y + 14, row.about, 12, anchor="end")
        picture.box(left, y + 2, place(ratio) - left, step - 7, KINDS["bf16" in row.name][2])
        picture.text(place(ratio) + 6, y + 14, number(ratio), 12)
    picture.write(path)


def draw_random(measured, path):
    """A dot for each random net, sorted by its ratio."""
    dots = [(ratio, row.about) for ratio, row, _ in by_ratio(measured)]
    if not dots:
        return
    left, right, top, bottom = 60, 860, 100, 400
    most = max(each[0] for each in dots)
    place = logarithmic(min(1, dots[0][0]), most, bottom, top)
    picture = Picture(900, 430, f"{len(dots)} random nets: how many times as fast as PyTorch",
                      "the faster of eager and compiled; logarithmic scale, from the slowest to the fastest")  # fmt: skip
    for index, (kind, precision, color) in enumerate(KINDS):
        picture.dot(left + 110 * index, 70, color)
        picture.text(left + 110 * index + 10, 74, f"{kind}, {precision}")
    for tick in [1, GOAL, 2, 5, 10, 20, 50, 100]:
        if tick <= most:
            picture.line(left, place(tick), right, place(tick), "#dddddd", "6 4" if tick == GOAL else "")
            picture.text(left - 8, place(tick) + 4, f"{tick:g}x", 11, "#666666", "end")
    for index, (ratio, about) in enumerate(dots):
        [color] = [each[2] for each in KINDS if about.startswith(each[0]) and about.endswith(each[1])]
        picture.dot(left + (right - left) * (index + 0.5) / len(dots), place(ratio), color)
    picture.write(path)


def write(path, figures):
    """Replaces the measured part of the page, and the pictures beside it."""
    chosen = [each for each in figures["rows"] if not each[0].random]
    random = [each for each in figures["rows"] if each[0].random]
    parts = [
        BEGIN, paragraphs(figures),
        "![The ratio of each row](pictures/peers.svg)\n", training_table(chosen),
        "\nPipelines, SGD; the bound is twice one core's speed times chunks / (chunks + 1):\n",
        pipeline_table(chosen), "\n### Random nets\n", random_part(random), "", END,
    ]  # fmt: skip
    before, _, rest = path.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    path.write_text(before + "\n".join(parts) + after)
    folder = pathlib.Path(path).parent / "pictures"
    folder.mkdir(exist_ok=True)
    draw_rows(chosen, folder / "peers.svg")
    draw_random(random, folder / "random_nets.svg")
