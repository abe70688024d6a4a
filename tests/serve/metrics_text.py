"""What every /metrics must be."""

import re
import shutil
import subprocess


def check_metrics(case, text):
    """As Prometheus wants names, units, labels and types; with promtool's own eyes where it is installed."""
    families, series = {}, set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            case.assertNotIn(name, families, "each family once, its series together")
            families[name] = kind
            case.assertRegex(name, r"^(holdfast|process)_[a-z_]+$")
            case.assertEqual(name.endswith("_total"), kind == "counter", name)
            case.assertFalse(re.search(r"_(ms|milliseconds|kilobytes|mb|minutes)(_|$)", name), f"base units: {name}")
        elif not line.startswith("# HELP "):
            match = re.fullmatch(r'([a-z_]+)(\{([a-z_]+="(?:[^"\\]|\\.)*",?)+\})? (NaN|[+-]Inf|[-0-9.e+]+)', line)
            case.assertTrue(match, line)
            family = re.sub(r"_(bucket|sum|count)$", "", match[1]) if match[1] not in families else match[1]
            case.assertEqual(family, list(families)[-1], "below its TYPE")
            case.assertNotIn(match[1] + str(match[2]), series)
            series.add(match[1] + str(match[2]))
    promtool = shutil.which("promtool")
    if promtool:
        done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True)
        case.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))
