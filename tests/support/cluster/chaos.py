"""What goes wrong in a cluster, one thing after the other, and how it is put right again."""

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable

from tests.support.cluster.members import AgentProcess, Replica
from tests.support.cluster.postgres_pair import PostgresPair

__all__ = ["Chaos"]


class Chaos:
    """
    Does one thing at a time, drawn by *rng*.

    Members are kept up by others (``keep_up``); what is only disturbed is put right here. *scale* makes
    disturbances shorter.
    """

    def __init__(
        self,
        replicas: list[Replica],
        agents: list[AgentProcess],
        postgres: PostgresPair,
        rng: random.Random,
        *,
        scale: float,
    ) -> None:
        self._scale = scale
        self.replicas, self.agents, self.postgres, self.rng = replicas, agents, postgres, rng
        self.done: Counter[str] = Counter()
        self._can_fill_disk = bool(postgres._disk_mb)

    async def run(self, seconds: float, pause_s: tuple[float, float], *, fails_over: bool) -> None:
        """Until *seconds* are over; *fails_over*: the standby takes over once, after 70 % of them."""
        loop = asyncio.get_running_loop()
        begin = loop.time()
        while (now := loop.time() - begin) < seconds:
            await asyncio.sleep(self.rng.uniform(*pause_s))
            if fails_over and now > 0.7 * seconds:
                fails_over = False
                await self._do("standby promoted", self.fail_over)
            weights = [weight for _, _, weight in self._actions()]
            name, action, _ = self.rng.choices(self._actions(), weights)[0]
            await self._do(name, action)

    async def _do(self, name: str, action: Callable[[], Awaitable[bool]]) -> None:
        if await action():
            self.done[name] += 1

    def _actions(self) -> list[tuple[str, Callable[[], Awaitable[bool]], int]]:
        return [
            ("replica killed", self.kill_replica, 5),
            ("replica stopped in order", self.stop_replica, 3),
            ("replica frozen", self.freeze_replica, 2),
            ("workspace killed", self.kill_agent, 5),
            ("PostgreSQL killed", self.kill_postgres, 2),
            ("way to PostgreSQL cut", self.cut_database, 3),
            ("way to PostgreSQL a hole", self.hole_database, 2),
            ("way between replicas cut", self.cut_peers, 3),
            ("way between replicas a hole", self.hole_peers, 2),
            ("clock set wrong", self.step_clock, 3),
            ("disk full", self.fill_disk, 1),
            ("commits slow", self.slow_commits, 2),
        ]

    async def _pause(self, shortest: float, longest: float) -> None:
        await asyncio.sleep(self._scale * self.rng.uniform(shortest, longest))

    def _up(self) -> list[Replica]:
        return [replica for replica in self.replicas if replica.is_up]

    async def kill_replica(self) -> bool:
        """SIGKILL; one at least stays."""
        up = self._up()
        if len(up) < 2:
            return False
        await self.rng.choice(up).end()
        return True

    async def stop_replica(self) -> bool:
        """SIGTERM, as an upgrade does."""
        up = self._up()
        if len(up) < 2:
            return False
        await self.rng.choice(up).end(signal.SIGTERM)
        return True

    async def freeze_replica(self) -> bool:
        """Asleep for longer than the others' patience; then it goes on as if nothing were."""
        up = self._up()
        if len(up) < 2:
            return False
        process = self.rng.choice(up).process
        assert process is not None
        process.send_signal(signal.SIGSTOP)
        await self._pause(2, 22)
        process.send_signal(signal.SIGCONT)
        return True

    async def kill_agent(self) -> bool:
        """Some workspaces' daemons."""
        for agent in self.rng.sample(self.agents, min(len(self.agents), self.rng.randint(1, 3))):
            await agent.kill()
        return True

    async def kill_postgres(self) -> bool:
        """SIGKILL, and a start some time later."""
        node = self.postgres.primary
        await asyncio.to_thread(node.kill)
        await self._pause(0, 3)
        await node.ready()
        return True

    async def cut_database(self) -> bool:
        """Connections of one replica end; for a while there are no new ones."""
        proxy = self.rng.choice(self.replicas).database
        proxy.cut(down=True)
        await self._pause(0, 5)
        proxy.mend()
        return True

    async def hole_database(self) -> bool:
        """What one replica and PostgreSQL say is swallowed."""
        proxy = self.rng.choice(self.replicas).database
        proxy.hole()
        await self._pause(2, 12)
        proxy.mend()
        return True

    async def cut_peers(self) -> bool:
        """Others' connections to one replica end."""
        proxy = self.rng.choice(self.replicas).peers
        proxy.cut(down=True)
        await self._pause(0, 5)
        proxy.mend()
        return True

    async def hole_peers(self) -> bool:
        """What others say to one replica is swallowed."""
        proxy = self.rng.choice(self.replicas).peers
        proxy.hole()
        await self._pause(2, 12)
        proxy.mend()
        return True

    async def step_clock(self) -> bool:
        """One machine's wall clock jumps by up to a day, forth or back."""
        replica = self.rng.choice(self.replicas)
        return replica.step_clock(self.rng.choice([-86_400, -3_600, -400, 0, 400, 3_600, 86_400]))

    async def fill_disk(self) -> bool:
        """PostgreSQL's disk has no room; then it has, and PostgreSQL is started should it have ended."""
        if not self._can_fill_disk:
            return False
        await asyncio.to_thread(self.postgres.fill_disk)
        await self._pause(3, 8)
        self.postgres.free_disk()
        await self.postgres.primary.ready()
        return True

    async def slow_commits(self) -> bool:
        """The standby sleeps, so no commit is acknowledged: as on a disk that hangs."""
        node = self.postgres.standby
        if node is None or not node.is_alive:
            return False
        node.signal_all(signal.SIGSTOP)
        await self._pause(2, 8)
        node.signal_all(signal.SIGCONT)
        return True

    async def fail_over(self) -> bool:
        """The primary is gone for good; whoever asked it is led to the standby."""
        if self.postgres.standby is None:
            return False
        await self.postgres.promote()
        for replica in self.replicas:
            replica.database.target = self.postgres.primary.port
            replica.database.cut()
        await self.postgres.primary.ready()
        return True
