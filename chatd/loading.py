"""The settings of a process: environment, file and command line, or one sentence why not."""

from pydantic import ValidationError

from chatd.errors import Refused
from chatd.settings import ChatdSettings

__all__ = ["BadSettings", "load_settings"]


class BadSettings(Refused):
    """The settings make no sense together, or one of them none at all."""

    code = "bad_settings"


def load_settings(**given: object) -> ChatdSettings:
    """
    The settings with what was *given* on the command line; None is not given.

    Raises:
        BadSettings: one makes no sense; the text names it, and never its value.
    """
    try:
        return ChatdSettings.model_validate(
            {name: value for name, value in given.items() if value is not None}
        )
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        # Of several together there is no place.
        text = f"setting {where}: {first['msg']}" if where else f"settings: {first['msg']}"
        raise BadSettings(text) from None
    except (OSError, ValueError) as exc:
        raise BadSettings(f"the configuration file can't be used: {exc}") from None
