"""The shape of a flow document: its fields, their types and ranges; their meaning is not said here.

Names of steps that are gone on to are any text here: that there is such a step is for `validate` to say.
Nothing is converted: `"3"` is not 3, `true` is not 1, 3.0 is not whole. A field is left out or has a value;
null stands only where it means something (`tool: null`). The JSON Schema for editors is made from this.
"""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field
from pydantic import Tag as Tagged
from pydantic_core import PydanticCustomError

T = TypeVar("T")

LONGEST_S: Final = 10 * 365 * 24 * 3600
"""Ten years: longer waits are a mistake in the unit."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DOTTED: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_QUEUE: Final = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
_PRINTABLE: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]{1,200}")
_PREFIXES: Final = ("group:", "channel:")

LIST_TAG: Final = "<list>"
MAP_TAG: Final = "<map>"

NAME_RULE: Final = "must be 1 to 64 letters (a to z), digits, `_` or `-`"
ADDRESSEE_RULE: Final = (
    "must be a person, `group:NAME`, `channel:NAME` or an address with `://`:"
    " 1 to 200 printable characters, without spaces around them"
)
APPROVER_RULE: Final = (
    "must be a person or `group:NAME`: 1 to 200 printable characters, without spaces around them"
)


def is_name(text: str) -> bool:
    """Tell whether a step, flow, signal or event may be called so."""
    return _NAME.fullmatch(text) is not None


def is_addressee(text: str) -> bool:
    """Tell whether this may name somebody to tell: a person, `group:NAME`, `channel:NAME`, or an address."""
    if _PRINTABLE.fullmatch(text) is None:
        return False
    if "://" in text:
        return not text.startswith("://") and not any(each.isspace() for each in text)
    name = next((text.removeprefix(each) for each in _PREFIXES if text.startswith(each)), text)
    return bool(name) and name == name.strip()


def _addressee(text: str) -> str:
    if not is_addressee(text):
        raise PydanticCustomError("bad-name", "{rule}", {"rule": ADDRESSEE_RULE})
    return text


def _approver(text: str) -> str:
    if not is_addressee(text) or text.startswith("channel:"):
        raise PydanticCustomError("bad-name", "{rule}", {"rule": APPROVER_RULE})
    return text


def _spelled(pattern: re.Pattern[str], rule: str) -> AfterValidator:
    def check(text: str) -> str:
        if pattern.fullmatch(text) is None:
            raise PydanticCustomError("bad-name", "{rule}", {"rule": rule})
        return text

    return AfterValidator(check)


def _present(value: object) -> object:
    if value is None:
        raise PydanticCustomError("bad-type", "is null")
    return value


def _one_of_kinds(*kinds: type, rule: str) -> BeforeValidator:
    def check(value: object) -> object:
        if (isinstance(value, bool) and bool not in kinds) or not isinstance(value, kinds):
            raise PydanticCustomError("bad-type", "{rule}", {"rule": rule})
        return value

    return BeforeValidator(check)


Maybe: TypeAlias = Annotated[T | None, BeforeValidator(_present)]
"""May be left out, but not be null."""

_name: Final = Field(json_schema_extra={"pattern": f"^{_NAME.pattern}$"})
_dotted: Final = Field(json_schema_extra={"pattern": f"^{_DOTTED.pattern}$"})

Name: TypeAlias = Annotated[str, _spelled(_NAME, NAME_RULE), _name]
ToolName: TypeAlias = Annotated[
    str, _spelled(_DOTTED, "must be 1 to 128 letters, digits, `_`, `-` or `.`"), _dotted
]
QueueName: TypeAlias = Annotated[
    str, _spelled(_QUEUE, "must be 1 to 128 letters, digits, `_`, `-`, `.` or `:`")
]
Tag: TypeAlias = Annotated[str, Field(min_length=1, max_length=64)]
Seconds: TypeAlias = Annotated[float, Field(gt=0, le=LONGEST_S)]
Pause: TypeAlias = Annotated[float, Field(ge=0, le=LONGEST_S)]
Approvers: TypeAlias = Annotated[
    list[Annotated[str, AfterValidator(_approver)]], Field(min_length=1, max_length=100)
]
Addressees: TypeAlias = Annotated[list[Annotated[str, AfterValidator(_addressee)]], Field(max_length=100)]


class _Spec(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, populate_by_name=False)


class BackoffSpec(_Spec):
    """Waiting times that grow."""

    initial_s: Pause
    factor: Annotated[float, Field(ge=1, le=100)] = 2.0
    max_s: Pause = 3600.0
    jitter: Annotated[float, Field(ge=0, le=1)] = 0.0


def _kind_of_backoff(value: object) -> str | None:
    return LIST_TAG if isinstance(value, list) else MAP_TAG if isinstance(value, dict) else None


Backoff: TypeAlias = Annotated[
    Annotated[list[Pause], Field(max_length=100), Tagged(LIST_TAG)] | Annotated[BackoffSpec, Tagged(MAP_TAG)],
    Discriminator(
        _kind_of_backoff,
        custom_error_type="bad-type",
        custom_error_message="must be a list of seconds, or a map with initial_s, factor, max_s, jitter",
    ),
]


class RetrySpec(_Spec):
    """How often, and after how long, a failed attempt is followed by another."""

    max_attempts: Maybe[Annotated[int, Field(ge=1, le=1_000)]] = None
    backoff: Maybe[Backoff] = None
    no_retry_on: Maybe[Annotated[list[ToolName], Field(max_length=100)]] = None


class ApprovalSpec(_Spec):
    """A gate: who decides, how many, and what happens when nobody does."""

    approvers: Maybe[Approvers] = None
    quorum: Annotated[int, Field(ge=1, le=100)] = 1
    allow_self: bool = False
    require_comment: bool = False
    form: Maybe[dict[str, object]] = None
    notify: Maybe[Addressees] = None
    timeout_s: Maybe[Seconds] = None
    on_timeout: Literal["deny", "approve", "escalate"] = "deny"
    escalate_to: Maybe[Approvers] = None
    remind_every_s: Maybe[Seconds] = None
    pass_result: bool = False
    on_deny: Maybe[str] = None


class WaitSpec(_Spec):
    """Wait for a named signal."""

    signal: Name
    key: Maybe[str] = None
    timeout_s: Maybe[Seconds] = None
    on_timeout: Maybe[str] = None


class ForeachSpec(_Spec):
    """The same tool or flow for each item of a list."""

    items: Annotated[object, _one_of_kinds(str, list, rule="must be a template or a list")]
    tool: Maybe[ToolName] = None
    args: Maybe[dict[str, object]] = None
    flow: Maybe[Name] = None
    version: Maybe[Annotated[int, Field(ge=1)]] = None
    input: object = None
    concurrency: Annotated[int, Field(ge=1, le=100_000)] = 1_000
    on_item_error: Literal["fail", "collect"] = "fail"


class FlowSpec(_Spec):
    """Run another flow."""

    name: Name
    version: Maybe[Annotated[int, Field(ge=1)]] = None
    input: object = None
    wait: bool = True


class BranchSpec(_Spec):
    """One arm of a branch: `{if, then}`, or `{else}` as the last."""

    if_: Maybe[str] = Field(default=None, alias="if")
    then: Maybe[str] = None
    else_: Maybe[str] = Field(default=None, alias="else")


class PolicySpec(_Spec):
    """The policies that a step takes from the flow where it has none of its own."""

    retry: Maybe[RetrySpec] = None
    timeout_s: Maybe[Seconds] = None
    queue: Maybe[QueueName] = None
    priority: Maybe[Annotated[int, Field(ge=0, le=9)]] = None
    on_lost: Maybe[Literal["retry", "hold"]] = None


class DefaultsSpec(PolicySpec):
    """What a flow says once for all its steps, and whom it tells of its gates and of the end of its runs."""

    notify: Maybe[Addressees] = None


class StepSpec(PolicySpec):
    """One step, as it is written."""

    name: Maybe[str] = None
    description: Maybe[str] = None
    tool: ToolName | None = None
    args: Maybe[dict[str, object]] = None
    approval: Maybe[ApprovalSpec] = None
    wait: Maybe[WaitSpec] = None
    delay: Annotated[
        object, _one_of_kinds(int, float, str, rule="must be a number of seconds or a template")
    ] = None
    until: Maybe[str] = None
    foreach: Maybe[ForeachSpec] = None
    flow: Maybe[FlowSpec] = None
    next: Maybe[str] = None
    branch: Maybe[Annotated[list[BranchSpec], Field(min_length=1)]] = None
    on: Maybe[Annotated[dict[Name, str], Field(min_length=1)]] = None
    parallel: Maybe[Annotated[list[str], Field(min_length=1)]] = None
    join: Maybe[str] = None
    done: bool = False
    on_error: Maybe[str] = None
    join_mode: Annotated[object, _one_of_kinds(int, str, rule="must be `all`, `any` or a whole number")] = (
        "all"
    )
    optional: bool = False
    notify_user: Annotated[
        object, _one_of_kinds(bool, str, list, rule="must be true, text or a list of text")
    ] = None


class HeaderSpec(_Spec):
    """The full form without its steps, which are read one by one."""

    name: Maybe[Name] = None
    description: Maybe[str] = None
    input: Maybe[dict[str, object]] = None
    key: Maybe[str] = None
    key_scope: Literal["flow", "version", "global", "none"] = "flow"
    tags: Maybe[Annotated[list[Tag], Field(max_length=20)]] = None
    metadata: Maybe[dict[str, object]] = None
    defaults: Maybe[DefaultsSpec] = None
    start: Maybe[str] = None
    output: object = None


STEP_FIELDS: Final = frozenset(StepSpec.model_fields) | {"undo"}
HEADER_FIELDS: Final = frozenset(HeaderSpec.model_fields) | {"steps"}
