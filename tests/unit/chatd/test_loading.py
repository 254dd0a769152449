"""Settings that make no sense: a sentence that names them."""

from pathlib import Path

import pytest

from chatd.loading import BadSettings, load_settings


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"tls_key": Path("key.pem")},
            "settings: tls_certificate and tls_key belong together: give both, or neither",
        ),
        (
            {"database": "mysql://x"},
            "setting database: only PostgreSQL is spoken: postgresql://user@host/name",
        ),
        ({"port": 70_000}, "setting port: Input should be less than or equal to 65535"),
    ],
    ids=["two together", "one of ours", "a bound"],
)
def test_what_is_wrong_is_named_in_a_sentence(tmp_path: Path, given: dict[str, object], message: str) -> None:
    """Ours: no empty name, and no word of the library that checks."""
    with pytest.raises(BadSettings) as found:
        load_settings(data_dir=tmp_path, **given)

    assert str(found.value) == message
