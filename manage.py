#!/usr/bin/env python
"""Django's command line, for this project."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_project.settings")
    try:
        from django.core.management import execute_from_command_line
    except ImportError as error:
        raise SystemExit(
            f"Django is not installed for {sys.executable}. Run bin/setup, then .venv/bin/python manage.py …"
        ) from error
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
