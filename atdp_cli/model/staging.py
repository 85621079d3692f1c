"""A folder with only the checked files, for libraries that read whatever lies in a folder."""

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from atdp_cli.errors import RunError
from atdp_cli.files.checkpoint_names import TOKENIZER_CONFIG


@contextmanager
def staged(files: Mapping[str, Path]) -> Iterator[Path]:
    """A folder that exists meanwhile, with a link to each file under its name.

    A tokenizer's settings are a copy without the paths that older versions of transformers left in them.

    Raises:
        RunError: No such folder can be written.
    """
    with ExitStack() as stack:
        try:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="atdp-")))
            _fill(folder, files)
        except OSError as error:
            raise RunError(
                f"A temporary folder cannot be written: {error.strerror}.", "Free some space, or set TMPDIR."
            ) from error
        yield folder


def _fill(folder: Path, files: Mapping[str, Path]) -> None:
    for relative, path in files.items():
        target = folder / relative
        target.parent.mkdir(exist_ok=True)
        if relative == TOKENIZER_CONFIG:
            target.write_text(_without_paths(path.read_text(encoding="utf-8")), encoding="utf-8")
        else:
            target.symlink_to(path.resolve())


def _without_paths(settings: str) -> str:
    return json.dumps({name: value for name, value in json.loads(settings).items() if not name.endswith("_file")})
