"""Wherry's workbench: measures, verifies and explains memory routines through `wherry-run`."""


def version() -> str:
    """The version that was installed; the runner's own when this is a bare source tree."""
    from importlib import metadata

    try:
        return metadata.version("wherry")
    except metadata.PackageNotFoundError:
        from wherry import runner

        return runner.version()
