"""Every row of the specification's table is a route here, or docs/reference/api.md says why not."""

import re
from pathlib import Path
from typing import cast

import pytest

from chatd.app import openapi_document

PREFIX = "/api/experimental"
DOCUMENT = Path(__file__).parents[4] / "docs" / "reference" / "api.md"
# Spec 3: method and path of each row, in its order.
ROWS = """\
POST /chats
GET /chats
GET /chats/watch
GET /chats/by-workspace
POST /chats/files
GET /chats/files/{}
POST /chats/files/{}/download-url
GET /chats/{}
PATCH /chats/{}
GET /chats/{}/messages
POST /chats/{}/messages
PATCH /chats/{}/messages/{}
GET /chats/{}/prompts
DELETE /chats/{}/queue/{}
POST /chats/{}/queue/{}/promote
POST /chats/{}/interrupt
POST /chats/{}/tool-results
POST /chats/{}/compact
POST /chats/{}/clear
POST /chats/{}/reconcile-invalid
POST /chats/{}/title/propose
GET /chats/{}/cost
GET /chats/{}/acl
PATCH /chats/{}/acl
PUT /chats/{}/context
GET /chats/{}/stream
GET /chats/config/system-prompt
PUT /chats/config/system-prompt
GET /chats/config/plan-mode-instructions
PUT /chats/config/plan-mode-instructions
GET /chats/config/user-prompt
PUT /chats/config/user-prompt
GET /chats/config/user-compaction-thresholds
PUT /chats/config/user-compaction-thresholds/{}
DELETE /chats/config/user-compaction-thresholds/{}
GET /chats/config/retention-days
PUT /chats/config/retention-days
GET /chats/config/auto-archive-days
PUT /chats/config/auto-archive-days
GET /chats/config/personal-model-overrides
PUT /chats/config/personal-model-overrides
GET /chats/models
""".splitlines()
# Rows that are no route, by the words that tell them in the document.
LEFT_OUT = (
    "organization_id", "workspace-ttl", "debug-logging", "user-debug-logging", "debug-retention-days",
    "debug/runs", "models and providers", "stream/git", "`diff`", "stream/parts", "stream/desktop",
    "files/{id}/download",
)  # fmt: skip
# Fields of bodies and answers that the table names: model, and what of it is a field here.
FIELDS: dict[str, str] = {
    "CreateChat": "content system_prompt workspace_id model_config_id reasoning_effort mcp_server_ids labels "
    "unsafe_dynamic_tools plan_mode client_type",
    "SendMessage": "content model_config_id reasoning_effort mcp_server_ids busy_behavior plan_mode",
    "EditMessage": "content model_config_id reasoning_effort mcp_server_ids",
    "ChatPatch": "title archived workspace_id pin_order labels plan_mode",
    "Sent": "message messages queued_message queued warnings",
    "Edited": "message messages deleted_message_ids warnings",
    "MessageList": "messages queued_messages has_more",
    "Chat": "warnings files context last_reasoning_effort last_model_config_id queued_for_capacity children",
}


@pytest.fixture(scope="module")
def document() -> dict[str, object]:
    """The OpenAPI document; nothing is started for it."""
    return openapi_document()


def test_every_row_is_a_route(document: dict[str, dict[str, dict[str, object]]]) -> None:
    """Spec 3, issue: checked against the OpenAPI document, so that a row can't be lost."""
    described = {
        f"{method.upper()} {re.sub(r'{[^}]+}', '{}', path.removeprefix(PREFIX))}"
        for path, methods in document["paths"].items()
        for method in methods
    }

    assert [row for row in ROWS if row not in described] == []


@pytest.mark.parametrize("model", FIELDS)
def test_bodies_and_answers_have_the_fields_of_the_rows(
    document: dict[str, dict[str, dict[str, object]]], model: str
) -> None:
    """Spec 3: what each body takes and each answer gives."""
    schema = cast("dict[str, object]", document["components"]["schemas"][model])

    assert set(FIELDS[model].split()) - set(cast("dict[str, object]", schema["properties"])) == set()


@pytest.mark.parametrize("row", LEFT_OUT)
def test_a_row_that_is_no_route_is_told_with_its_reason(row: str) -> None:
    """Brief: left out cleanly, with a word on why."""
    table = DOCUMENT.read_text().partition("## Left out")[2]
    (line,) = [
        line for line in table.splitlines() if re.search(rf"(?<![\w-]){re.escape(row)}(?![\w-])", line)
    ]
    _, _, why, _ = line.split("|")

    assert len(why.split()) > 4
