"""Figures as tables."""

import statistics
import textwrap

TITLES = {
    "drain": "Draining a queue of no-op items",
    "page": "A page of ten hooks, one at a time",
    "workers": "Simulated workers",
    "latency": "Latency",
    "supervise": "Supervision",
    "export": "Exports",
    "idle": "Idle",
    "month": "A month of steady work",
    "check": "Every day",
}


def number(value):
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def verdict(item):
    if "target" not in item:
        return ""
    return f" (target {'at most' if item['at_most'] else 'at least'} {number(item['target'])}: {'met' if item['met'] else '**missed**'})"


def ratio_text(ratio):
    cpu = f", CPU {ratio['cpu']:.2f} x" if "cpu" in ratio else ""
    return f"{ratio['value']:.2f} x {ratio['against']}{cpu}{verdict(ratio)}"


def wrapped(paragraph):
    return textwrap.fill(paragraph, 100, break_long_words=False, break_on_hyphens=False)


def table(part, result):
    with_cpu = any("cpu" in row for row in result["figures"])
    cells = ["", "median", "low .. high", *(["server CPU of each"] if with_cpu else []), "ratio, within a repeat"]
    lines = [
        f"### {TITLES.get(part, part)}",
        "",
        f"| {' | '.join(cells)} |",
        "|---|" + "---:|" * (len(cells) - 2) + "---|",
    ]
    for row in result["figures"]:
        ratios = [verdict(row).strip(), *map(ratio_text, row.get("ratios", []))]
        cpu = f"{number(statistics.median(row['cpu']))} µs" if "cpu" in row else ""
        cells = [
            row["name"],
            f"{number(row['median'])} {row['unit']}",
            f"{number(row['low'])} .. {number(row['high'])}",
            *([cpu] if with_cpu else []),
            "; ".join(filter(None, ratios)),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["\n" + wrapped(note) for note in result.get("notes", [])]
    lines += ["\n" + wrapped("Not measured: " + " ".join(failure.split())) for failure in result["failures"]]
    return "\n".join(lines) + "\n"


def write(results, file):
    """Parts that were not measured this time keep what the file has."""
    old = file.read_text() if file.exists() else ""
    texts = {text.partition("\n")[0]: "### " + text.rstrip() + "\n" for text in old.split("### ") if text.strip()}
    for part, result in results["parts"].items():
        if part == "check":
            continue
        machine = result["machine"]
        measured = (
            f"{machine['date']}, {machine['processors']} processors ({machine['model']}), load {machine['load_before']} at the "
            f"start and {machine.get('load_after', '?')} at the end, PostgreSQL {machine['postgresql']}, {machine['build']} build, "
            f"{result['repeats']} repeat{'s' if result['repeats'] > 1 else ''}{', --small' if result['small'] else ''}; {result['seconds']:.0f} s."
        )
        texts[TITLES[part]] = f"{table(part, result)}\n{wrapped(measured)}\n"
    file.write_text("\n".join(texts[title] for title in TITLES.values() if title in texts))
