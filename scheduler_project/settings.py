"""Settings of the project, read from the environment (see .env.example). Safe for development as they stand."""

from __future__ import annotations

from pathlib import Path

import dj_database_url
import django

from jobs.store import embedded
from scheduler_project import environment

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = BASE_DIR / environment.text("SCHEDULER_VAR_DIR", "var")
DEBUG = environment.boolean("DJANGO_DEBUG", True)

# The scheduler -------------------------------------------------------------------------------------------------------

SCHEDULER = {
    "REDIS_URL": environment.text("SCHEDULER_REDIS_URL", "embedded:"),
    "VAR_DIR": VAR_DIR,
    "NAMESPACE": environment.text("SCHEDULER_NAMESPACE", "mainspring"),
    "LEASE_SECONDS": environment.seconds("SCHEDULER_LEASE_SECONDS", 10.0),
    "VERSION": environment.text("SCHEDULER_VERSION", ""),
    "METRICS_TOKEN": environment.text("SCHEDULER_METRICS_TOKEN", ""),
}

# Security ------------------------------------------------------------------------------------------------------------

SECRET_KEY = environment.secret_key("DJANGO_SECRET_KEY", development=DEBUG, var_dir=VAR_DIR)
ALLOWED_HOSTS = environment.words("DJANGO_ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"] if DEBUG else [])
CSRF_TRUSTED_ORIGINS = environment.words("DJANGO_CSRF_TRUSTED_ORIGINS")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not DEBUG
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

# Applications --------------------------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "jobs",
    "dashboard",
    *(["samples"] if DEBUG else []),
    *environment.words("SCHEDULER_APPS"),
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "dashboard.middleware.SecurityHeaders",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "dashboard.zones.ReadersZone",
]

ROOT_URLCONF = "scheduler_project.urls"
ASGI_APPLICATION = "scheduler_project.asgi.application"
WSGI_APPLICATION = "scheduler_project.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# Database ------------------------------------------------------------------------------------------------------------

DATABASES = {
    "default": dj_database_url.config(default=f"sqlite:///{VAR_DIR / 'db.sqlite3'}"),
}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    Path(DATABASES["default"]["NAME"]).parent.mkdir(parents=True, exist_ok=True)
    # Web, workers and admin write at once: readers must not block writers, and a writer waits for its turn from the
    # start of its transaction instead of failing in the middle of it.
    DATABASES["default"]["OPTIONS"] = {
        "timeout": 20,
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL",
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Channel layer -------------------------------------------------------------------------------------------------------
# For consumers of your own apps that send to one another. The dashboard needs none: each web process reads for itself.
# The pub/sub layer, because the default one dies of the read time-out that redis-py 8 gives to idle connections.

CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {
            "hosts": [environment.channel_host(embedded.address(str(SCHEDULER["REDIS_URL"]), VAR_DIR))],
            "prefix": f"{SCHEDULER['NAMESPACE']}-channels",
        },
    },
}

# Pages ---------------------------------------------------------------------------------------------------------------

# Names instead of addresses: the site also works below a path of a proxy.
FORCE_SCRIPT_NAME = "/" + path if (path := environment.text("DJANGO_SCRIPT_NAME", "").strip("/")) else None
LOGIN_URL = "dashboard:login"
LOGIN_REDIRECT_URL = "dashboard:overview"
LOGOUT_REDIRECT_URL = LOGIN_URL
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

STATIC_URL = f"{FORCE_SCRIPT_NAME or ''}/static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = DEBUG
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "dashboard.storage.HashedStaticFiles"
    },
}

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True

# Samples -------------------------------------------------------------------------------------------------------------

SAMPLES_DIR = VAR_DIR / "samples"
SAMPLES_BASE_URL = environment.text("SAMPLES_BASE_URL", "http://127.0.0.1:8000")
if DEBUG:  # mails become files
    if django.VERSION >= (6, 1):
        MAILERS = {
            "default": {
                "BACKEND": "django.core.mail.backends.filebased.EmailBackend",
                "OPTIONS": {"file_path": SAMPLES_DIR / "mail"},
            }
        }
    else:
        EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
        EMAIL_FILE_PATH = SAMPLES_DIR / "mail"

# Logs ----------------------------------------------------------------------------------------------------------------

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "jobs.core.records.JobFormatter",
            "format": "%(asctime)s %(levelname)-7s %(name)s: %(job)s%(message)s",
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "django": {"handlers": [], "level": "INFO"},  # its own console handler would show each line twice
        "watchfiles": {"level": "WARNING"},  # the reloaders say themselves what changed
    },
}
