"""A folder with only the checked files, for libraries that read whatever lies in a folder."""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import ExitStack, contextmanager
from io import BufferedReader
from pathlib import Path

from atdp_cli.errors import InputError, RunError
from atdp_cli.files.checkpoint_names import TOKENIZER_CONFIG
from atdp_cli.files.documents import open_regular


@contextmanager
def staged(files: Mapping[str, Path], read: MutableMapping[Path, str] | None = None) -> Iterator[Path]:
    """A folder that exists meanwhile, with a link to each file under its name.

    The links lead to the files as they were opened, also where others have taken their names since. A tokenizer's
    settings are a copy without the paths that older versions of transformers left in them.

    Args:
        read: Gets the SHA-256 of each file as it was read.

    Raises:
        RunError: No such folder can be written, or a file was changed while it was read.
        InputError: A file cannot be read.
    """
    with ExitStack() as stack:
        opened = {name: _opened(path, stack) for name, path in files.items()}
        before = {name: _version(stream) for name, stream in opened.items()}
        try:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="atdp-")))
            _fill(folder, files, opened)
        except OSError as error:
            raise RunError(
                f"A temporary folder cannot be written: {error.strerror}.", "Free some space, or set TMPDIR."
            ) from error
        yield folder
        for name, stream in opened.items():
            if read is not None:
                stream.seek(0)
                read[files[name]] = hashlib.file_digest(stream, "sha256").hexdigest()
            if _version(stream) != before[name]:
                raise changed(files[name])


def changed(path: Path) -> RunError:
    """What is raised where a file is another than the one that was checked."""
    return RunError(f"{path} was changed while it was read.", "Wait until it is written, and start again.")


def _opened(path: Path, stack: ExitStack) -> BufferedReader:
    try:
        return stack.enter_context(open_regular(path))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.", "Check the file and its permissions.") from error


def _version(stream: BufferedReader) -> tuple[int, int, int]:
    """What changes with a file's content; nobody can set the last."""
    about = os.fstat(stream.fileno())
    return about.st_size, about.st_mtime_ns, about.st_ctime_ns


def _fill(folder: Path, files: Mapping[str, Path], opened: Mapping[str, BufferedReader]) -> None:
    for relative, stream in opened.items():
        target, handle = folder / relative, Path(f"/proc/self/fd/{stream.fileno()}")
        target.parent.mkdir(exist_ok=True)
        if relative == TOKENIZER_CONFIG:
            settings = json.loads(stream.read().decode("utf-8"))
            kept = {name: value for name, value in settings.items() if not name.endswith("_file")}
            target.write_text(json.dumps(kept), encoding="utf-8")
        else:
            # Systems without /proc follow the name.
            target.symlink_to(handle if handle.exists() else files[relative].resolve())
