"""HTTPS by chatd itself, with real certificates: versions, the new one after SIGHUP, cookies and headers."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from chatd.app import ControlPlane
from chatd.settings import ChatdSettings
from chatd.store import accounts
from chatd.tls import Tls, TlsUnusable
from tests.integration.chatd.http.site import API, LIMIT_S, bearer

NOW = datetime.now(UTC)


def write_certificate(path: Path, name: str, passphrase: bytes | None = None) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that signs itself, and its key; *name* tells it from others."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - timedelta(days=1))
        .not_valid_after(NOW + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase is not None:
        encryption = serialization.BestAvailableEncryption(passphrase)
    (path / "chain.pem").write_bytes(certificate.public_bytes(pem))
    (path / "key.pem").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, encryption))
    return path / "chain.pem", path / "key.pem"


async def shown_name(port: int, chain: Path, version: ssl.TLSVersion | None = None) -> str:
    """The name in the certificate of who answers; *version*: the newest that is spoken."""
    context = ssl.create_default_context(cafile=str(chain))
    if version is not None:
        context.maximum_version = version
    async with asyncio.timeout(LIMIT_S):
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    subject = dict(part[0] for part in writer.get_extra_info("peercert")["subject"])
    writer.close()
    await writer.wait_closed()
    return str(subject["commonName"])


async def test_https_with_a_certificate_that_is_renewed(tmp_path: Path) -> None:
    """Ours: the new certificate counts for new connections; one that is broken changes nothing."""
    chain, key = write_certificate(tmp_path, "first")
    wish = ChatdSettings(
        data_dir=tmp_path / "data",
        port=0,
        rehearsal="always",
        tls_certificate=chain,
        tls_key=key,
        tls_min_version="1.3",
    )
    plane = ControlPlane(wish)
    await plane.start()
    try:
        names = [await shown_name(plane.port, chain)]
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await shown_name(plane.port, chain, ssl.TLSVersion.TLSv1_2)
        write_certificate(tmp_path, "second")
        plane.reload_certificate()
        names.append(await shown_name(plane.port, chain))
        broken = tmp_path / "broken"
        broken.mkdir()
        saved = chain.read_bytes()
        chain.write_text("no certificate")
        plane.reload_certificate()
        good = broken / "chain.pem"
        good.write_bytes(saved)
        names.append(await shown_name(plane.port, good))
    finally:
        await plane.stop()

    assert plane.url.startswith("https://")
    assert names == ["first", "second", "second"]


@pytest.mark.attack
async def test_a_session_over_https_never_travels_in_the_clear(tmp_path: Path) -> None:
    """Ours: the cookie is Secure, browsers are told to come by HTTPS only, Origin is compared."""
    chain, key = write_certificate(tmp_path, "chatd")
    wish = ChatdSettings(
        data_dir=tmp_path / "data", port=0, rehearsal="always", tls_certificate=chain, tls_key=key
    )
    plane = ControlPlane(wish)
    await plane.start()
    try:
        local = await plane.issue_local_tokens("box")
        context = ssl.create_default_context(cafile=str(chain))
        connector = aiohttp.TCPConnector(ssl=context)
        async with aiohttp.ClientSession(plane.url, connector=connector) as http:
            async with http.get(f"/login?token={local.login}", allow_redirects=False) as answer:
                cookie = answer.cookies["agentd_session"]
                hsts = answer.headers["Strict-Transport-Security"]
            headers = {"Cookie": f"agentd_session={cookie.value}", "Origin": plane.url}
            async with http.post(f"{API}/login-tokens", headers=headers) as answer:
                own = answer.status
            async with http.get(f"{API}/me", headers=bearer(local.api)) as answer:
                assert answer.status == 200
    finally:
        await plane.stop()

    assert (cookie["secure"], cookie["httponly"], own) == (True, True, 201)
    assert "max-age" in hsts
    assert accounts.LIFETIMES["session"] == timedelta(days=30)


@pytest.mark.parametrize("case", ["none", "no key", "another's key", "passphrase"])
def test_what_can_t_be_used_is_refused_at_start(tmp_path: Path, case: str) -> None:
    """Ours: the file is named; nobody is asked for a passphrase on a terminal."""
    chain, key = write_certificate(tmp_path, "a", b"secret" if case == "passphrase" else None)
    if case == "none":
        chain.unlink()
    elif case == "no key":
        key.write_text("")
    elif case == "another's key":
        (tmp_path / "b").mkdir()
        _, key = write_certificate(tmp_path / "b", "b")

    with pytest.raises(TlsUnusable, match=r"chain\.pem"):
        Tls(chain, key).context()


def test_a_certificate_without_its_key_is_a_bad_setting(tmp_path: Path) -> None:
    """Ours: rather than plain HTTP where HTTPS was meant."""
    with pytest.raises(ValueError, match="belong together"):
        ChatdSettings(data_dir=tmp_path, tls_certificate=tmp_path / "chain.pem")
