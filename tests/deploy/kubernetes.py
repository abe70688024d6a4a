#!/usr/bin/env python3
"""kubectl and helm make the same objects of deploy/, and values of the chart arrive where they belong.

    tests/deploy/kubernetes.py

Programs: kubectl and helm, of the PATH or of HOLDFAST_KUBECTL and HOLDFAST_HELM. Exit 77: one of them is missing, or
the module yaml.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import unittest

try:
    import yaml
except ImportError:
    yaml = None

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
KUBECTL = os.environ.get("HOLDFAST_KUBECTL") or shutil.which("kubectl")
HELM = os.environ.get("HOLDFAST_HELM") or shutil.which("helm")


def objects(*command):
    """What a program prints, by kind and name."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.stderr}")
    return {f"{one['kind']}/{one['metadata']['name']}": one for one in yaml.safe_load_all(done.stdout) if one}


def chart(*words):
    return objects(HELM, "template", "holdfast", str(DEPLOY), "--namespace", "holdfast", *words)


def comparable(one):
    """Without what differs on purpose: the namespace, which helm says apart, and suffixes of names."""

    def strip(value):
        if isinstance(value, dict):
            return {key: strip(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [strip(inner) for inner in value]
        if isinstance(value, str) and value.startswith("logins-"):
            return "logins"
        return value

    stripped = strip(one)
    stripped["metadata"].pop("namespace", None)
    stripped["metadata"]["name"] = stripped["metadata"]["name"].removesuffix("-1")
    return stripped


def without_empty(value):
    if isinstance(value, dict):
        kept = {key: without_empty(inner) for key, inner in value.items()}
        return {key: inner for key, inner in kept.items() if inner not in ({}, None)}
    if isinstance(value, list):
        return [without_empty(inner) for inner in value]
    return value


class Chart(unittest.TestCase):
    maxDiff = 4000

    def test_the_chart_makes_what_kustomize_makes(self):
        of_kubectl = [without_empty(comparable(one)) for one in objects(KUBECTL, "kustomize", str(DEPLOY)).values()]
        of_helm = [without_empty(comparable(one)) for one in chart().values()]

        def key(one):
            return one["kind"], one["metadata"]["name"]

        self.assertEqual(sorted(of_helm, key=key), sorted(of_kubectl, key=key))

    def test_workers_reach_a_database_with_its_own_label_alone(self):
        rules = objects(KUBECTL, "kustomize", str(DEPLOY))["NetworkPolicy/worker"]["spec"]["egress"]
        self.assertEqual(rules[0]["to"], [{"podSelector": {"matchLabels": {"app": "postgres"}}}])

    def test_values_arrive(self):
        made = chart(
            *("--set", "image=registry.test/holdfast:1"),
            *("--set", "settings.PGHOST=db.test"),
            *("--set-json", 'patches={"Deployment/runner": {"spec": {"replicas": 1}}}'),
            *("--set-json", 'omit=["HorizontalPodAutoscaler/worker"]'),
        )
        images = {
            container["image"]
            for one in made.values()
            if one["kind"] in ("Deployment", "Job")
            for part in ("containers", "initContainers")
            for container in one["spec"]["template"]["spec"].get(part, [])
        }
        self.assertEqual(images, {"registry.test/holdfast:1", "postgres:17"})
        self.assertEqual(made["ConfigMap/holdfast"]["data"]["PGHOST"], "db.test")
        self.assertEqual(made["ConfigMap/holdfast"]["data"]["HOLDFAST_ARCHIVE_ROOT"], "/archive")
        self.assertEqual(made["Deployment/runner"]["spec"]["replicas"], 1)
        self.assertNotIn("HorizontalPodAutoscaler/worker", made)

    def test_helm_finds_nothing_wrong(self):
        done = subprocess.run([HELM, "lint", "--strict", str(DEPLOY)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    if not KUBECTL or not HELM or not yaml:
        print("skipped: kubectl, helm or the module yaml is missing")
        sys.exit(77)
    unittest.main()
