"""Hosts as network namespaces, each with a veth interface on a common bridge. Needs root."""

import os
import subprocess


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def why_not():
    """Why there can be no namespaces here; empty: there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    name = f"dptf{os.getpid()}"
    try:
        ip("netns", "add", name)
        ip("-n", name, "link", "add", "v0", "type", "veth", "peer", "name", "v1")
        ip("-n", name, "link", "add", "b0", "type", "bridge")
    except FileNotFoundError:
        return "network namespaces need the program ip (iproute2)"
    except subprocess.CalledProcessError as e:
        return f"{' '.join(e.cmd)}: {e.stderr.strip()}"
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return ""


class Network:
    """Host k has the address 10.77.0.(k + 1), in a namespace that does not outlive this object's close()."""

    def __init__(self, hosts):
        self.hosts = hosts
        self._prefix = f"dptf{os.getpid()}"
        self._switch = f"{self._prefix}-switch"
        try:
            ip("netns", "add", self._switch)
            ip("-n", self._switch, "link", "add", "bridge", "type", "bridge")
            ip("-n", self._switch, "link", "set", "bridge", "up")
            for host in range(hosts):
                self._add(host)
        except BaseException:
            self.close()
            raise

    def _add(self, host):
        name = self.name(host)
        ip("netns", "add", name)
        ip("-n", name, "link", "set", "lo", "up")
        ip("-n", self._switch, "link", "add", self._port(host), "type", "veth", "peer", "name", "net", "netns", name)
        ip("-n", self._switch, "link", "set", self._port(host), "master", "bridge", "up")
        ip("-n", name, "address", "add", f"{self.address(host)}/24", "dev", "net")
        ip("-n", name, "link", "set", "net", "up")

    def name(self, host):
        return f"{self._prefix}-{host}"

    def address(self, host):
        return f"10.77.0.{host + 1}"

    def _port(self, host):
        return f"port{host}"

    def cut(self, host):
        """Like a cable that is pulled out."""
        ip("-n", self._switch, "link", "set", self._port(host), "down")

    def lose_data(self, host, port):
        """Drops all that the host sends, but for connections from or to this port."""
        name = self.name(host)
        for number, end in ((10, "sport"), (11, "dport")):
            ip("-n", name, "rule", "add", "pref", str(number), "ipproto", "tcp", end, str(port), "lookup", "main")
        ip("-n", name, "rule", "add", "pref", "12", "to", "10.77.0.0/24", "blackhole")

    def slow_down(self, host, kbit):
        ip("netns", "exec", self._switch, "tc", "qdisc", "replace", "dev", self._port(host), "root", "tbf",
           "rate", f"{kbit}kbit", "burst", "2000", "latency", "2000ms")

    def repair(self):
        for host in range(self.hosts):
            for number in (10, 11, 12):
                subprocess.run(["ip", "-n", self.name(host), "rule", "del", "pref", str(number)],
                               capture_output=True, check=False)
            subprocess.run(["ip", "netns", "exec", self._switch, "tc", "qdisc", "del", "dev", self._port(host), "root"],
                           capture_output=True, check=False)
            ip("-n", self._switch, "link", "set", self._port(host), "up")

    def close(self):
        for name in (*(self.name(host) for host in range(self.hosts)), self._switch):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
