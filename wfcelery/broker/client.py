"""Reaching the broker: a client from a Celery broker URL, and its troubles in our own words."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from wfcelery.errors import InvalidSettings, NotReachable

CONNECT_TIMEOUT_S: Final = 2.0
SOCKET_TIMEOUT_S: Final = 4.0
HEALTH_CHECK_S: Final = 15
OLDEST_SERVER: Final = (6, 2)

_NEEDS: Final = "wfcelery needs Redis or Valkey, like redis://localhost:6379/0"
_NO_OPTIONS: Final[Mapping[str, object]] = MappingProxyType({})
_TCP: Final = frozenset({"redis", "rediss"})
_SOCKET: Final = frozenset({"redis+socket", "unix"})
# Celery takes Python's names of these, and redis-py's.
_CERT_REQS: Final = {
    "CERT_REQUIRED": "required",
    "CERT_OPTIONAL": "optional",
    "CERT_NONE": "none",
    "required": "required",
    "optional": "optional",
    "none": "none",
}
_TLS_FILES: Final = ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile", "ssl_password")


def connect(broker_url: str, transport_options: Mapping[str, object] = _NO_OPTIONS) -> redis.Redis:
    """Make a client for the broker that a Celery broker URL names. Nothing is sent yet.

    A command ends within 5 s, well or not. `socket_timeout`, `socket_connect_timeout` and `client_name` of
    Celery's transport options are kept, the timeouts when they are shorter than ours.
    Raises `InvalidSettings`.
    """
    options: dict[str, Any] = {
        **_place(broker_url, transport_options),
        "socket_timeout": _shorter(transport_options.get("socket_timeout"), SOCKET_TIMEOUT_S),
        "health_check_interval": HEALTH_CHECK_S,
        "client_name": transport_options.get("client_name"),
        "protocol": 2,
        # Once again at once, for a connection that the server has closed meanwhile. All that we send may be
        # repeated. A timeout is not tried again: it would take twice as long.
        "retry": Retry(NoBackoff(), 1, supported_errors=(redis.exceptions.ConnectionError,)),
    }
    return redis.Redis.from_pool(redis.ConnectionPool(**options))


def key_prefix(transport_options: Mapping[str, object]) -> str:
    """Tell what Celery puts before every key on this broker."""
    return str(transport_options.get("global_keyprefix") or "")


@contextlib.contextmanager
def reaching(client: redis.Redis) -> Iterator[None]:
    """Turn every trouble with the broker into `NotReachable`, and keep the password out of it."""
    try:
        yield
    except (redis.exceptions.RedisError, OSError) as error:
        said = (str(error) or type(error).__name__).rstrip(".")
        password = client.connection_pool.connection_kwargs.get("password")
        reason = said.replace(password, "***") if isinstance(password, str) and password else said
        path = client.connection_pool.connection_kwargs.get("path")
        if isinstance(path, str) and isinstance(
            error.__context__, (FileNotFoundError, ConnectionRefusedError)
        ):
            reason = f"nobody listens at {path}; is `wfcelery up` running there?"
        raise NotReachable("the broker", reason) from error


def check_server(client: redis.Redis) -> list[str]:
    """Tell what is wrong with the server for our use; nothing if all is well."""
    with reaching(client):
        try:
            told = {**client.info("server"), **client.info("memory")}
        except redis.exceptions.ResponseError as error:
            said = f"the broker does not tell its version and memory policy ({error})"
            return [f"{said}; allow its user the command INFO"]
    found = []
    version = str(told.get("redis_version", "0"))
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < OLDEST_SERVER:
        found.append(
            f"the broker is Redis {version}; wfcelery needs 6.2 or newer, or any Valkey: upgrade the server"
        )
    policy = str(told.get("maxmemory_policy", "noeviction"))
    if policy != "noeviction":
        found.append(
            f"the broker may throw messages away when its memory is full (maxmemory-policy is {policy}); "
            "set it to noeviction"
        )
    return found


def _place(broker_url: str, transport_options: Mapping[str, object]) -> dict[str, object]:
    """Read where the server is and how to get in. No error repeats the URL: it may hold a password."""
    scheme = broker_url.partition("://")[0]
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme) or "://" not in broker_url:
        raise InvalidSettings("broker_url", f"it is not a URL; {_NEEDS}")
    if scheme not in _TCP | _SOCKET:
        raise InvalidSettings("broker_url", f"{scheme}:// cannot be used; {_NEEDS}")
    if ";" in broker_url:
        raise InvalidSettings("broker_url", f"it names several brokers, name one; {_NEEDS}")
    try:
        parts = urlsplit(broker_url)
        port = parts.port
        (parts.hostname or "").encode("idna")
    except ValueError:
        raise InvalidSettings("broker_url", f"its host or port cannot be read; {_NEEDS}") from None
    query = dict(parse_qsl(parts.query))
    place: dict[str, object] = {
        "username": unquote(parts.username or "") or query.get("username"),
        "password": unquote(parts.password or "") or query.get("password"),
    }
    if scheme in _SOCKET:
        return place | _socket(parts, query)
    place |= {
        "host": unquote(parts.hostname or "") or "localhost",
        "port": port or 6379,
        "db": _number(unquote(parts.path).lstrip("/")),
        "socket_connect_timeout": _shorter(
            transport_options.get("socket_connect_timeout"), CONNECT_TIMEOUT_S
        ),
        "socket_keepalive": True,
    }
    return place | _tls(query) if scheme == "rediss" else place


def _socket(parts: SplitResult, query: Mapping[str, str]) -> dict[str, object]:
    if not parts.path.strip("/"):
        raise InvalidSettings("broker_url", f"it names no socket; {_NEEDS}")
    return {
        "connection_class": redis.UnixDomainSocketConnection,
        "path": unquote(parts.path),
        "db": _number(query.get("virtual_host", query.get("db", "")).lstrip("/")),
    }


def _tls(query: Mapping[str, str]) -> dict[str, object]:
    asked = query.get("ssl_cert_reqs", "required")
    if asked not in _CERT_REQS:
        known = ", ".join(name for name in _CERT_REQS if name.isupper())
        raise InvalidSettings("broker_url", f"ssl_cert_reqs must be one of {known}")
    return {
        "connection_class": redis.SSLConnection,
        "ssl_cert_reqs": _CERT_REQS[asked],
        "ssl_check_hostname": query.get("ssl_check_hostname", "true").lower() != "false",
        **{name: query[name] for name in _TLS_FILES if name in query},
    }


def _number(text: str) -> int:
    if not text:
        return 0
    if not text.isdecimal():
        raise InvalidSettings("broker_url", f"the database must be a number; {_NEEDS}")
    return int(text)


def _shorter(given: object, ours: float) -> float:
    return min(float(given), ours) if isinstance(given, (int, float)) and given > 0 else ours
