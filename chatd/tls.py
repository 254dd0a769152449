"""TLS of the server: which certificate, at least which version, and the same anew without a restart."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from chatd.errors import Unavailable

__all__ = ["Tls", "TlsUnusable", "TlsVersion"]

TlsVersion = Literal["1.2", "1.3"]
_VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


class TlsUnusable(Unavailable):
    """The certificate or its key can't be used."""

    code = "tls_unusable"


@dataclass(frozen=True, slots=True)
class Tls:
    """
    A server's TLS.

    Args:
        certificate: PEM file, the chain behind it.
        key: PEM file, without a passphrase.
        min_version: older clients are refused.
    """

    certificate: Path
    key: Path
    min_version: TlsVersion = "1.2"

    def context(self) -> ssl.SSLContext:
        """
        A context to listen with.

        Raises:
            TlsUnusable: a file can't be read, or they don't fit; the text names it.
        """
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = _VERSIONS[self.min_version]
        self.load(context)
        return context

    def load(self, context: ssl.SSLContext) -> None:
        """
        Read the files again into *context*: connections from now on get them.

        Raises:
            TlsUnusable: they can't be used; those of before go on.
        """
        try:
            # Tried apart first: what fails half way would leave a certificate without its key.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
                self.certificate, self.key, password=_no_passphrase
            )
            context.load_cert_chain(self.certificate, self.key, password=_no_passphrase)
        except (OSError, ValueError) as exc:
            reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
            raise TlsUnusable(f"can't use {self.certificate} with {self.key}: {reason}") from exc


def _no_passphrase() -> str:
    """Instead of OpenSSL's question on the terminal, which would never be answered."""
    msg = "the key is protected by a passphrase"
    raise ValueError(msg)
