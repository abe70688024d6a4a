"""Figures as a table and as plots (SVG, written by hand: bars and curves need no library)."""

import html
import json
import math
import pathlib
import re
import statistics
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
TITLES = {
    "drain": "Draining a queue of no-op items",
    "page": "A page of ten hooks, one at a time",
    "workers": "Simulated workers",
    "latency": "Latency",
    "politeness": "What fairness and politeness cost a claim",
    "supervise": "Supervision",
    "endtoend": "The same plugins on the same pages",
    "scale": "Scale-out",
    "export": "Exports",
    "idle": "Idle",
    "month": "A month of steady work",
    "check": "Every day",
}
PEERS = (
    "graphile",
    "pg-boss",
    "River",
    "Procrastinate",
    "the same SQL",
    "the same rows",
    "least SQL",
    "floor",
    "posix_spawn",
    "xargs",
    "abx-dl",
    "by hand",
    "if only",
    "1 worker, if only",
    "the core of",
    "the JSON of",
)


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


def bars(title, unit, rows):
    """A horizontal bar for each (name, low, median, high); the line at its end runs from the lowest repeat to the highest."""
    left, width, step = 430, 470, 22
    top = max(high for _, _, _, high in rows) or 1
    least = min((low for _, low, _, _ in rows if low > 0), default=top)
    if top / least > 50:  # else the short bars could not be told apart
        unit, decades = unit + ", logarithmic", math.log(top / least * 2)
        x = lambda value: left + width * max(0, math.log(max(value, least / 2) / least * 2)) / decades
    else:
        x = lambda value: left + width * value / top
    height = 46 + step * len(rows)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="1000" height="{height}" fill="white"/><text x="12" y="22" font-size="15" font-weight="bold">{html.escape(title)} ({html.escape(unit)})</text>',
    ]
    for n, (name, low, median, high) in enumerate(rows):
        y = 38 + n * step
        ours = not name.startswith(PEERS)
        short = name if len(name) <= 68 else name[:66] + "…"
        out.append(f'<text x="{left - 8}" y="{y + 13}" text-anchor="end" font-size="11">{html.escape(short)}</text>')
        out.append(
            f'<rect x="{left}" y="{y + 2}" width="{max(1, x(median) - left):.1f}" height="{step - 7}" fill="{"#2b6cb0" if ours else "#a0aec0"}"/>'
        )
        out.append(
            f'<path d="M{x(low):.1f} {y + 9.5}H{x(high):.1f}" stroke="#1a202c"/><text x="{x(high) + 6:.1f}" y="{y + 13}" font-size="11">{number(median)}</text>'
        )
    return "\n".join(out) + "\n</svg>\n"


def curve(title, of):
    """Points (x, low, median, high) over a logarithmic x, and a dashed line of what there would be if nothing bent it."""
    left, bottom, width, height = 80, 360, 860, 310
    points, ideal = of["points"], of["ideal"]
    first, last = points[0][0], points[-1][0]
    top = max(high for _, _, _, high in points) * 1.25
    x = lambda value: left + width * (math.log(value / first) / math.log(last / first) if last > first else 0.5)
    y = lambda value: bottom - height * value / top
    line = lambda pairs: "M" + "L".join(f"{x(a):.1f} {y(b):.1f}" for a, b in pairs)
    out = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 410" font-family="sans-serif" font-size="12">',
        f'<rect width="1000" height="410" fill="white"/><text x="12" y="22" font-size="15" font-weight="bold">{html.escape(title)}</text>',
        f'<clipPath id="in"><rect x="{left}" y="{bottom - height}" width="{width}" height="{height}"/></clipPath>',
        f'<path d="M{left} {bottom - height}V{bottom}H{left + width}" fill="none" stroke="#1a202c"/>',
        f'<path d="{line(ideal)}" clip-path="url(#in)" fill="none" stroke="#a0aec0" stroke-dasharray="5 4"/>',
        f'<path d="{line([(at, median) for at, _, median, _ in points])}" fill="none" stroke="#2b6cb0" stroke-width="2"/>',
        f'<text x="{left + width / 2}" y="{bottom + 42}" text-anchor="middle">{html.escape(of["x"])}, logarithmic; dashed: {html.escape(of["ideal_name"])}</text>',
        f'<text x="12" y="{bottom - height - 8}">{html.escape(of["y"])}</text>',
    ]
    for at, low, median, high in points:
        out.append(
            f'<path d="M{x(at):.1f} {y(low):.1f}V{y(high):.1f}" stroke="#1a202c"/><circle cx="{x(at):.1f}" cy="{y(median):.1f}" r="4" fill="#2b6cb0"/>'
        )
        out.append(
            f'<text x="{x(at) + 8:.1f}" y="{y(median) + 16:.1f}">{number(median)}</text><text x="{x(at):.1f}" y="{bottom + 18}" text-anchor="middle">{at}</text>'
        )
    return "\n".join(out) + "\n</svg>\n"


def plots(part, result):
    """One file for each curve, and for each unit that has two bars or more."""
    for of in result.get("curves", []):
        yield f"{part}-{of['name']}.svg", curve(of["title"], of)
    units = {}
    for row in result["figures"]:
        units.setdefault(row["unit"], []).append((row["name"], row["low"], row["median"], row["high"]))
    for unit, rows in units.items():
        if len(rows) > 1:
            yield f"{part}-{re.sub('[^a-z]+', '-', unit.lower()).strip('-')}.svg", bars(
                TITLES.get(part, part), unit, rows
            )


def write(results):
    """Parts that were not measured this time keep what they have."""
    file, folder = HERE / "results.json", HERE / "plots"
    old = json.loads(file.read_text()) if file.exists() else {"parts": {}}
    old["parts"].update({part: result for part, result in results["parts"].items() if part != "check"})
    file.write_text(json.dumps(old, indent=1) + "\n")
    folder.mkdir(exist_ok=True)
    text = []
    for part in [part for part in TITLES if part in old["parts"]]:
        result = old["parts"][part]
        for plot in folder.glob(f"{part}-*.svg"):
            plot.unlink()
        machine = result["machine"]
        text.append(table(part, result))
        measured = (
            f"{machine['date']}, {machine['processors']} processors ({machine['model']}), load {machine['load_before']} at the "
            f"start and {machine.get('load_after', '?')} at the end, PostgreSQL {machine['postgresql']}, {machine['build']} build, "
            f"{result['repeats']} repeat{'s' if result['repeats'] > 1 else ''}{', --small' if result['small'] else ''}; {result['seconds']:.0f} s."
        )
        text.append(wrapped(measured) + "\n")
        for name, svg in plots(part, result):
            (folder / name).write_text(svg)
            text.append(f"![{name.removesuffix('.svg')}](plots/{name})\n")
    readme = HERE / "README.md"
    before, rest = readme.read_text().split("<!-- table -->")
    readme.write_text(before + "<!-- table -->\n" + "\n".join(text) + "<!-- end -->" + rest.split("<!-- end -->")[1])
