"""Desktops at three sizes, and a table of medians, p99 and ratios to ours."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bench.desk import SIZES, Desk


@pytest.fixture(scope="module", params=SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    """A realistic desktop."""
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        desk = Desk(Path(directory), request.param)
        yield desk
        desk.close()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print what the plug-in's own table does not have: p99, and how many times ours each peer takes."""
    session = getattr(config, "_benchmarksession", None)
    groups: dict[str, list[Any]] = {}
    for bench in session.benchmarks if session is not None else ():
        if bench and bench.stats.data:
            groups.setdefault(bench.group or bench.name, []).append(bench)
    for group, benches in sorted(groups.items()):
        ours = next((bench for bench in benches if "ours" in bench.name), benches[0])
        terminalreporter.write_line(f"\n{group:<60} {'median ms':>10} {'p99 ms':>10} {'x ours':>8}")
        for bench in sorted(benches, key=lambda bench: bench.stats.median):
            data = sorted(bench.stats.data)
            name = bench.name.removeprefix("test_").split("[")[0].replace("_", " ")
            p99 = data[min(len(data) - 1, int(len(data) * 0.99))]
            ratio = bench.stats.median / ours.stats.median
            note = " ".join(f"{key}={value}" for key, value in bench.extra_info.items())
            terminalreporter.write_line(
                f"  {name:<58} {bench.stats.median * 1e3:>10.2f} {p99 * 1e3:>10.2f} {ratio:>8.1f}  {note}"
            )
