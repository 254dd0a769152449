"""
Subscribers of one chat, in a process of their own: ``python -m … URL TOKEN CHAT COUNT``.

Prints ``ready`` when all are caught up; then reads until the turn is over, and prints JSON:
tokens delivered, the seconds that took, and how often a fragment was lost, doubled or out
of order. A subscriber that a message overtakes has lost nothing: the message is the text.
"""

import asyncio
import json
import sys
import time
from typing import Any

import aiohttp

# Seconds after which something hangs.
LIMIT_S = 60


class Subscriber:
    """One socket and what came over it."""

    def __init__(self) -> None:
        self.tokens = self.wrong = self.seq = 0
        self.begun = self.ended = 0.0
        self.messages: list[int] = []
        self.role = self.status = ""
        self.text = ""

    def take(self, event: dict[str, Any]) -> None:
        """Count one event."""
        match event["type"]:
            case "message_part":
                now = time.monotonic()
                self.begun = self.begun or now
                self.ended = now
                self.wrong += event["seq"] != self.seq + 1
                self.seq = event["seq"]
                self.text += event["part"].get("text", "")
            case "preview_reset":
                self.tokens += self.text.count("token ")
                self.seq, self.text = 0, ""
            case "message":
                self.wrong += bool(self.messages) and event["message"]["id"] <= self.messages[-1]
                self.messages.append(event["message"]["id"])
                self.role = event["message"]["role"]
            case "status":
                self.status = event["status"]

    @property
    def is_over(self) -> bool:
        """Whether the second turn is (it may come and go between two looks, without a status)."""
        return (self.role, self.status, len(self.messages)) == ("assistant", "waiting", 4)


async def main(url: str, token: str, chat_id: str, count: int) -> None:
    """All of them on one loop."""
    subscribers = [Subscriber() for _ in range(count)]
    caught_up = asyncio.Semaphore(0)
    headers = {"Authorization": f"Bearer {token}"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as http:

        async def follow(subscriber: Subscriber) -> None:
            path = f"{url}/api/experimental/chats/{chat_id}/stream"
            async with http.ws_connect(path, max_msg_size=0) as socket:
                is_first = True
                async for frame in socket:
                    for event in json.loads(frame.data):
                        subscriber.take(event)
                    if is_first:
                        is_first = False
                        caught_up.release()
                    if subscriber.is_over:
                        return

        begun = time.monotonic()
        async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as group:
            for subscriber in subscribers:
                group.create_task(follow(subscriber))
            for _ in subscribers:
                await caught_up.acquire()
            sys.stdout.write(json.dumps({"caught_up_s": time.monotonic() - begun}) + "\n")
            sys.stdout.flush()
    seconds = max(s.ended for s in subscribers) - min(s.begun for s in subscribers)
    answer = {
        "tokens": sum(s.tokens for s in subscribers),
        "seconds": seconds,
        "wrong": sum(s.wrong for s in subscribers),
        "unlike": len({tuple(s.messages) for s in subscribers}) - 1,
    }
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
