"""The transcripts are what the SDKs say the vendors send."""

from typing import Any

import pytest
from anthropic.types import RawMessageStreamEvent
from google.genai.types import GenerateContentResponse
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from tests.contract.provider import transcripts

ADAPTERS: dict[str, TypeAdapter[Any]] = {
    "anthropic": TypeAdapter(RawMessageStreamEvent),
    "google": TypeAdapter(GenerateContentResponse),
    "openai": TypeAdapter(ResponseStreamEvent),
    "openai-compat": TypeAdapter(ChatCompletionChunk),
}
CASES = [(name, scenario) for name, scenarios in transcripts.ALL.items() for scenario in scenarios]


@pytest.mark.parametrize(("name", "scenario"), CASES)
def test_each_event_satisfies_the_sdks_own_model(name: str, scenario: str) -> None:
    """A transcript that the SDK's types refuse would test nothing."""
    for event in transcripts.ALL[name][scenario]:
        ADAPTERS[name].validate_python(event)
