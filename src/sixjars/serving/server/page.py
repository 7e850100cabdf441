"""The live page: one file without anything outside of it."""

POLICY = "default-src 'none'"


def page() -> str:
    """The whole document."""
    return "<!doctype html><title>sixjars</title>"
