"""Changes on disk and the pushes that they give."""

import asyncio
import errno
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from asyncinotify import Inotify, Mask, Watch

from context_push import manager
from context_push.discover import Discovery, Interest, discover
from context_push.manager import Timing
from context_push.watch import Watcher, directories_to_watch
from tests.integration.context_push.desk import LIMIT_S, desk
from tests.unit.context_push.tree import plant

SKILL = "---\nname: deploy\n---\n"


def rename_over(path: Path, text: str) -> None:
    """Vim, most editors: write beside it, rename over it."""
    fresh = path.with_name(path.name + "~new")
    fresh.write_text(text)
    fresh.replace(path)


def truncate_and_write(path: Path, text: str) -> None:
    """Nano, shells: the same file, first empty, then in pieces."""
    with path.open("w") as file:
        for piece in (text[:2], text[2:]):
            file.write(piece)
            file.flush()


def delete_and_recreate(path: Path, text: str) -> None:
    """Some editors and tools."""
    path.unlink(missing_ok=True)
    path.write_text(text)


def backup_and_write(path: Path, text: str) -> None:
    """Vim with backupcopy=no: rename the old one away, write a new one, drop the old."""
    backup = path.with_name(path.name + "~")
    path.rename(backup)
    path.write_text(text)
    backup.unlink()


@pytest.mark.parametrize("save", [rename_over, truncate_and_write, delete_and_recreate, backup_and_write])
async def test_every_way_to_save_is_one_push_of_the_final_state(
    tmp_path: Path, save: Callable[[Path, str], None]
) -> None:
    """Spec 5.5: debounced; what an editor does on the way is nobody's business."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "AGENTS.md").write_text("old")
    async with desk(tmp_path) as here:
        first = await here.push()
        save(here.work / "AGENTS.md", "a new text")
        pushes = await here.settled()

    assert first == {"work/AGENTS.md": "old"}
    assert pushes == [{"work/AGENTS.md": "a new text"}]


def git(folder: Path, *arguments: str) -> None:
    """Run git as nobody in particular."""
    identity = ["-c", "user.name=x", "-c", "user.email=x@y", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


async def test_a_checkout_of_a_branch_is_one_push_of_the_final_state(tmp_path: Path) -> None:
    """Issue: files and whole directories come and go; git's lock tells when it is done."""
    work = tmp_path / "work"
    work.mkdir()
    git(work, "init")
    (work / "AGENTS.md").write_text("main")
    (work / "skills" / "deploy").mkdir(parents=True)
    (work / "skills" / "deploy" / "SKILL.md").write_text(SKILL)
    git(work, "add", ".")
    git(work, "commit", "-m", "main")
    git(work, "checkout", "-b", "other")
    shutil.rmtree(work / "skills")
    (work / "AGENTS.md").write_text("other")
    (work / ".agents" / "skills" / "deploy").mkdir(parents=True)
    (work / ".agents" / "skills" / "deploy" / "SKILL.md").write_text(SKILL + "other")
    git(work, "add", ".")
    git(work, "commit", "-m", "other")
    git(work, "checkout", "main")
    async with desk(tmp_path) as here:
        first = await here.push()
        await asyncio.to_thread(git, work, "checkout", "other")
        pushes = await here.settled()
        (work / ".cursorrules").unlink()
        await here.push()
        await asyncio.to_thread(git, work, "checkout", "main")
        back = await here.settled()

    assert first == {"work/AGENTS.md": "main", "work/skills/deploy": SKILL}
    assert pushes == [{"work/AGENTS.md": "other", "work/.agents/skills/deploy": SKILL + "other"}]
    assert back == [first]


