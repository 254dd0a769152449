"""A file of the workspace over the link: the control plane calls ``files/read``."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["FILES_READ", "MAX_FILE_BYTES", "FileBytes", "FileReadParams"]

FILES_READ = "files/read"
# Bytes of a file that is handed over whole: base64 makes a third more of it, and a frame has 16 MiB.
MAX_FILE_BYTES = 10 * 1024 * 1024


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class FileReadParams(_Wire):
    """Which file, and how large it may be."""

    path: Annotated[str, Field(min_length=1, max_length=4_096)]
    max_bytes: Annotated[int, Field(ge=1, le=MAX_FILE_BYTES)] = MAX_FILE_BYTES


class FileBytes(_Wire):
    """A whole file."""

    path: str = Field(description="Where it really is.")
    data: str = Field(description="base64")
    size: int
