"""Commands that list what the deployment has: models, and replicas that share a database."""

import sys
from typing import Annotated

from cyclopts import Parameter

from chatd.account_wire import ReplicaLine
from chatd.cli_admin import HERE, AsJson, Where, print_json, print_table, run_there, time_text
from chatd.model_wire import StoredModel

__all__ = ["list_models", "list_replicas"]

AndGone = Annotated[bool, Parameter(name="--all", negative="", help="Also those that are gone.")]


def list_models(*, and_gone: AndGone = False, where: Where = HERE, as_json: AsJson = False) -> None:
    """
    List the models that chats may use, as the last chatd that started wrote them down.

    One whose key is gone is kept for the chats that had it; --all lists it too.
    With --json: [{id, provider, model, display_name, is_default, rehearsal, enabled}].

    For example:
      chatd models --data /var/lib/chatd
      chatd models --json | jq -r '.[] | select(.is_default) | .model'
    """
    found = run_there(where, lambda admin: admin.list_models(and_gone=and_gone))
    if as_json:
        print_json(found)
        return
    print_table(("PROVIDER", "MODEL", "NAME", "", "ID"), [_model_row(model) for model in found])


def _model_row(model: StoredModel) -> tuple[str, ...]:
    said = {"default": model.is_default, "rehearsal": model.rehearsal, "gone": not model.enabled}
    marks = [word for word, is_so in said.items() if is_so]
    return model.provider, model.model, model.display_name, " ".join(marks), str(model.id)


def list_replicas(*, and_gone: AndGone = False, where: Where = HERE, as_json: AsJson = False) -> None:
    """
    List the chatds that share a PostgreSQL: address, version, last sign of life, linked workspaces.

    Seconds since the last beat are by the database's clock; one that was killed stays here until another
    misses it. --all lists those of the last day.
    With --json: [{id, address, version, started_at, beat_at, silent_s, links, gone_at}].

    For example:
      chatd replicas --database postgresql://chatd@db.example/chatd
      chatd replicas --json | jq '.[] | select(.silent_s > 15)'
    """
    found = run_there(where, lambda admin: admin.list_replicas(and_gone=and_gone))
    if as_json:
        print_json(found)
        return
    if not found:
        sys.stderr.write("no chatd is in the registry; on SQLite there is one at most, and none is kept\n")
    columns = ("ADDRESS", "VERSION", "STARTED", "LAST BEAT", "LINKS", "", "ID")
    print_table(columns, [_replica_row(replica) for replica in found])


def _replica_row(replica: ReplicaLine) -> tuple[str, ...]:
    beat = f"{replica.silent_s:.1f} s ago"
    gone = "gone" if replica.gone_at else ""
    started = time_text(replica.started_at)
    address = replica.address or "not yet"
    return address, replica.version, started, beat, str(replica.links), gone, str(replica.id)
