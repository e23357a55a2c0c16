"""Where things are: the shop, its admin, and the console of its workflows."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("flows/", include("wfcelery.contrib.django.urls")),
    path("", include("orders.urls")),
]
