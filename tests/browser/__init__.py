"""The dashboard in a browser. A package, so that its end can be waited for: see ``conftest.browser``."""
