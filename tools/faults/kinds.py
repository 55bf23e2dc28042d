"""What can happen to a run on several hosts, and what must follow."""

import dataclasses
import signal
import time

from proxy import Proxy, Strangers

# Seconds from the fault to the end of every rank that is left: a connection that closes is noticed at once, where the
# machine is busy within some seconds; silence after 15 s, and then connections are given 2 s to end in order.
AT_ONCE_S, SILENCE_S = 5, 17


@dataclasses.dataclass
class Effect:
    """What a fault did."""
    text: str
    killed: tuple = ()  # ranks that ended by it
    stopped: tuple = ()  # ranks that are suspended
    names: tuple = ()  # messages on other hosts name one of these: "host 1", "rank 3 "
    limit_s: float = AT_ONCE_S
    ends: bool = True  # whether the run ends


class Kind:
    """A fault. inject() applies it to a running cluster; repair() undoes what outlives the run."""
    name = ""
    words = ()  # of the command line
    hosts = 2  # at least
    ranks_of_host = 1  # of some host, at least
    on_network = False  # hosts are network namespaces
    seconds = 0  # that the undisturbed run takes at least

    def proxy_of(self):  # a function from host 0's port to a proxy; None: there is none
        return None

    def inject(self, cluster, random):
        raise NotImplementedError

    def repair(self, cluster):
        pass


def kill(ranks, number=signal.SIGKILL):
    for r in ranks:
        r.process.send_signal(number)


def told_of(ranks):
    return tuple(f"rank {r.number} " for r in ranks)


class KillRank(Kind):
    name = "kill a rank that leads no host"
    ranks_of_host = 2

    def inject(self, cluster, random):
        rank = random.choice([r for r in cluster.ranks if r.local > 0])
        kill([rank])
        return Effect(f"{rank} killed", killed=(rank,), names=told_of([rank]))


class KillLeader(Kind):
    name = "kill the leader of a host"

    def inject(self, cluster, random):
        rank = random.choice([r for r in cluster.ranks if r.local == 0 and r.host > 0])
        kill([rank])
        return Effect(f"{rank}, its leader, killed", killed=(rank,), names=told_of([rank]))


class KillHost0(Kind):
    name = "kill rank 0"

    def inject(self, cluster, random):
        kill(cluster.ranks[:1])
        return Effect("rank 0 killed", killed=(cluster.ranks[0],), names=told_of(cluster.ranks[:1]))


class KillHost(Kind):
    name = "kill all ranks of a host"

    def inject(self, cluster, random):
        host = random.randrange(len(cluster.layout))
        ranks = cluster.of_host(host)
        kill(ranks)
        return Effect(f"all ranks of host {host} killed", killed=tuple(ranks), names=told_of(ranks))


class StopRank(Kind):
    name = "suspend a rank"

    def inject(self, cluster, random):
        rank = random.choice(cluster.ranks)
        kill([rank], signal.SIGSTOP)
        return Effect(f"{rank} suspended", stopped=(rank,), names=told_of([rank]), limit_s=SILENCE_S)


class WithProxy(Kind):
    proxy_type = Proxy

    def __init__(self):
        self.proxy = None

    def proxy_of(self):
        def make(port):
            self.proxy = self.proxy_type(port)
            return self.proxy
        return make

    def repair(self, cluster):
        self.proxy.stop()


class CloseControl(WithProxy):
    name = "close a control connection"

    def inject(self, cluster, random):
        host, reset = random.randrange(1, len(cluster.layout)), random.random() < 0.5
        self.proxy.close(host, reset)
        return Effect(f"control connection of host {host} closed by {'RST' if reset else 'FIN'}",
                      names=(f"host {host} ", "host 0 "))


class HoldControl(WithProxy):
    name = "withhold a control connection"
    seconds = 22  # training goes on until the hosts are silent for too long

    def inject(self, cluster, random):
        host = random.randrange(1, len(cluster.layout))
        self.proxy.hold(host)
        return Effect(f"control connection of host {host} passes nothing on", names=(f"host {host} ", "host 0 "),
                      limit_s=SILENCE_S)


class DelayControl(WithProxy):
    name = "delay control connections"

    def inject(self, cluster, random):
        seconds = random.uniform(0.1, 2)
        self.proxy.delay(seconds)
        return Effect(f"control connections take {seconds:.1f} s", ends=False)


class Flood(WithProxy):
    name = "flood the port of host 0 while hosts connect"
    proxy_type = Strangers

    def inject(self, cluster, random):
        assert self.proxy.connections > 0, "no stranger has connected"
        return Effect(f"{self.proxy.connections} connections of strangers", ends=False)


class OnNetwork(Kind):
    on_network = True

    def repair(self, cluster):
        cluster.network.repair()


class CutLink(OnNetwork):
    name = "cut a host's link"

    def inject(self, cluster, random):
        host = random.randrange(len(cluster.layout))
        cluster.network.cut(host)
        return Effect(f"link of host {host} cut", names=tuple(f"host {h} " for h in range(len(cluster.layout))),
                      limit_s=SILENCE_S)


class LoseData(OnNetwork):
    name = "lose a host's data, but not its control connection"
    timeout_s = 6
    words = (f"parallel={{ddp: {{timeout: {timeout_s}}}}}",)

    def inject(self, cluster, random):
        host = random.randrange(len(cluster.layout))
        cluster.network.lose_data(host, cluster.port)
        return Effect(f"data of host {host} lost", names=tuple(f"host {h} " for h in range(len(cluster.layout))),
                      limit_s=self.timeout_s + AT_ONCE_S)


class SlowLink(OnNetwork):
    name = "slow down a host's link"

    def inject(self, cluster, random):
        host, kbit, seconds = random.randrange(len(cluster.layout)), random.choice((50, 500, 2000)), 4
        cluster.network.slow_down(host, kbit)
        time.sleep(seconds)
        cluster.network.repair()
        return Effect(f"link of host {host} has {kbit} kbit/s for {seconds} s", ends=False)


# With their shares of 100. Silence takes 15 s each.
KINDS = {KillRank: 16, KillLeader: 16, KillHost0: 10, KillHost: 15, CloseControl: 14, DelayControl: 4, LoseData: 5,
         SlowLink: 3, StopRank: 7, CutLink: 5, HoldControl: 3, Flood: 2}
