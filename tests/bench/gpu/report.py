"""What gpu_report makes of octavo_gpu_bench's records: the bars, their verdicts, and one Markdown table."""
import re
from dataclasses import dataclass

SHARES = {"of_bandwidth": "of the bandwidth", "of_peak": "of the matrix peak", "of_roofline": "of the roofline",
          "ratio": "of the peer's"}


@dataclass(frozen=True)
class Bar:
    section: str
    name: str  # a regular expression for the whole name of a record
    figure: str  # a key of SHARES
    at_least: float
    aim: float | None


BARS = [
    Bar("steps", r"Llama-1B bf16, decode 1 x \d+", "of_bandwidth", 0.60, 0.78),
    Bar("steps", r"Llama-8B bf16, decode 1 x \d+", "of_bandwidth", 0.85, 0.92),
    Bar("steps", r"Llama-\w+ \w+, decode (64|256) x \d+", "of_roofline", 0.80, None),
    Bar("steps", r"Llama-\w+ bf16, prefill 1 x \d+", "of_peak", 0.60, 0.75),
    Bar("attention", r"KV f16, decode 64 x 8192", "of_bandwidth", 0.85, None),
    Bar("swap", r".* shuffled blocks", "of_bandwidth", 0.80, None),
    Bar("peers", r"llama\.cpp: decode .*", "ratio", 1.5, 2.0),
    Bar("peers", r"transformers: decode 256 x \d+", "ratio", 1.0, 24.0),
]


def bar_for(record):
    for bar in BARS:
        if record["section"] == bar.section and re.fullmatch(bar.name, record["name"]):
            return bar
    return None


def verdict(record, bar, emulated=False):
    """"aim", "met", "NOT MET"; "not measured" where there is no figure; "-" where times mean nothing."""
    if emulated:
        return "-"
    value = record.get(bar.figure)
    if value is None:
        return "not measured"
    if bar.aim is not None and value >= bar.aim:
        return "aim"
    return "met" if value >= bar.at_least else "NOT MET"


def judge(records, emulated=False):
    """Adds to each record that has a bar: figure, at_least, aim, verdict."""
    for record in records:
        bar = bar_for(record)
        if bar is not None:
            record["bar"] = {"figure": bar.figure, "at_least": bar.at_least, "aim": bar.aim,
                             "verdict": verdict(record, bar, emulated)}


def without_records(records):
    """The bars that no record meets or misses: what still has to be measured."""
    return [bar for bar in BARS if not any(bar_for(record) == bar for record in records)]


def time_text(seconds):
    for limit, factor, unit in ((1e-3, 1e6, "us"), (1.0, 1e3, "ms")):
        if seconds < limit:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"


def share_text(value):
    return "" if value is None else f"{100 * value:.0f} %"


def rate_text(record):
    if "value" in record:
        return f"{record['value']:,.1f} {record['unit']}"
    return f"{record['tokens_per_s']:,.0f} tokens/s" if "tokens_per_s" in record else ""


def scaled(record, key, unit):
    return f"{record[key] / unit:.3g}" if key in record else ""


def bar_texts(record):
    bar = record.get("bar")
    if bar is None:
        return ["", "", ""]
    is_ratio = bar["figure"] == "ratio"
    text = (lambda value: f"{value:g}x") if is_ratio else share_text
    least = text(bar["at_least"]) + ("" if is_ratio else " " + SHARES[bar["figure"]])
    return [least, "" if bar["aim"] is None else text(bar["aim"]), bar["verdict"]]


HEADER = ["section", "what", "way", "time", "spread", "tokens/s", "GB/s", "of the bandwidth", "TFLOP/s", "of the peak",
          "of the roofline", "ratio", "at least", "aim", "verdict"]


def row(record):
    if "left_out" in record:
        return [record["section"], record["name"], f"left out: {record['left_out']}"] + [""] * (len(HEADER) - 3)
    seconds, rounds = record.get("seconds"), record.get("rounds_seconds", [])
    spread = f"{100 * (max(rounds) - min(rounds)) / seconds:.0f} %" if seconds and rounds else ""
    ratio = f"{record['ratio']:.2f}x" if "ratio" in record else ""
    return [record["section"], record["name"], record.get("way", ""), time_text(seconds) if seconds else "", spread,
            rate_text(record), scaled(record, "bytes_per_s", 1e9), share_text(record.get("of_bandwidth")),
            scaled(record, "operations_per_s", 1e12), share_text(record.get("of_peak")),
            share_text(record.get("of_roofline")), ratio, *bar_texts(record)]


def table(rows):
    lines = [HEADER, ["---"] * len(HEADER)] + rows
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


def device_text(report):
    device = report["device"]
    text = f"{device['name']}, compute capability {device['compute_capability']}"
    if device["emulated"]:
        return text + ": an emulated device, whose times mean nothing; this shows only that everything runs.\n"
    text += (f", {device['total_bytes'] / 1e9:.0f} GB, {device['multiprocessors']} multiprocessors, second-level cache "
             f"{device['cache_bytes'] / 1e6:.0f} MB; driver for CUDA {device['driver'] / 1000:g}, runtime "
             f"{device['runtime'] / 1000:g}; at most {device['highest_clock_khz'] / 1e3:.0f} MHz, memory "
             f"{device['highest_memory_clock_khz'] / 1e3:.0f} MHz.\n")
    for when, line in report.get("state", {}).items():
        text += f"\n{when}: `{line}`\n"
    return text


def markdown(report):
    """Records with bars first, then all others in the order in which they were measured."""
    records = report["records"]
    judged = [record for record in records if "bar" in record]
    others = [record for record in records if "bar" not in record]
    text = "# The CUDA backend, measured\n\n" + device_text(report) + "\n"
    text += table([row(record) for record in judged + others])
    open_bars = without_records(records)
    if open_bars:
        text += "\nBars without a measurement: " + "; ".join(f"{bar.section}: `{bar.name}`" for bar in open_bars) + ".\n"
    for check in report.get("checks", []):
        text += f"\n* {check['name']}: {check['result']}" + (f" ({check['detail']})" if check.get("detail") else "")
    if report.get("error"):
        text += f"\n\nThe measurement stopped: {report['error']}"
    return text + ("" if text.endswith("\n") else "\n")