async def test_a_checkout_under_way_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: while git holds its index the files are neither old nor new, however long it takes."""
    asked: asyncio.Queue[bool] = asyncio.Queue()
    loop, is_busy = asyncio.get_running_loop(), manager._is_git_busy

    def ask(roots: Sequence[str]) -> bool:
        answer = is_busy(roots)
        loop.call_soon_threadsafe(asked.put_nowait, answer)
        return answer

    monkeypatch.setattr(manager, "_is_git_busy", ask)
    (tmp_path / "work" / ".git").mkdir(parents=True)
    lock = tmp_path / "work" / ".git" / "index.lock"
    async with desk(tmp_path) as here:
        await here.push()
        lock.touch()
        (here.work / "AGENTS.md").write_text("half")
        # Asked only when all is quiet: without the lock this would be pushed now.
        for _ in range(3):
            assert await asked.get()
        assert here.pushes.empty()
        (here.work / "AGENTS.md").write_text("whole")
        lock.unlink()

        assert await here.push() == {"work/AGENTS.md": "whole"}


async def test_missing_directories_are_noticed_when_they_appear(tmp_path: Path) -> None:
    """Spec 5.5: watched at their deepest ancestor that exists, level by level."""
    async with desk(tmp_path, seeds=["~/later/deep"]) as here:
        first = await here.push()
        (tmp_path / "later").mkdir()
        (tmp_path / "later" / "deep").mkdir()
        (tmp_path / "later" / "deep" / "AGENTS.md").write_text("later")
        root = await here.push()
        skill = here.work / ".claude" / "skills" / "deploy"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(SKILL)

        assert (first, root) == ({}, {"later/deep/AGENTS.md": "later"})
        assert (await here.push())["work/.claude/skills/deploy"] == SKILL


async def test_a_root_that_is_replaced_is_watched_again(tmp_path: Path) -> None:
    """Ours: a new directory in an old one's place has another inode, or even the same one."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "AGENTS.md").write_text("1")
    async with desk(tmp_path) as here:
        assert await here.push() == {"work/AGENTS.md": "1"}
        here.work.rename(tmp_path / "away")
        assert await here.push() == {}
        here.work.mkdir()
        (here.work / "AGENTS.md").write_text("2")
        assert await here.push() == {"work/AGENTS.md": "2"}
        shutil.rmtree(here.work)
        assert await here.push() == {}
        (tmp_path / "away").rename(here.work)
        assert await here.push() == {"work/AGENTS.md": "1"}
        (here.work / "AGENTS.md").write_text("3")

        assert await here.push() == {"work/AGENTS.md": "3"}


async def test_a_link_s_target_is_watched(tmp_path: Path) -> None:
    """Ours: the file that counts is where the link leads."""
    (tmp_path / "work" / "docs").mkdir(parents=True)
    (tmp_path / "work" / "docs" / "rules").write_text("old")
    (tmp_path / "work" / "AGENTS.md").symlink_to("docs/rules")
    async with desk(tmp_path) as here:
        assert await here.push() == {"work/docs/rules": "old"}
        (here.work / "docs" / "rules").write_text("new")

        assert await here.push() == {"work/docs/rules": "new"}


async def test_files_beside_a_skill_are_watched(tmp_path: Path) -> None:
    """Ours: they are carried, so a change of theirs is a change."""
    skill = tmp_path / "work" / "skills" / "deploy"
    (skill / "reference").mkdir(parents=True)
    (skill / "SKILL.md").write_text(SKILL)
    async with desk(tmp_path) as here:
        await here.push()
        before = here.manager.snapshot.aggregate_hash
        (skill / "reference" / "one.md").write_text("one")
        await here.push()

        assert here.manager.snapshot.aggregate_hash != before


async def test_what_does_not_matter_is_not_even_told(tmp_path: Path) -> None:
    """Spec 5.5: no self-trigger, and builds beside the instructions cost nothing."""
    plant(tmp_path, {"AGENTS.md": "x", "skills/deploy/SKILL.md": SKILL})
    told: asyncio.Queue[bool] = asyncio.Queue()
    watcher = Watcher(lambda: told.put_nowait((tmp_path / ".agents").exists()))
    watching = asyncio.ensure_future(watcher.run())
    await asyncio.sleep(0)
    watcher.update(discover([str(tmp_path)]).interest, 1)
    for number in range(50):
        (tmp_path / f"output-{number}").write_text("built")
    (tmp_path / "build").mkdir()
    discover([str(tmp_path)])
    (tmp_path / ".agents").mkdir()
    async with asyncio.timeout(LIMIT_S):
        first = await told.get()
    watching.cancel()
    await asyncio.wait({watching})

    assert (first, told.qsize()) == (True, 0)


async def test_an_old_pass_changes_no_watch(tmp_path: Path) -> None:
    """Ours: its interest is that of the past."""
    plant(tmp_path, {"work/AGENTS.md": "x"})
    watcher = Watcher(lambda: None)
    watching = asyncio.ensure_future(watcher.run())
    await asyncio.sleep(0)
    interest = discover([str(tmp_path / "work")]).interest

    assert watcher.update(interest, 2)
    assert not watcher.update(interest, 3)
    assert not watcher.update(Interest(named={str(tmp_path / "new")}), 1)
    assert watcher.update(Interest(named={str(tmp_path / "new")}), 4)
    watching.cancel()
    await asyncio.wait({watching})


