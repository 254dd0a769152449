"""Limits and rhythms, literally, and that a control plane started without settings runs by them."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from chatd import constants
from chatd.faults import delay_s
from chatd.prompt.compaction import default_threshold
from chatd.prompt.truncation import budget_bytes
from chatd.provider.protocol import ModelRequest
from chatd.settings import ChatdSettings

# Spec 8, with the later generation's names; where we do otherwise, ``constants`` says why.
EXPECTED: dict[str, float] = {
    "ACQUIRE_INTERVAL_S": 1,
    "ACQUIRE_BATCH": 10,
    "HEARTBEAT_INTERVAL_S": 60,
    "LEASE_S": 300,
    "RUNNER_SYNC_S": 15,
    "MAX_STEPS": 1200,
    "MAX_RUNNING_CHATS": 100,
    "MAX_RUNNING_AGENTS": 200,
    "MAX_WORKSPACES": 25,
    "MAX_ATTEMPTS": 25,
    "STARTUP_TIMEOUT_S": 60,
    "STREAM_SILENCE_TIMEOUT_S": 600,
    "RETRY_INITIAL_S": 1,
    "RETRY_CAP_S": 60,
    "RETRY_SPREAD": 0.2,
    "MAX_DETAIL_CHARACTERS": 500,
    "MAX_OUTPUT_TOKENS": 32_000,
    "MAX_TOOLS": 128,
    "UNKNOWN_WINDOW_BYTES": 64 * 2**10,
    "MIN_BUDGET_BYTES": 16 * 2**10,
    "THRESHOLD": 70,
    "LARGE_THRESHOLD": 30,
    "LARGE_WINDOW_TOKENS": 500_000,
    "WAIT_AGENT_S": 300,
    "WAIT_AGENT_POLL_S": 5,
    "WAIT_AGENT_BLIND_S": 0.2,
    "AGENTS_PAGE": 10,
    "AGENTS_PAGE_MAX": 50,
    "RECORDING_STOP_S": 90,
    "MAX_REENTRIES": 3,
    "REQUIRES_ACTION_S": 300,
    "MAX_QUEUED": 20,
    "TITLE_WORDS": 6,
    "TITLE_CHARACTERS": 80,
    "MAX_TITLE_WORDS": 8,
    "TITLE_SAMPLE_CHARACTERS": 6_000,
    "TITLE_MESSAGE_CHARACTERS": 1_000,
    "TITLE_TOKENS": 256,
    "TITLE_S": 30,
    "MAX_BODY_BYTES": 8 * 2**20,
    "MAX_LABELS": 50,
    "MAX_LABEL_KEY_BYTES": 64,
    "MAX_LABEL_VALUE_BYTES": 256,
    "MAX_DYNAMIC_TOOLS": 250,
    "MAX_FILES": 50,
    "MAX_FILE_BYTES": 10 * 2**20,
    "MAX_FILE_NAME_BYTES": 255,
    "MAX_SYSTEM_PROMPT": 10_000,
    "MAX_DEPLOYMENT_PROMPT_BYTES": 128 * 2**10,
    "UPLOAD_S": 86_400,
    "ANSWER_S": 86_400,
    "AUTO_ARCHIVE_INTERVAL_S": 3600,
    "AUTO_ARCHIVE_BATCH": 1000,
    "MESSAGES_PAGE": 50,
    "MESSAGES_PAGE_MAX": 200,
    "PROMPTS_PAGE": 500,
    "PROMPTS_PAGE_MAX": 2000,
    "CHATS_PAGE": 50,
    "CHATS_PAGE_MAX": 200,
    "MAX_BATCH": 256,
    "MAX_EPISODE_BYTES": 2**20,
    "COALESCE_S": 0.015,
    "SUBSCRIBER_STALL_S": 10,
    "POLL_S": 10,
    "MAX_CLIENT_FRAME_BYTES": 4 * 2**10,
    "HINT_PROBE_S": 10,
    "HINT_SILENCE_S": 30,
    "RESULT_WINDOW_DIVISOR": 2,
    "RESULT_BYTES_PER_TOKEN": 4,
    "REPLICA_INTERVAL_S": 3,
    "REPLICA_TIMEOUT_S": 15,
}


@pytest.mark.past_bug(12)
def test_every_constant_is_what_the_specification_says() -> None:
    """Spec 9, complaint 12: wrong intervals were shipped from an inner package's defaults."""
    assert {name: getattr(constants, name) for name in constants.__all__} == EXPECTED


def test_what_runs_goes_by_them() -> None:
    """Spec 9, complaint 12: the functions that use a limit, not only the module that names it."""
    assert [delay_s(n) for n in (0, 1, 99)] == [constants.RETRY_INITIAL_S, 2, constants.RETRY_CAP_S]
    assert [default_threshold(window) for window in (None, 499_999, 500_000)] == [70, 70, 30]
    assert [budget_bytes(window) for window in (None, 1, 200_000)] == [65_536, 16_384, 400_000]
    assert ModelRequest(model="m", system="", messages=()).max_output_tokens == 32_000


# Limits of other things: an answer of a push service's, the rehearsal model, any request, an upload's body.
OTHERS_OF_THE_NAME = [
    "push/sender.py: ANSWER_S",
    "rehearsal/engine.py: MAX_BODY_BYTES",
    "rehearsal/language.py: MAX_STEPS",
    "routes/bounds.py: MAX_BODY_BYTES",
    "routes/files.py: UPLOAD_S",
]
MODULES_DIR = Path(constants.__file__).parent


def test_every_constant_is_used_and_none_has_a_second_value() -> None:
    """Spec 9, complaint 12: a limit that is named here and applied from elsewhere is none."""
    used: Counter[str] = Counter()
    redefined = []
    for path in sorted(MODULES_DIR.rglob("*.py")):
        if path.name == "constants.py":
            continue
        tree = ast.parse(path.read_text())
        imported = {
            alias.name: alias.asname or alias.name
            for node in tree.body
            if isinstance(node, ast.ImportFrom) and node.module == "chatd.constants"
            for alias in node.names
        }
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        loaded = {node.id for node in names if isinstance(node.ctx, ast.Load)}
        used.update(name for name, alias in imported.items() if alias in loaded)
        stored = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        within = path.relative_to(MODULES_DIR)
        redefined += [f"{within}: {name}" for name in stored & EXPECTED.keys()]

    assert set(EXPECTED) == set(used)
    assert redefined == OTHERS_OF_THE_NAME


@pytest.mark.parametrize(
    ("name", "constant"),
    [
        ("startup_timeout_s", "STARTUP_TIMEOUT_S"),
        ("stream_silence_timeout_s", "STREAM_SILENCE_TIMEOUT_S"),
        ("wait_agent_timeout_s", "WAIT_AGENT_S"),
    ],
)
def test_settings_called_otherwise_begin_with_them(name: str, constant: str, tmp_path: Path) -> None:
    """Spec 9, complaint 12."""
    assert getattr(ChatdSettings(data_dir=tmp_path), name) == getattr(constants, constant)


@pytest.mark.parametrize(
    "name",
    [
        "acquire_interval_s",
        "acquire_batch",
        "heartbeat_interval_s",
        "lease_s",
        "max_steps",
        "max_attempts",
        "max_running_chats",
        "max_running_agents",
        "replica_interval_s",
        "replica_timeout_s",
    ],
)
def test_settings_begin_with_them(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spec 9, complaint 12: one place, and what runs comes from it."""
    monkeypatch.delenv(f"CHATD_{name.upper()}", raising=False)

    assert getattr(ChatdSettings(data_dir=tmp_path), name) == getattr(constants, name.upper())
