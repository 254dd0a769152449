"""Every parser with anything at all; and with what once broke it, kept in ``inputs``."""

import json
import os
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import TARGETS

INPUTS = Path(__file__).parent / "inputs"
KEPT = sorted(path for path in INPUTS.glob("*/*") if path.is_file())
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "100"))

# Words that parsers know; hypothesis would take long to find them.
WORDS = st.sampled_from(
    [
        line.strip('"')
        for line in (INPUTS.parent / "words.dict").read_text().splitlines()
        if line.startswith('"') and "\\" not in line
    ]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | WORDS
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=25,
)
TEXTS = st.text(max_size=200) | st.lists(
    st.sampled_from(
        ["ctrl", "+", "-", "shift", "F5", "<Alt>", "U+20AC", "Return", " ", "---\n", "name: skill\n", "\n"]
    ),
    max_size=12,
).map("".join)
# The messages of RFB, with numbers that mean something or nothing.
WORD16 = st.sampled_from([0, 1, 2, 8, 255, 65535]) | st.integers(0, 65535)
RECTANGLE = st.tuples(
    WORD16,
    WORD16,
    WORD16,
    WORD16,
    st.sampled_from([0, 1, 6, 16, -223, -224, -239, -307, -308, -312, -314, 7]),
).map(lambda fields: struct.pack(">HHHHi", *fields))
RFB = st.lists(
    st.binary(max_size=40)
    | st.tuples(st.integers(0, 3), st.lists(RECTANGLE, max_size=3)).map(
        lambda update: struct.pack(">BxH", 0, update[0]) + b"".join(update[1])
    )
    | st.integers(0, 255).map(lambda kind: bytes([kind])),
    max_size=6,
).map(b"".join)
BYTES = (
    st.binary(max_size=300) | TEXTS.map(str.encode) | JSON.map(lambda value: json.dumps(value).encode()) | RFB
)


@pytest.mark.parametrize("name", TARGETS)
def test_a_parser_keeps_its_contract(name: str) -> None:
    """Style: parsers are fuzzed; whatever comes is read or refused in the parser's own words."""

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(BYTES)
    def feed(data: bytes) -> None:
        TARGETS[name](b"\x01" + data if name.startswith("rfb") else data)

    feed()


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_once_broke_a_parser_does_not(path: Path) -> None:
    """Ours: what fuzzing found stays a test."""
    TARGETS[path.parent.name](path.read_bytes())
