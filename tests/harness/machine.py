"""What the kernel lets us do here, and machines made of network namespaces."""

import os
import shutil
import subprocess


def mount_namespaces(of_a_root_worker):
    """Whether hooks can have mounts of their own. Those of a plain worker are in a namespace of users. Those of a root
    worker are not, and so root needs CAP_SYS_ADMIN, which a container that a plain user has started does not have."""
    words = ["unshare", "-m" if of_a_root_worker else "-rm", "true"]
    return subprocess.run(words, stderr=subprocess.DEVNULL).returncode == 0


def can_trace():
    """Whether we may look into the processes of others: CAP_SYS_PTRACE."""
    with open("/proc/self/status", encoding="ascii") as status:
        effective = next(line.split()[1] for line in status if line.startswith("CapEff"))
    return bool(int(effective, 16) >> 19 & 1)


def network_namespaces():
    """Whether machines can be made here: as root, with iproute2, where the kernel lets us."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        return False
    name = f"hfprobe{os.getpid()}"
    if subprocess.run(["ip", "netns", "add", name], stderr=subprocess.DEVNULL).returncode != 0:
        return False
    subprocess.run(["ip", "netns", "del", name], check=True)
    return True


class Machine:
    """A network of its own with one cable to the database's: 10.199.N.1 is the database's end of it."""

    def __init__(self, number):
        self.name = f"hf{os.getpid()}x{number}"
        self.cable = f"hfc{os.getpid() % 100000}x{number}"
        self.address = f"10.199.{number}.1"
        ip = lambda *words: subprocess.run(["ip", *words], check=True)
        ip("netns", "add", self.name)
        ip("link", "add", self.cable, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        ip("addr", "add", f"{self.address}/24", "dev", self.cable)
        ip("link", "set", self.cable, "up")
        ip("-n", self.name, "addr", "add", f"10.199.{number}.2/24", "dev", "eth0")
        for device in ("eth0", "lo"):
            ip("-n", self.name, "link", "set", device, "up")

    def cable_is(self, state):
        subprocess.run(["ip", "link", "set", self.cable, state], check=True)

    def close(self):
        subprocess.run(["ip", "link", "del", self.cable])
        subprocess.run(["ip", "netns", "del", self.name])
