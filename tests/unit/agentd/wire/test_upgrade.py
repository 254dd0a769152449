"""How a stream of RFB is asked for."""

import pytest

from agentd.wire.upgrade import upgrade_trouble

CELLS = [
    pytest.param({"Upgrade": "websocket"}, None, id="no subprotocol"),
    pytest.param({"Upgrade": "WebSocket", "Sec-WebSocket-Protocol": "binary"}, None, id="binary"),
    pytest.param({"Upgrade": "websocket", "Sec-WebSocket-Protocol": "base64, binary"}, None, id="one of two"),
    pytest.param({"Upgrade": "websocket", "Sec-WebSocket-Protocol": " "}, None, id="empty"),
    pytest.param({"Upgrade": "websocket", "Sec-WebSocket-Protocol": "base64"}, "not 'base64'", id="base64"),
    pytest.param({}, "is a WebSocket", id="no upgrade"),
    pytest.param({"Upgrade": "h2c"}, "is a WebSocket", id="another upgrade"),
]


@pytest.mark.parametrize(("headers", "trouble"), CELLS)
def test_each_way_to_ask(headers: dict[str, str], trouble: str | None) -> None:
    """BUGS 51: `binary` and none work, another is refused with a reason."""
    found = upgrade_trouble(headers)

    assert found is None if trouble is None else trouble in str(found)
