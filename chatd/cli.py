"""
The ``chatd`` command: the control plane alone.

Exit codes: 0 done, 1 failed, 2 bad usage, 3 can't start.
"""

import asyncio
import gc
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated
from uuid import UUID

import cyclopts
import structlog
from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn
from rich.progress import Progress as RichProgress

from agentd.wire.version import VERSION
from chatd.ask_why import ask_why, render_why
from chatd.backup import Backup, back_up
from chatd.backup import restore as put_back
from chatd.cli_admin import (
    FAILED,
    HERE,
    USAGE,
    Where,
    audit_log,
    fail,
    read_settings,
    secrets_app,
    tokens_app,
    users_app,
)
from chatd.cli_lists import list_models, list_replicas
from chatd.convert import convert_messages
from chatd.errors import ChatdError
from chatd.loading import load_settings
from chatd.migrate import migrate_schema
from chatd.serving import Told, check_settings, serve_until_told
from chatd.settings import ChatdSettings
from chatd.store.migrating import Phase

__all__ = ["main"]

CANNOT_START = 3

Copying = Callable[..., Backup]

app = cyclopts.App(
    name="chatd",
    version=VERSION,
    help="Durable chats with model vendors; workspaces dial in over the link.",
    # Examples are copied as they stand.
    help_format="plaintext",
)
app.command(users_app)
app.command(tokens_app)
app.command(secrets_app)
app.command(audit_log, name="audit")
app.command(list_models, name="models")
app.command(list_replicas, name="replicas")


def main() -> None:
    """Run the command line."""
    try:
        app()
    finally:
        # The interpreter's last collection would walk the vendors' SDKs for a second.
        gc.freeze()


