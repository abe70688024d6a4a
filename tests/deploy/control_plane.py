#!/usr/bin/env python3
"""A Kubernetes control plane takes what kubectl and helm make of deploy/, and its controllers make the pods.

    tests/deploy/control_plane.py

Starts etcd, kube-apiserver and kube-controller-manager on loopback. There is no kubelet: no container runs. The
namespaces enforce the Pod Security Standard "restricted", so a pod that asks for more is refused.

Programs: etcd, kube-apiserver, kube-controller-manager, kubectl and helm, of the PATH or of HOLDFAST_ETCD,
HOLDFAST_KUBE_APISERVER, HOLDFAST_KUBE_CONTROLLER_MANAGER, HOLDFAST_KUBECTL and HOLDFAST_HELM. Exit 77: one is missing.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from harness.wait import Failure, end_in_order, free_port, until  # noqa: E402

DEPLOY = ROOT / "deploy"
README = DEPLOY / "README.md"
NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl", "helm")
PROGRAMS = {name: os.environ.get(f"HOLDFAST_{name.upper().replace('-', '_')}") or shutil.which(name) for name in NAMES}
TOKEN = "of-this-test-alone"
PASSWORDS = ("database_password", "worker_password", "operator_password", "page_password")
PODS = {"migrate": 1, "runner": 2, "serve": 1, "worker": 1}


def run(*command, status=0, **options):
    """What a program prints, its complaints first. Fails when its status is another."""
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=120, check=False, **options
    )
    if done.returncode != status:
        raise Failure(f"{command}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stderr + done.stdout


class ControlPlane:
    """The servers of one test, in a directory. close() ends them."""

    def __init__(self, directory):
        self.directory = directory
        self.processes = []
        ports = {name: free_port() for name in ("etcd", "peers", "api", "controllers")}
        self.server = f"https://127.0.0.1:{ports['api']}"
        self.environment = {**os.environ, "KUBECONFIG": str(directory / "kubeconfig"), "HOME": str(directory)}
        try:
            self._write_files()
            etcd = f"http://127.0.0.1:{ports['etcd']}"
            peers = f"http://127.0.0.1:{ports['peers']}"
            self._start(
                "etcd",
                *("--data-dir", directory / "etcd", "--listen-client-urls", etcd, "--advertise-client-urls", etcd),
                *("--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers),
                *("--initial-cluster", f"default={peers}"),
            )
            self._start(
                "kube-apiserver",
                *(f"--etcd-servers={etcd}", f"--secure-port={ports['api']}", f"--cert-dir={directory}/certificates"),
                *("--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none"),
                *("--service-cluster-ip-range=10.96.0.0/16", f"--token-auth-file={directory}/tokens"),
                *("--service-account-issuer=https://kubernetes.default.svc", "--authorization-mode=RBAC"),
                *(f"--service-account-key-file={directory}/key", f"--service-account-signing-key-file={directory}/key"),
            )
            self._wait_for("the API server", lambda: self.asked("get", "--raw", "/readyz") == "ok")
            self._start(
                "kube-controller-manager",
                *(f"--kubeconfig={directory}/kubeconfig", f"--service-account-private-key-file={directory}/key"),
                *("--bind-address=127.0.0.1", f"--secure-port={ports['controllers']}", "--leader-elect=false"),
                *(f"--cert-dir={directory}/certificates", "--controllers=*"),
            )
        except BaseException:
            self.close()
            raise

    def _write_files(self):
        run("openssl", "genrsa", "-out", self.directory / "key", "2048")
        (self.directory / "tokens").write_text(f'{TOKEN},admin,admin,"system:masters"\n')
        server = {"server": self.server, "insecure-skip-tls-verify": True}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": server}],
            "users": [{"name": "test", "user": {"token": TOKEN}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        }
        (self.directory / "kubeconfig").write_text(json.dumps(config))

    def _start(self, name, *words):
        command = [PROGRAMS[name], *map(str, words)]
        with (self.directory / f"{name}.log").open("w") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=self.environment)
        self.processes.append((name, process))

    def _wait_for(self, what, condition):
        def ended_or_true():
            for name, process in self.processes:
                if process.poll() is not None:
                    raise Failure(f"{name} ended with {process.returncode}\n{self.log(name)}")
            return condition()

        until(what, ended_or_true, explain=lambda: self.log(self.processes[-1][0]))

    def log(self, name):
        return (self.directory / f"{name}.log").read_text()[-4000:]

    def kubectl(self, *words, **options):
        return run(PROGRAMS["kubectl"], *words, env=self.environment, **options)

    def helm(self, *words, **options):
        return run(PROGRAMS["helm"], *words, env=self.environment, **options)

    def asked(self, *words):
        """What kubectl prints, whatever its status is."""
        command = [PROGRAMS["kubectl"], *words]
        return subprocess.run(command, capture_output=True, text=True, env=self.environment, check=False).stdout

    def got(self, namespace, kinds):
        return json.loads(self.kubectl("-n", namespace, "get", kinds, "-o", "json"))["items"]

    def one(self, namespace, kind, name):
        return json.loads(self.kubectl("-n", namespace, "get", kind, name, "-o", "json"))

    def namespace(self, name):
        """A namespace that refuses pods with more than the standard "restricted", with the secret that users make."""
        self.kubectl("create", "namespace", name)
        self.kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
        literals = [f"--from-literal={key}=test" for key in PASSWORDS]
        self.kubectl("-n", name, "create", "secret", "generic", "holdfast", *literals)

    def close(self):
        for _, process in reversed(self.processes):
            process.terminate()
        for _, process in self.processes:
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Kubernetes(unittest.TestCase):
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory(prefix="holdfast-kubernetes-")
        cls.addClassCleanup(cls.directory.cleanup)
        cls.plane = ControlPlane(pathlib.Path(cls.directory.name))
        cls.addClassCleanup(cls.plane.close)

    def pods(self, namespace):
        """How many pods of each component there are."""
        names = [
            one["metadata"]["labels"].get("app.kubernetes.io/component") for one in self.plane.got(namespace, "pods")
        ]
        return {name: names.count(name) for name in sorted(set(names))}

    def wait_for_pods(self, namespace, expected):
        until(
            f"pods in {namespace}: {expected}",
            lambda: self.pods(namespace) == expected,
            seconds=60,
            explain=lambda: self.plane.kubectl("-n", namespace, "get", "events,pods"),
        )

    def condition(self, namespace, kind, name, wanted):
        found = self.plane.one(namespace, kind, name).get("status", {}).get("conditions", [])
        return next((one for one in found if one["type"] == wanted), None)

    def images(self, namespace):
        made = self.plane.got(namespace, "deployments")
        return {one["spec"]["template"]["spec"]["containers"][0]["image"] for one in made}

    def overlay(self):
        """The overlay that deploy/README.md shows, for this checkout."""
        shown = re.search(r"```yaml\n# kustomization.yaml\nresources: .*\n((?:.*\n)*?)```", README.read_text()).group(1)
        directory = pathlib.Path(self.directory.name) / "overlay"
        directory.mkdir()
        resources = f"resources: [{os.path.relpath(DEPLOY, directory.resolve())}]\n"
        (directory / "kustomization.yaml").write_text(resources + shown)
        return directory

    def test_1_kubectl(self):
        """What deploy/README.md says of `kubectl apply -k`, with an overlay, an upgrade and a removal."""
        plane = self.plane
        plane.namespace("holdfast")
        for words in (["--server-side", "--dry-run=server"], ["--dry-run=server"]):
            said = plane.kubectl("apply", "-k", DEPLOY, *words)
            self.assertNotIn("Warning", said)
        plane.kubectl("apply", "-k", DEPLOY)
        self.wait_for_pods("holdfast", PODS)

        # Nothing differs; kubectl sends the selectors of disruption budgets all the same.
        again = plane.kubectl("apply", "-k", DEPLOY).splitlines()
        changed = [line for line in again if not line.endswith(" unchanged")]
        self.assertEqual([line for line in changed if not line.startswith("poddisruptionbudget")], [])

        for name, expected in (("worker", 1), ("runner", 2)):
            until(
                f"the disruption budget of {name} knows its pods",
                lambda name=name, expected=expected: (
                    plane.one("holdfast", "pdb", name)["status"]["expectedPods"] == expected
                ),
            )
        # No adapter serves the metric here. The autoscaler has found what it scales, and says what it lacks.
        active = until(
            "the autoscaler has looked for its metric",
            lambda: self.condition("holdfast", "hpa", "worker", "ScalingActive"),
        )
        self.assertEqual(active["reason"], "FailedGetExternalMetric")
        self.assertIn("holdfast_queue_depth", active["message"])
        self.assertEqual(self.condition("holdfast", "hpa", "worker", "AbleToScale")["status"], "True")

        overlay = self.overlay()
        said = plane.kubectl("apply", "-k", overlay, status=1)
        self.assertIn("field is immutable", said)  # the job's template, and nothing else
        self.assertEqual(said.count("is invalid"), 1, said)
        plane.kubectl("-n", "holdfast", "delete", "job", "migrate")
        plane.kubectl("apply", "-k", overlay)
        self.assertEqual(self.images("holdfast"), {"registry.example.org/holdfast:0.1.0"})
        self.assertEqual(plane.one("holdfast", "configmap", "holdfast")["data"]["PGHOST"], "holdfast-rw.databases")
        policy = plane.one("holdfast", "networkpolicy", "worker")["spec"]
        self.assertEqual(list(policy["egress"][0]["to"][0]), ["namespaceSelector"])

    def test_2_helm(self):
        plane = self.plane
        plane.namespace("chart")
        said = plane.helm(
            "install", "holdfast", DEPLOY, "-n", "chart", "--set", "image=registry.example.org/holdfast:1"
        )
        self.assertNotIn("Warning", said)
        self.wait_for_pods("chart", PODS)
        self.assertEqual(self.images("chart"), {"registry.example.org/holdfast:1"})

        plane.helm(
            *("upgrade", "holdfast", DEPLOY, "-n", "chart", "--set", "image=registry.example.org/holdfast:2"),
            *("--set-json", 'patches={"Deployment/runner": {"spec": {"replicas": 1}}}'),
            *("--set-json", 'omit=["HorizontalPodAutoscaler/worker"]'),
        )
        self.assertEqual(self.images("chart"), {"registry.example.org/holdfast:2"})
        self.assertEqual(plane.one("chart", "deployment", "runner")["spec"]["replicas"], 1)
        self.assertEqual(plane.got("chart", "hpa"), [])
        jobs = [one["metadata"]["name"] for one in plane.got("chart", "jobs")]
        self.assertEqual(jobs, ["migrate-2"])

        plane.helm("uninstall", "holdfast", "-n", "chart")
        left = [one["metadata"]["name"] for one in plane.got("chart", "deployments,jobs,services,pdb,networkpolicies")]
        self.assertEqual(left, [])
        claims = [one["metadata"]["name"] for one in plane.got("chart", "pvc")]
        self.assertEqual(claims, ["archive"], "helm has removed the archive")


if __name__ == "__main__":
    missing = [name for name, path in PROGRAMS.items() if not path]
    if missing or not shutil.which("openssl"):
        print(f"skipped: missing: {', '.join(missing) or 'openssl'}")
        sys.exit(77)
    end_in_order()
    unittest.main()
