"""Django's admin with our own site in it."""

from __future__ import annotations

from django.contrib.admin.apps import AdminConfig


class OperationsAdminConfig(AdminConfig):
    """Stands in ``INSTALLED_APPS`` for ``django.contrib.admin``."""

    default = False
    default_site = "cardpicker.operations.site.OperationsSite"
