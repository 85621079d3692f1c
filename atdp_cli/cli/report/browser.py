"""`atdp report --open`: the page of a folder in the browser."""

import os
import sys
import webbrowser
from collections.abc import Mapping
from pathlib import Path

from atdp_cli.errors import InputError, RunError
from atdp_cli.report.document import HTML_FILE


def check_browser(folder: Path) -> None:
    """Refuse where there is no page, or nothing that could show it.

    Raises:
        InputError: The folder has no page.
        RunError: There is no display.
    """
    page = folder / HTML_FILE
    if not page.is_file():
        raise InputError(
            f"{folder} has no {HTML_FILE}.", "Give a folder that atdp harden wrote, or its .private folder."
        )
    if not has_display(sys.platform, os.environ):
        raise RunError(f"There is no display to open {page} on.", "Copy the file to a machine with a browser.")


def has_display(platform: str, environment: Mapping[str, str]) -> bool:
    """Whether a window can be shown: on other systems than macOS and Windows a display has to be named."""
    named = any(environment.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    return named or platform in ("darwin", "win32")


def open_page(folder: Path) -> None:
    """Open the folder's page.

    Raises:
        RunError: No browser could be started.
    """
    page = (folder / HTML_FILE).resolve()
    if not webbrowser.open(page.as_uri()):
        raise RunError(f"No browser could be started for {page}.", "Open the file yourself.")
