"""Our web app as a Django view, under WSGI and ASGI: who has signed in to Django is who comes."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.core.signals import setting_changed
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.shortcuts import resolve_url
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.csrf import csrf_exempt

from wfcelery.contrib.bridge import Asked, Body, Exchange, Head, sync_exchange
from wfcelery.contrib.django import conf
from wfcelery.contrib.django.place import place
from wfcelery.contrib.django.rights import principal_of
from wfcelery.core.messages import Principal
from wfcelery.web.app import make_app
from wfcelery.web.identity import HOST_USER

if TYPE_CHECKING:
    from starlette.applications import Starlette

LOGIN: Final = "login"


@csrf_exempt  # type: ignore[untyped-decorator] # our own forms carry our own token
async def console(request: HttpRequest, path: str) -> HttpResponse:
    """Pass one request on."""
    request.get_host()  # Refuses what is not in ALLOWED_HOSTS: the app behind answers to every name.
    who = await sync_to_async(_principal)(request)
    root = request.path[: len(request.path) - len(path)].rstrip("/")
    if path == LOGIN and request.method == "GET":
        return _to_login(request, f"{root}/")
    asked = _asked(request, root, who)
    if isinstance(request, ASGIRequest):
        exchange = Exchange(_app(), asked)
        head = await exchange.begin()
        if head.is_stream:
            return _with_head(StreamingHttpResponse(Body(exchange)), head)
        return _with_head(HttpResponse(b"".join([part async for part in Body(exchange)])), head)
    # Under WSGI Django has made a loop for this call alone; the app lives in one that stays.
    head, parts = sync_exchange(_app(), asked)
    return _with_head(StreamingHttpResponse(parts) if head.is_stream else HttpResponse(b"".join(parts)), head)


def _principal(request: HttpRequest) -> Principal | None:
    user = getattr(request, "user", None)
    return principal_of(user) if user is not None and user.is_authenticated and user.is_active else None


def _to_login(request: HttpRequest, home: str) -> HttpResponse:
    there = request.GET.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(there, allowed_hosts=None) and there.startswith(home)
    return HttpResponseRedirect(
        f"{resolve_url(settings.LOGIN_URL)}?{urlencode({'next': there if is_ours else home})}"
    )


def _asked(request: HttpRequest, root: str, who: Principal | None) -> Asked:
    return Asked(
        method=str(request.method),
        scheme=str(request.scheme),
        path=request.path,
        root_path=root,
        query=request.META.get("QUERY_STRING", ""),
        headers=tuple((str(name), str(value)) for name, value in request.headers.items()),
        body=request.body,
        client=request.META.get("REMOTE_ADDR", ""),
        more={HOST_USER: who} if who is not None else {},
    )


def _with_head(response: HttpResponse, head: Head) -> HttpResponse:
    response.status_code = head.status
    if "content-type" not in {name.lower() for name, _ in head.headers}:
        del response.headers["Content-Type"]
    for name, value in head.headers:
        if name.lower() == "set-cookie":
            response.cookies.load(value)
        else:
            response.headers[name] = value
    return response


@cache
def _app() -> Starlette:
    """Make the app once; Django has looked at the host's name already."""
    return make_app(place().settings, hosts=None, trust_host_user=True)


def _changed(*, setting: str, **_: Any) -> None:  # noqa: ANN401 - Django's signature
    if setting in (conf.SETTING, "DATABASES"):
        _app.cache_clear()


setting_changed.connect(_changed)