class Scarce(Inotify):
    """A kernel with room for a few watches; *room* can be raised."""

    room = 1

    def add_watch(self, path: os.PathLike[str] | bytes | str, mask: Mask) -> Watch:
        """Refuse as the kernel does."""
        if len(self._watches) >= Scarce.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().add_watch(path, mask)


def no_instance() -> Inotify:
    """A kernel that gives no instance."""
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


@pytest.mark.parametrize("open_inotify", [Scarce, no_instance])
async def test_without_inotify_changes_are_found_by_looking_and_that_is_told(
    tmp_path: Path, open_inotify: Callable[[], Inotify]
) -> None:
    """Spec 5.5: degraded, reported, and a look that finds nothing gives no push."""
    async with desk(tmp_path, open_inotify=open_inotify) as here:
        await here.push()
        assert "inotify" in (here.manager.snapshot.error or "")
        await here.scans_reach(here.scans + 3)
        assert here.pushes.empty()
        assert here.manager.snapshot.version == 1
        (here.work / "AGENTS.md").write_text("found")

        assert await here.push() == {"work/AGENTS.md": "found"}


async def test_watching_comes_back_when_there_is_room_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: the error goes with its cause."""
    async with desk(tmp_path, open_inotify=Scarce) as here:
        await here.push()
        monkeypatch.setattr(Scarce, "room", 1000)
        await here.push()

        assert here.manager.snapshot.error is None


async def test_a_late_pass_never_overwrites_a_newer_one(tmp_path: Path) -> None:
    """Spec 5.5: epochs. The old pass has read the old file and is held up until a newer one is published."""
    loop = asyncio.get_running_loop()
    held, release = asyncio.Event(), threading.Event()
    hold = [False]

    def scan(roots: object) -> Discovery:
        found = discover(roots)  # type: ignore[arg-type]
        if hold[0]:
            hold[0] = False
            loop.call_soon_threadsafe(held.set)
            release.wait(LIMIT_S)
        return found

    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "AGENTS.md").write_text("1")
    async with desk(tmp_path, scan=scan) as here:
        await here.push()
        hold[0] = True
        here.manager.touch()
        await held.wait()
        (here.work / "AGENTS.md").write_text("2")
        newer = await here.manager.resync()
        release.set()
        pushes = await here.pushes_until_mark()

    assert here.texts_of(newer.resources) == {"work/AGENTS.md": "2"}
    assert all(push == {"work/AGENTS.md": "2"} for push in pushes)


async def test_a_file_system_that_hangs_is_told_and_leaves_the_rest_alive(tmp_path: Path) -> None:
    """Ours: a pass is bounded; the next one may succeed."""
    release = threading.Event()
    hang = [True]

    def scan(roots: object) -> Discovery:
        if hang[0]:
            hang[0] = False
            release.wait(LIMIT_S)
        return discover(roots)  # type: ignore[arg-type]

    timing = Timing(quiet_s=0.01, poll_s=0.05, recheck_s=0.05, pass_s=0.05)
    async with desk(tmp_path, scan=scan, timing=timing) as here:
        assert await here.push() == {}
        release.set()


async def test_nothing_is_scanned_before_the_workspace_is_ready(tmp_path: Path) -> None:
    """Spec 5.5: version 0 until then, and it is never pushed."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "AGENTS.md").write_text("x")
    async with desk(tmp_path, ready=False) as here:
        snapshot = await here.manager.resync()
        assert (snapshot.version, here.scans, here.pushes.qsize()) == (0, 0, 0)
        here.manager.mark_ready()

        assert await here.push() == {"work/AGENTS.md": "x"}
        assert here.manager.snapshot.version == 1


def test_missing_places_are_watched_at_their_deepest_ancestor(tmp_path: Path) -> None:
    """Spec 5.5."""
    (tmp_path / "a").mkdir()
    interest = Interest(named={f"{tmp_path}/a/b/c/AGENTS.md", f"{tmp_path}/a/x"}, listed={f"{tmp_path}/a"})

    assert directories_to_watch(interest) == {f"{tmp_path}/a", f"{tmp_path}"}
