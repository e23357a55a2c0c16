"""The console, approval pages and the API inside a Django site.

urlpatterns = [path("flows/", include("wfcelery.contrib.django.urls")), ...]
"""

from __future__ import annotations

from typing import Final

from django.urls import re_path

from wfcelery.contrib.django.mount import console

app_name: Final = "wfcelery"
urlpatterns: Final = [re_path(r"^(?P<path>.*)$", console, name="console")]
