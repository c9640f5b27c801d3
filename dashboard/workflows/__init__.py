"""Workflows as the pages show them: lists of definitions and runs; one run as a picture, a line of time, a table."""
