"""Django's settings. They import without a database; a value out of range is refused with its name and range."""

from __future__ import annotations

import os
import secrets
import warnings
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo

from django.core.exceptions import ImproperlyConfigured

from cardpicker.environment import load, setting
from cardpicker.sources.settings import SourcesSettings
from cardpicker.stage_c.settings import StageCSettings
from cardpicker.stage_e.settings import StageESettings
from config.database.base import SLOT_ANSWER_S, session_options
from config.database.deadline import answering_within

BASE_DIR = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteSettings:
    """Where the site keeps its data and how its pages are served."""

    database_url: str = setting(
        "CARDPICKER_DATABASE_URL", "", "PostgreSQL URL; empty: the embedded server of scripts/ops/postgres.py."
    )
    statement_timeout_s: int = setting(
        "CARDPICKER_STATEMENT_TIMEOUT_S",
        120,
        "Seconds after which the database ends a statement; its client waits 10 s longer and then gives the connection up.",
        low=10,
        high=86_400,
    )
    data_dir: str = setting("CARDPICKER_DATA_DIR", ".local", "Folder of the embedded server's data, logs and caches.")
    secret_key: str = setting(
        "CARDPICKER_SECRET_KEY", "", "Django's secret key; empty: one is made and kept in the data folder."
    )
    debug: bool = setting("CARDPICKER_DEBUG", False, "Show Django's debug pages; never on a public host.")
    allowed_hosts: str = setting(
        "CARDPICKER_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]", "Host names the site answers to, separated by commas."
    )
    time_zone: str = setting("CARDPICKER_TIME_ZONE", "UTC", "Time zone in which times are shown.")


def _secret_key(data_dir: Path) -> str:
    """Return the key kept in ``data_dir``, making it on first use."""
    try:
        return _kept_key(data_dir / "secret-key")
    except OSError as error:
        raise ImproperlyConfigured(
            f"CARDPICKER_DATA_DIR: {data_dir} cannot be used ({error.strerror}): set it to a folder that can be written."
        ) from error


def _kept_key(path: Path) -> str:
    """Return the key in ``path``; the first of several processes makes it."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"secret-key.{os.getpid()}")
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_urlsafe(50), encoding="utf-8")
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text(encoding="utf-8")


def _time_zone(name: str) -> str:
    try:
        return ZoneInfo(name).key
    except (ValueError, LookupError, OSError) as error:
        raise ImproperlyConfigured(
            f"CARDPICKER_TIME_ZONE={name!r} is not a time zone: set it to one such as UTC or Europe/Berlin."
        ) from error


SITE = load(SiteSettings, os.environ)
SOURCES = load(SourcesSettings, os.environ)
STAGE_C = load(StageCSettings, os.environ)
STAGE_E = load(StageESettings, os.environ)

DATA_DIR = (BASE_DIR / SITE.data_dir).resolve()
SECRET_KEY = SITE.secret_key or _secret_key(DATA_DIR)
DEBUG = SITE.debug
ALLOWED_HOSTS = [host.strip() for host in SITE.allowed_hosts.split(",") if host.strip()]

INSTALLED_APPS = [
    "cardpicker.operations.apps.OperationsAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    # Before django_q, whose qcluster it wraps: of two commands of one name, the first app's is run.
    "cardpicker.apps.CardpickerConfig",
    "django_q",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
ASGI_APPLICATION = "config.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "cardpicker" / "operations" / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

DATABASES = {
    "default": {
        "ENGINE": "config.database",
        "DATA_DIR": str(DATA_DIR),
        "NAME": "",
        "CONN_MAX_AGE": 0,
        # A server set up without a locale would make its databases SQL_ASCII, which cannot hold what cards are called.
        "TEST": {"CHARSET": "UTF8", "TEMPLATE": "template0"},
        "STATEMENT_TIMEOUT_S": SITE.statement_timeout_s,
        "SLOT_OPTIONS": {"connection_factory": answering_within(SLOT_ANSWER_S)},
        "OPTIONS": {**session_options(SITE.statement_timeout_s), "application_name": "cardpicker"},
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

LANGUAGE_CODE = "en-us"
TIME_ZONE = _time_zone(SITE.time_zone)
USE_I18N = False
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = DATA_DIR / "static"
WHITENOISE_USE_FINDERS = True
# The finders serve what collectstatic has not gathered, so that there is nothing to warn of before its first run.
warnings.filterwarnings("ignore", message="No directory at", module="whitenoise")

# daemonize_workers: daemonic workers may not have children, and every task starts a pool.
# queue_limit: a row's lock time starts when it is prefetched, so few are. cpu_affinity stays unset: it would pin
# a worker and its pool to one core. guard_cycle must count down exactly to 0. The ledger is the history, not save_limit.
Q_CLUSTER = {
    "name": "cardpicker",
    "orm": "default",
    "workers": STAGE_E.q_workers,
    "daemonize_workers": False,
    "timeout": STAGE_E.task_timeout_s,
    "retry": STAGE_E.task_retry_s,
    "queue_limit": STAGE_E.q_workers,
    "bulk": 1,
    "max_attempts": 3,
    "ack_failures": True,
    "catch_up": False,
    "save_limit": 250,
    "guard_cycle": 0.5,
    "poll": 0.5,
    "recycle": 200,
    "log_level": "WARNING",
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["console"], "level": "INFO"},
}
