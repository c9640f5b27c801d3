"""The Django project that runs Mainspring: settings, addresses, servers' entry points."""
