"""Pure rules: no Django, no Redis, no clock of its own."""
