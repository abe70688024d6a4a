"""Figures as a table and as plots (SVG, written by hand: bars need no library)."""

import html
import json
import math
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
TITLES = {"drain": "Draining a queue of no-op items", "latency": "Latency", "politeness": "What fairness and politeness cost a claim", "supervise": "Supervision",
          "endtoend": "The same plugins on the same pages", "scale": "Scale-out", "idle": "Idle", "check": "Every day"}


PEERS = ("graphile", "pg-boss", "River", "Procrastinate", "the same SQL", "the same rows", "least SQL", "floor", "posix_spawn", "xargs", "abx-dl", "by hand", "if only", "1 node, if only")


def number(value):
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def verdict(item):
    if "target" not in item:
        return ""
    return f" (target {'at most' if item['at_most'] else 'at least'} {item['target']}: {'met' if item['met'] else '**missed**'})"


def table(part, result):
    lines = [f"### {TITLES.get(part, part)}", "", "| | median | low .. high | ratio, within a repeat |", "|---|---:|---:|---|"]
    for row in result["figures"]:
        ratios = "; ".join(f"{ratio['value']:.2f} x {ratio['against']}{verdict(ratio)}" for ratio in row.get("ratios", []))
        ratios = "; ".join(filter(None, [verdict(row).strip(), ratios]))
        lines.append(f"| {row['name']} | {number(row['median'])} {row['unit']} | {number(row['low'])} .. {number(row['high'])} | {ratios} |")
    for failure in result["failures"]:
        lines.append(f"\nNot measured: {failure.strip().splitlines()[0]}")
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
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 {height}" font-family="sans-serif" font-size="12">',
           f'<rect width="1000" height="{height}" fill="white"/><text x="12" y="22" font-size="15" font-weight="bold">{html.escape(title)} ({html.escape(unit)})</text>']
    for n, (name, low, median, high) in enumerate(rows):
        y = 38 + n * step
        ours = not name.startswith(PEERS)
        short = name if len(name) <= 68 else name[:66] + "…"
        out.append(f'<text x="{left - 8}" y="{y + 13}" text-anchor="end" font-size="11">{html.escape(short)}</text>')
        out.append(f'<rect x="{left}" y="{y + 2}" width="{max(1, x(median) - left):.1f}" height="{step - 7}" fill="{"#2b6cb0" if ours else "#a0aec0"}"/>')
        out.append(f'<path d="M{x(low):.1f} {y + 9.5}H{x(high):.1f}" stroke="#1a202c"/><text x="{x(high) + 6:.1f}" y="{y + 13}" font-size="11">{number(median)}</text>')
    return "\n".join(out) + "\n</svg>\n"


def plots(part, result):
    """One file for each unit that has two bars or more."""
    units = {}
    for row in result["figures"]:
        units.setdefault(row["unit"], []).append((row["name"], row["low"], row["median"], row["high"]))
    for unit, rows in units.items():
        if len(rows) > 1:
            yield f"{part}-{re.sub('[^a-z]+', '-', unit.lower()).strip('-')}.svg", bars(TITLES.get(part, part), unit, rows)


def write(results):
    """Parts that were not measured this time keep what they have."""
    file, folder = HERE / "results.json", HERE / "plots"
    old = json.loads(file.read_text()) if file.exists() else {"parts": {}}
    for result in results["parts"].values():
        result["machine"], result["small"], result["repeats"] = results["machine"], results["small"], results["repeats"]
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
        text.append(f"{machine['date']}, {machine['processors']} processors ({machine['model']}), load {machine['load_before']} at the start and {machine.get('load_after', '?')} at the end, PostgreSQL {machine['postgresql']}, "
                    f"{machine['build']} build, {result['repeats']} repeats{', --small' if result['small'] else ''}.\n")
        for name, svg in plots(part, result):
            (folder / name).write_text(svg)
            text.append(f"![{name.removesuffix('.svg')}](plots/{name})\n")
    readme = HERE / "README.md"
    before, rest = readme.read_text().split("<!-- table -->")
    readme.write_text(before + "<!-- table -->\n" + "\n".join(text) + "<!-- end -->" + rest.split("<!-- end -->")[1])
