"""The only code that speaks Redis. It knows keys, bytes, scripts and connections; it does not know the rules of
jobs."""
