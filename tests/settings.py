"""The project's settings, with everything that would reach outside of a test run turned inwards."""

import atexit
import os
import shutil
import tempfile

# Before the real settings are read: a run never touches the var dir of a developer.
if "SCHEDULER_VAR_DIR" not in os.environ:
    os.environ["SCHEDULER_VAR_DIR"] = tempfile.mkdtemp(prefix="mainspring-test-")
    atexit.register(shutil.rmtree, os.environ["SCHEDULER_VAR_DIR"], ignore_errors=True)
os.environ.setdefault("DJANGO_SECRET_KEY", "only-for-tests")

from scheduler_project.settings import *  # noqa: F403
from scheduler_project.settings import DATABASES, VAR_DIR

if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # A file: threads of a worker and a browser's requests use connections of their own.
    DATABASES["default"]["TEST"] = {"NAME": str(VAR_DIR / "test.sqlite3")}

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
