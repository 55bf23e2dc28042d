"""What compare.py concludes from the measured times: medians, ratios, shares of the peak; the table."""

import statistics

LOSS_TOLERANCE = 1e-2


def judge(row, found):
    """Adds medians and, against dptrain, ratios and whether the loss agrees."""
    for entry in found.values():
        if entry["times"] and "failed" not in entry:
            entry["median"] = statistics.median(entry["times"])
            entry["best"] = min(entry["times"])
            entry["peak_memory"] = statistics.median(entry["memory"])
    ours = found.get("dptrain", {})
    for name, entry in found.items():
        if name == "dptrain" or "median" not in entry or "median" not in ours:
            continue
        if row.same_data:
            entry["loss_difference"] = abs(entry["loss"][0] - ours["loss"][0]) / abs(ours["loss"][0])
            entry["void"] = not entry["loss_difference"] <= LOSS_TOLERANCE  # a nan is void, too
        if entry.get("void"):
            continue
        entry["ratio"] = entry["median"] / ours["median"]
        entry["ratio_of_bests"] = entry["best"] / ours["best"]
        entry["ratio_of_memory"] = entry["peak_memory"] / ours["peak_memory"]


def add_share_of_peak(row, found, program, peak):
    """The FLOP/s of dptrain's steps over the peak of the measured cores."""
    ours = found.get("dptrain", {})
    if not peak or not row.samples or "median" not in ours:
        return
    if flops := program.flops():
        ours["share_of_peak"] = flops / ours["median"] / peak


def add_efficiency(measured):
    """For pipelines of two stages: the share of two cores in use, and its ratio to the bubble's bound."""
    times = {row.name: found.get("dptrain", {}).get("median") for row, found in measured}
    for row, found in measured:
        if row.bound and times.get(row.alone) and times[row.name]:
            entry = found["dptrain"]
            entry["efficiency"] = times[row.alone] / (2 * times[row.name])
            entry["of_bound"] = entry["efficiency"] / row.bound


def time_text(row, seconds):
    """Seconds of an epoch in the row's unit: of a step, samples a second, or as they are."""
    if row.steps and not row.rate:
        step = seconds / row.steps
        return f"{step * 1e6:.4g} us a step" if step < 1e-3 else f"{step * 1e3:.4g} ms a step"
    if row.rate:
        rate = row.samples / seconds
        return f"{rate:,.0f} samples/s" if rate >= 100 else f"{rate:.3g} samples/s"
    return f"{seconds:.3f} s {'in all' if row.cold else 'an epoch'}"


def heading(figures):
    where = figures["machine"]
    cores = f"{where['cores']} of {where['cores_there']} cores"
    peak = f"; fma: {where['peak'] / 1e9:.0f} GFLOP/s" if where["peak"] else ""
    versions = ", ".join(f"{name} {version}" for name, version in sorted(figures["versions"].items()))
    return f"""{where['model']} ({where['family']}), {cores}, {' '.join(where['isa'])}{peak}
{where['system']}; load {where['load']}, disturbance {where['disturbance']}
{versions}
medians of {figures['rounds']} rounds, the programs taking turns
"""


def table(measured):
    """Markdown: one line for each program of each row."""
    lines = [
        "| what | program | median | dptrain is | by the bests | peak memory | loss, epoch 1 |",
        "|---|---|---|---|---|---|---|",
    ]
    for row, found in measured:
        for name, entry in found.items():
            start = f"| {row.about} | {name} |"
            if "median" not in entry:
                lines.append(f"{start} failed | | | | |")
                continue
            ratios = " | |"
            if entry.get("void"):
                ratios = f" void: loss {100 * entry['loss_difference']:.1f} % away | |"
            elif "ratio" in entry:
                ratios = f" {entry['ratio']:.2f}x as fast | {entry['ratio_of_bests']:.2f}x |"
            memory = f"{entry['peak_memory']:.0f} MiB"
            lines.append(f"{start} {time_text(row, entry['median'])} |{ratios} {memory} | {entry['loss'][0]:.5f} |")
            if "share_of_peak" in entry:
                lines[-1] += f" {100 * entry['share_of_peak']:.0f} % of the peak |"
            if "efficiency" in entry:
                bound = f"{100 * entry['of_bound']:.0f} % of the bubble's bound {row.bound:.3f}"
                lines[-1] += f" efficiency {entry['efficiency']:.3f}, {bound} |"
    return "\n".join(lines)
