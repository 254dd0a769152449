"""What goes wrong in a cluster, one thing after the other, and how it is put right again."""

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable

from tests.support.cluster.members import AgentProcess, Replica
from tests.support.cluster.postgres_pair import PostgresPair
from tests.support.cluster.proxy import CutProxy

__all__ = ["Chaos"]

# Its name, what does it (and whether it could), and how often it comes beside the others.
Action = tuple[str, Callable[[], Awaitable[bool]], int]
PROMOTED = "standby promoted"


class Chaos:
    """
    Does one thing at a time, drawn by *rng*: first each kind once, in a mixed order, then by weight.

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
        # What this cluster can suffer.
        self.kinds = {name for name, _, _ in self._actions()}
        if self.postgres.standby is not None:
            self.kinds.add(PROMOTED)

    async def run(self, seconds: float, pause_s: tuple[float, float]) -> None:
        """Until *seconds* are over; a standby takes over once, after 70 % of them."""
        loop = asyncio.get_running_loop()
        begin = loop.time()
        while (now := loop.time() - begin) < seconds:
            await asyncio.sleep(self.rng.uniform(*pause_s))
            if self.postgres.standby is not None and now > 0.7 * seconds:
                await self._do(PROMOTED, self.fail_over)
            actions = self._actions()
            # One that could not be done just now is tried again soon, among the others that are left.
            left = [one for one in actions if not self.done[one[0]]] or actions
            name, action, _ = self.rng.choices(left, [weight for _, _, weight in left])[0]
            await self._do(name, action)

    async def _do(self, name: str, action: Callable[[], Awaitable[bool]]) -> None:
        if await action():
            self.done[name] += 1

    def _actions(self) -> list[Action]:
        actions: list[Action] = [
            ("replica killed", self.kill_replica, 5),
            ("replica stopped in order", self.stop_replica, 3),
            ("replica frozen", self.freeze_replica, 2),
            ("workspace killed", self.kill_agent, 5),
            ("PostgreSQL killed", self.kill_postgres, 2),
            ("way to PostgreSQL cut", self.cut_database, 3),
            ("way to PostgreSQL a hole", self.hole_database, 2),
            ("way between replicas cut", self.cut_peers, 3),
            ("way between replicas a hole", self.hole_peers, 2),
            ("way of workspaces cut", self.cut_workspaces, 3),
            ("way of workspaces a hole", self.hole_workspaces, 2),
            ("commits slow", self.slow_commits, 2),
        ]
        if any(replica.has_fake_clock for replica in self.replicas):
            actions.append(("clock set wrong", self.step_clock, 3))
        if self._can_fill_disk:
            actions.append(("disk full", self.fill_disk, 1))
        if self.postgres.standby is not None:
            actions.append(("commits hang", self.hang_commits, 2))
        return actions

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

    async def _cut(self, proxy: CutProxy) -> bool:
        proxy.cut(down=True)
        await self._pause(0, 5)
        proxy.mend()
        return True

    async def _hole(self, proxy: CutProxy) -> bool:
        proxy.hole()
        await self._pause(2, 12)
        proxy.mend()
        return True

    async def cut_database(self) -> bool:
        """Connections of one replica end; for a while there are no new ones."""
        return await self._cut(self.rng.choice(self.replicas).database)

    async def hole_database(self) -> bool:
        """What one replica and PostgreSQL say is swallowed."""
        return await self._hole(self.rng.choice(self.replicas).database)

    async def cut_peers(self) -> bool:
        """Others' connections to one replica end."""
        return await self._cut(self.rng.choice(self.replicas).peers)

    async def hole_peers(self) -> bool:
        """What others say to one replica is swallowed."""
        return await self._hole(self.rng.choice(self.replicas).peers)

    async def cut_workspaces(self) -> bool:
        """Links of workspaces to one replica end; they go to another, or come back."""
        return await self._cut(self.rng.choice(self.replicas).workspaces)

    async def hole_workspaces(self) -> bool:
        """What one replica and its workspaces say is swallowed."""
        return await self._hole(self.rng.choice(self.replicas).workspaces)

    async def step_clock(self) -> bool:
        """The wall clock of a machine that has a false one jumps by up to a day, forth or back."""
        replica = self.rng.choice([replica for replica in self.replicas if replica.has_fake_clock])
        return replica.step_clock(self.rng.choice([-86_400, -3_600, -400, 0, 400, 3_600, 86_400]))

    async def fill_disk(self) -> bool:
        """PostgreSQL's disk has no room; then it has, and PostgreSQL is started should it have ended."""
        await asyncio.to_thread(self.postgres.fill_disk)
        await self._pause(3, 8)
        self.postgres.free_disk()
        await self.postgres.primary.ready()
        return True

    async def slow_commits(self) -> bool:
        """Every commit takes a tenth of a second longer, as where the disk takes that to sync."""
        await asyncio.to_thread(self.postgres.delay_commits, 0.1)
        await self._pause(3, 12)
        await asyncio.to_thread(self.postgres.delay_commits, 0)
        return True

    async def hang_commits(self) -> bool:
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
