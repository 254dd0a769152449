"""Certificates for servers on loopback: good ones, and each that a client must refuse."""

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

__all__ = ["Authority", "self_signed"]

HERE = "127.0.0.1"
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class _Pair:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def context(self, folder: Path) -> ssl.SSLContext:
        """What a server needs."""
        path = folder / f"{self.certificate.serial_number}.pem"
        key = self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        path.write_bytes(key + self.certificate.public_bytes(serialization.Encoding.PEM))
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.load_cert_chain(path)
        return made


class Authority:
    """Issues certificates; whoever trusts ``file`` trusts them."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._own = _issue(name, None, starts=-DAY, ends=DAY)
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(self._own.certificate.public_bytes(serialization.Encoding.PEM))

    def server(self, host: str = HERE, *, starts: timedelta = -DAY, ends: timedelta = DAY) -> ssl.SSLContext:
        """A server of *host* that is valid from *starts* to *ends*, from now."""
        return _issue(host, self._own, starts=starts, ends=ends).context(self._folder)


def self_signed(folder: Path) -> ssl.SSLContext:
    """A server that vouches for itself."""
    return _issue(HERE, None, starts=-DAY, ends=DAY).context(folder)


def _issue(host: str, issuer: _Pair | None, *, starts: timedelta, ends: timedelta) -> _Pair:
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    signer = issuer or _Pair(None, key)  # type: ignore[arg-type]  # its own
    names: list[x509.GeneralName] = [x509.DNSName(host)]
    if host[0].isdigit():
        names = [x509.IPAddress(ipaddress.ip_address(host))]
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + starts)
        .not_valid_after(now + ends)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(_usage(signs=issuer is None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.key.public_key()), critical=False
        )
    )
    return _Pair(builder.sign(signer.key, hashes.SHA256()), key)


def _usage(*, signs: bool) -> x509.KeyUsage:
    unused = dict.fromkeys(
        (
            "content_commitment",
            "key_encipherment",
            "data_encipherment",
            "key_agreement",
            "encipher_only",
            "decipher_only",
        ),
        False,
    )
    return x509.KeyUsage(digital_signature=not signs, key_cert_sign=signs, crl_sign=signs, **unused)
