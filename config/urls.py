"""URLs: the admin with the pictures on its pages, and the root that leads to it."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path
from django.views.generic import RedirectView

from cardpicker.operations.images import card_thumbnail

urlpatterns = [
    path("admin/", admin.site.urls),
    path("images/cards/<int:card_id>/thumbnail", card_thumbnail, name="card-thumbnail"),
    path("", RedirectView.as_view(pattern_name="admin:index", permanent=False)),
]
