"""What the admin pages share: read-only pages, links between rows, filters that come from an address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst

from cardpicker.operations.formatting import NOTHING

M = TypeVar("M", bound=Model)

if TYPE_CHECKING:
    PlainAdmin = admin.ModelAdmin
    TypedTabularInline = admin.TabularInline
else:

    class PlainAdmin(admin.ModelAdmin):
        """Django's ModelAdmin, which takes a type parameter in its stubs only."""

        def __class_getitem__(cls, item):
            return cls

    class TypedTabularInline(admin.TabularInline):
        """Django's TabularInline, which takes type parameters in its stubs only."""

        def __class_getitem__(cls, item):
            return cls


class ListAdmin(PlainAdmin[M]):
    """A list over a table that may be large: no second count, no page of thousands, empty values as a dash."""

    show_full_result_count = False
    list_per_page = 50
    list_max_show_all = 200
    empty_value_display = NOTHING

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Head the list with what is in it."""
        context = {"title": capfirst(self.opts.verbose_name_plural), **(extra_context or {})}
        return super().changelist_view(request, context)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Head the page with the row in words."""
        row = kwargs.get("obj")
        if row is not None:
            context |= {"title": capfirst(self.opts.verbose_name), "subtitle": self.describe(row)}
        return super().render_change_form(request, context, *args, **kwargs)

    def describe(self, obj: M) -> str:
        """Name the row."""
        return str(obj)


class ReadOnlyAdmin(ListAdmin[M]):
    """Rows that are looked at and never written by hand, because a hand edit would be a lie about what happened."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody adds."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        """Nobody changes."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        """Nobody deletes."""
        return False


class ByAddressFilter(admin.SimpleListFilter):
    """A filter that links lead to; it shows itself, with a way out, only while it is in use."""

    lookup = ""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Offer the value in use, if any."""
        value = request.GET.get(self.parameter_name)  # type: ignore[arg-type]
        return [(value, value)] if value else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[M]) -> QuerySet[M]:
        """Filter by the value in the address."""
        value = self.value()
        return queryset.filter(**{self.lookup: value}) if value else queryset


def titled(title: str, base: type[admin.FieldListFilter]) -> type[admin.FieldListFilter]:
    """Return a field's filter under another heading than the field's name."""

    class Titled(base):  # type: ignore[misc, valid-type]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.title = title

    return Titled


def link_to(row: Model | None, text: str = "") -> SafeString | str:
    """Link to a row's own page."""
    if row is None or row.pk is None:
        return NOTHING
    return format_html('<a href="{}">{}</a>', page_of(row), text or str(row))


def page_of(row: Model) -> str:
    """Return the address of a row's own page."""
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])


def list_address(model: type[Model], **query: object) -> str:
    """Return the address of a model's list, filtered."""
    address = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    return f"{address}?{urlencode(query)}" if query else address


def link_to_list(model: type[Model], text: str, **query: object) -> SafeString:
    """Link to a model's list, filtered."""
    return format_html('<a href="{}">{}</a>', list_address(model, **query), text)