def _log_to_stderr() -> None:
    """JSON lines; standard output is for the line that callers read, and no traceback shows values."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
    )


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """With what to speak HTTPS."""

    tls_certificate: Annotated[
        Path | None, Parameter(help="PEM file: HTTPS with it; SIGHUP has it read again.")
    ] = None
    tls_key: Annotated[Path | None, Parameter(help="PEM file with its key.")] = None


PLAIN = TlsFiles()


@app.command
def serve(
    *,
    where: Where = HERE,
    host: Annotated[str | None, Parameter(help="Address to listen on.")] = None,
    port: Annotated[int | None, Parameter(help="TCP port; 0: a free one.")] = None,
    check_config: Annotated[
        bool, Parameter(negative="", help="Only say whether the settings make sense; exit code 2: no.")
    ] = False,
    tokens: Annotated[
        bool, Parameter(help="Make new tokens for this machine, end older ones, and print them once ready.")
    ] = True,
    tls: TlsFiles = PLAIN,
) -> None:
    """
    Run the control plane.

    Prints one line of JSON once ready: {url, token, agent_token}. The
    tokens are for `Authorization: Bearer` and for AGENTD_AGENT_TOKEN; a journal
    gets none, and then those of earlier runs go on.
    SIGHUP reads CHATD_CONFIG and the TLS certificate again and takes up what it can.

    For example:
      chatd serve --data /var/lib/chatd --port 7080
      chatd serve --data /var/lib/chatd --host 0.0.0.0 --tls-certificate chain.pem --tls-key key.pem
      chatd serve --data /var/lib/chatd --database postgresql://chatd@db.example/chatd
      chatd serve --check-config
    """
    _log_to_stderr()

    def load() -> ChatdSettings:
        return load_settings(
            data_dir=where.data,
            database=where.database,
            host=host,
            port=port,
            tls_certificate=tls.tls_certificate,
            tls_key=tls.tls_key,
        )

    try:
        settings = load()
        if check_config:
            sys.stdout.write("\n".join(check_settings(settings)) + "\n")
            return
    except ChatdError as exc:
        fail(str(exc), USAGE)
    try:
        asyncio.run(serve_until_told(settings, load, told=Told.TOKENS if tokens else Told.URL))
    except ChatdError as exc:
        fail(str(exc), CANNOT_START)


@app.command
def migrate(
    *,
    data: Annotated[Path | None, Parameter(help="Data directory (CHATD_DATA_DIR).")] = None,
    database: Annotated[str | None, Parameter(help="PostgreSQL URL (CHATD_DATABASE).")] = None,
    phase: Annotated[Phase, Parameter(help="pre: only adds; post: takes away what old code used.")] = "all",
    check: Annotated[bool, Parameter(help="Change nothing; exit code 1 if something is pending.")] = False,
    as_json: Annotated[bool, Parameter(name="--json", help="The result as JSON.")] = False,
) -> None:
    """
    Bring the database's schema to this version, while chatds run.

    For an upgrade without a pause: `--phase pre` first, then replace one replica after the other,
    and when none of the old ones is left `--phase post`.

    For example:
      chatd migrate --database postgresql://chatd@db.example/chatd --phase pre
      chatd migrate --database postgresql://chatd@db.example/chatd --check --json
    """
    _log_to_stderr()
    settings = read_settings(data_dir=data, database=database)
    try:
        report = asyncio.run(migrate_schema(settings, phase, only_check=check))
    except ChatdError as exc:
        fail(str(exc), CANNOT_START)
    sys.stdout.write((json.dumps(asdict(report)) if as_json else report.render()) + "\n")
    if check and report.pending:
        raise SystemExit(FAILED)


@app.command(name="convert-messages")
def convert(
    *,
    data: Annotated[Path | None, Parameter(help="Data directory (CHATD_DATA_DIR).")] = None,
    database: Annotated[str | None, Parameter(help="PostgreSQL URL (CHATD_DATABASE).")] = None,
    apply: Annotated[bool, Parameter(help="Rewrite the rows; without it they are only shown.")] = False,
    as_json: Annotated[bool, Parameter(name="--json", help="One JSON object a row, with all of it.")] = False,
) -> None:
    """
    Show what messages of old content would become, or rewrite them.

    Old content can be read for ever; rewriting it is for those who want one kind.
    No chatd may run on the data meanwhile.

    For example:
      chatd convert-messages --data /var/lib/chatd
      chatd convert-messages --data /var/lib/chatd --apply --json
    """
    _log_to_stderr()
    settings = read_settings(data_dir=data, database=database)
    try:
        rows = asyncio.run(convert_messages(settings, apply=apply))
    except ChatdError as exc:
        fail(str(exc), CANNOT_START)
    for row in rows:
        kinds = ", ".join(part["type"] for part in row.after) or "nothing"
        line = f"{row.chat_id} {row.id} {row.role}: {row.shape} -> {kinds}"
        sys.stdout.write((json.dumps(asdict(row)) if as_json else line) + "\n")
    sys.stderr.write(f"{len(rows)} old messages {'rewritten' if apply else 'found; --apply rewrites them'}\n")


@app.command
def backup(
    file: Annotated[Path, Parameter(help="Where the copy goes.")],
    *,
    data: Annotated[Path | None, Parameter(help="Data directory (CHATD_DATA_DIR).")] = None,
    force: Annotated[bool, Parameter(negative="", help="Replace a file that is there.")] = False,
    as_json: Annotated[bool, Parameter(name="--json", help="The result as JSON.")] = False,
) -> None:
    """
    Copy the SQLite database to one file, while chatd runs, and check the copy.

    The key of stored secrets (secrets.key in the data directory) is not in it; keep that elsewhere.
    With --json: {file, size_bytes, sha256, schema_version, rows, took_s}.

    For example:
      chatd backup /backup/chatd.sqlite3 --data /var/lib/chatd
    """
    _copy(back_up, file, data=data, force=force, as_json=as_json)


@app.command
def restore(
    file: Annotated[Path, Parameter(help="What `chatd backup` made.")],
    *,
    data: Annotated[Path | None, Parameter(help="Data directory (CHATD_DATA_DIR).")] = None,
    force: Annotated[
        bool, Parameter(negative="", help="Replace the database that is there; it is moved aside.")
    ] = False,
    as_json: Annotated[bool, Parameter(name="--json", help="The result as JSON.")] = False,
) -> None:
    """
    Check a backup and make it the database of a data directory that no chatd uses.

    With --json: {file, size_bytes, sha256, schema_version, rows, took_s, moved}.

    For example:
      chatd restore /backup/chatd.sqlite3 --data /var/lib/chatd
      chatd restore /backup/chatd.sqlite3 --data /var/lib/chatd --force --json
    """
    _copy(put_back, file, data=data, force=force, as_json=as_json)


def _copy(work: Copying, file: Path, *, data: Path | None, force: bool, as_json: bool) -> None:
    """Copy one way or the other, with a bar for people."""
    _log_to_stderr()
    settings = read_settings(data_dir=data)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
    try:
        with RichProgress(
            *columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()
        ) as bar:
            tasks = {name: bar.add_task(name, total=1.0) for name in ("copy", "check")}
            done = work(
                settings,
                file,
                force=force,
                progress=lambda what, part: bar.update(tasks[what], completed=part),
            )
    except ChatdError as exc:
        fail(str(exc), FAILED)
    if as_json:
        sys.stdout.write(json.dumps(asdict(done)) + "\n")
        return
    rows = ", ".join(f"{count} {name}" for name, count in done.rows.items())
    lines = [f"{done.file}: {done.size_bytes / 2**20:.1f} MiB, {rows}, checked, in {done.took_s:.1f} s"]
    if done.moved is not None:
        lines.append(f"the database that was there is now {done.moved}")
    sys.stdout.write("\n".join(lines) + "\n")


@app.command
def why(
    chat: Annotated[UUID, Parameter(help="The chat's id.")],
    *,
    data: Annotated[Path | None, Parameter(help="Data directory (CHATD_DATA_DIR).")] = None,
    database: Annotated[str | None, Parameter(help="PostgreSQL URL (CHATD_DATABASE).")] = None,
    as_json: Annotated[bool, Parameter(name="--json", help="The answer as JSON.")] = False,
) -> None:
    """
    Tell why a chat does not go on: what it waits for, since when, and who can help.

    It reads the database and changes nothing, whether a chatd runs or not.

    For example:
      chatd why 7b0c1a52-8d3e-4a55-9a63-0d2a9f3a7a11 --data /var/lib/chatd
    """
    _log_to_stderr()
    settings = read_settings(data_dir=data, database=database)
    try:
        found = asyncio.run(ask_why(settings, chat))
    except ChatdError as exc:
        fail(str(exc), FAILED)
    sys.stdout.write((found.model_dump_json(exclude_none=True) if as_json else render_why(found)) + "\n")
