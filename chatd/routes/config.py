"""What the deployment's people and each person set while it runs: standing prompts, days."""

from typing import Annotated
from uuid import UUID

from aiohttp import web
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from chatd.audit import AuditAction
from chatd.constants import MAX_DEPLOYMENT_PROMPT_BYTES, MAX_SYSTEM_PROMPT
from chatd.routes.auditing import entry_of, write_audited
from chatd.routes.chats import answer
from chatd.routes.context import identity, require_admin, services
from chatd.routes.describe import describe
from chatd.routes.errors import read_body
from chatd.store import catalog_rows, deployment
from chatd.store.deployment import SettingName

__all__ = [
    "AutoArchive",
    "DefaultModel",
    "PlanInstructions",
    "Retention",
    "SystemPrompt",
    "UserPrompt",
    "routes",
]

routes = web.RouteTableDef()
PATH = "/api/experimental/chats/config"


def _within_bytes(text: str) -> str:
    if len(text.encode()) > MAX_DEPLOYMENT_PROMPT_BYTES:
        msg = f"at most {MAX_DEPLOYMENT_PROMPT_BYTES} bytes"
        raise ValueError(msg)
    return text.strip()


LongText = Annotated[str, Field(max_length=MAX_DEPLOYMENT_PROMPT_BYTES), AfterValidator(_within_bytes)]
Days = Annotated[int, Field(ge=0, le=36_500)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SystemPrompt(_Strict):
    """What every new chat is told first; empty: nothing."""

    system_prompt: LongText


class PlanInstructions(_Strict):
    """What a chat is told besides while it makes a plan; empty: nothing."""

    plan_mode_instructions: LongText


class UserPrompt(_Strict):
    """What the caller's new chats are told; empty: nothing."""

    custom_prompt: Annotated[str, Field(max_length=MAX_SYSTEM_PROMPT)]


class AutoArchive(_Strict):
    """Chats that were idle for so many days are archived; 0: never."""

    auto_archive_days: Days


class Retention(_Strict):
    """Chats that were archived for so many days, at least until the month is over, are deleted; 0: never."""

    retention_days: Days


class DefaultModel(_Strict):
    """The model that a new chat gets when none is named; null: the first of those that there are."""

    model_config_id: UUID | None


async def _read(request: web.Request, name: SettingName) -> object:
    return await services(request).store.read(deployment.read_setting, name)


async def _save(request: web.Request, name: SettingName, value: object) -> web.Response:
    shown = value if isinstance(value, int) else f"{len(str(value or ''))} characters"
    entry = entry_of(request, AuditAction.SETTING_CHANGED, target=name, value=str(shown))
    now = services(request).store.now()
    await write_audited(request, entry, deployment.save_setting, name, value, now=now)
    return web.Response(status=204)


@routes.get(PATH + "/system-prompt")
@describe(answer=SystemPrompt)
async def get_system_prompt(request: web.Request) -> web.Response:
    """What every new chat is told first."""
    return answer(SystemPrompt(system_prompt=str(await _read(request, "system-prompt") or "")))


@routes.put(PATH + "/system-prompt")
@describe(body=SystemPrompt, status=204)
async def put_system_prompt(request: web.Request) -> web.Response:
    """Set it, for chats from now on."""
    require_admin(request)
    wish = await read_body(request, SystemPrompt)
    return await _save(request, "system-prompt", wish.system_prompt or None)


@routes.get(PATH + "/plan-mode-instructions")
@describe(answer=PlanInstructions)
async def get_plan_instructions(request: web.Request) -> web.Response:
    """What a chat is told besides while it makes a plan."""
    text = str(await _read(request, "plan-mode-instructions") or "")
    return answer(PlanInstructions(plan_mode_instructions=text))


@routes.put(PATH + "/plan-mode-instructions")
@describe(body=PlanInstructions, status=204)
async def put_plan_instructions(request: web.Request) -> web.Response:
    """Set it, for every model call from now on."""
    require_admin(request)
    wish = await read_body(request, PlanInstructions)
    return await _save(request, "plan-mode-instructions", wish.plan_mode_instructions or None)


@routes.get(PATH + "/user-prompt")
@describe(answer=UserPrompt)
async def get_user_prompt(request: web.Request) -> web.Response:
    """What the caller's new chats are told."""
    user_id = identity(request).user_id
    prompt = await services(request).store.read(deployment.read_user_prompt, user_id)
    return answer(UserPrompt(custom_prompt=prompt))


@routes.put(PATH + "/user-prompt")
@describe(body=UserPrompt, status=204)
async def put_user_prompt(request: web.Request) -> web.Response:
    """Set it, for chats from now on."""
    wish = await read_body(request, UserPrompt)
    prompt = wish.custom_prompt.strip()
    await services(request).store.write(deployment.save_user_prompt, identity(request).user_id, prompt)
    return web.Response(status=204)


@routes.get(PATH + "/auto-archive-days")
@describe(answer=AutoArchive)
async def get_auto_archive(request: web.Request) -> web.Response:
    """After how many idle days chats are archived."""
    days = await services(request).auto_archive_days()
    return answer(AutoArchive(auto_archive_days=days))


@routes.put(PATH + "/auto-archive-days")
@describe(body=AutoArchive, status=204)
async def put_auto_archive(request: web.Request) -> web.Response:
    """Set it, in place of the installation's."""
    require_admin(request)
    wish = await read_body(request, AutoArchive)
    return await _save(request, "auto-archive-days", wish.auto_archive_days)


@routes.get(PATH + "/retention-days")
@describe(answer=Retention)
async def get_retention(request: web.Request) -> web.Response:
    """After how many days in the archive chats are deleted."""
    stored = await _read(request, "retention-days")
    return answer(Retention(retention_days=stored if isinstance(stored, int) else 0))


@routes.put(PATH + "/retention-days")
@describe(body=Retention, status=204)
async def put_retention(request: web.Request) -> web.Response:
    """Set it; what is deleted is gone."""
    require_admin(request)
    wish = await read_body(request, Retention)
    return await _save(request, "retention-days", wish.retention_days or None)


@routes.get(PATH + "/default-model")
@describe(answer=DefaultModel)
async def get_default_model(request: web.Request) -> web.Response:
    """The model that a new chat gets when none is named."""
    return answer(DefaultModel(model_config_id=services(request).catalog.default_id))


@routes.put(PATH + "/default-model")
@describe(body=DefaultModel, status=204)
async def put_default_model(request: web.Request) -> web.Response:
    """Set it, also for queued messages whose own model is gone; for administrators."""
    require_admin(request)
    wanted, parts = (await read_body(request, DefaultModel)).model_config_id, services(request)
    if wanted is not None:
        parts.catalog.source(wanted)
    done = await _save(request, "default-model", None if wanted is None else str(wanted))
    parts.catalog.choose_default(wanted)
    await parts.store.write(catalog_rows.save_configs, parts.catalog.configs(), now=parts.store.now())
    return done
