"""The table as Markdown, and everything as JSON."""


def number(value):
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def bound(line, value):
    if value is None:
        return "-"
    if line.peer_value is not None:
        return f"{value:g}x"
    return f"{'<= ' if line.lower_is_better else '>= '}{value:g}"


def table_row(line):
    ours = list(line.ours.items())
    beside = "; ".join(f"{name} {number(value)}" for name, value in ours[1:])
    scores = [f"{score:.2f}x" if line.peer_value is not None else "" for score in line.scores.values()]
    ratio = scores[0] + (f" ({'; '.join(f'{name} {score}' for name, score in zip(list(line.ours)[1:], scores[1:]))})" if len(scores) > 1 and scores[0] else "")
    verdict = line.verdict + (f" (by {line.judged[0]})" if line.at_least is not None and line.judged[0] != ours[0][0] else "")
    return [line.figure + (f", {line.unit}" if line.unit else ""), number(ours[0][1]), beside or "-", line.peer or "-", number(line.peer_value), ratio or "-",
            bound(line, line.at_least), bound(line, line.aim), verdict + (f"; {line.note}" if line.note else "")]


HEADS = ["figure", "Octavo", "with other activations", "peer", "peer's figure", "ratio", "at least", "aim", "verdict"]


def markdown(lines):
    rows = [HEADS, ["---"] * len(HEADS), *(table_row(line) for line in lines)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def preface(facts):
    machine, limits = facts["machine"], facts["limits"]
    return (f"{machine.get('Model name', 'unknown processor')}, {machine.get('CPU(s)', '?')} processors, {facts['threads']} threads on cores "
            f"{','.join(map(str, machine['cores']))}; reads {limits['read_gb_per_s']:.1f} GB/s, {limits['int8_gmac_per_s']:.0f} G int8 and "
            f"{limits['float_gmac_per_s']:.0f} G float multiply-adds/s (the best seen). "
            f"{facts['quiet']} " + ", ".join(f"{name} {version}" for name, version in facts["versions"].items()) + ".")
