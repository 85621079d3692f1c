"""Work that may never end or crash its process, tried in a separate process."""

import json
import os
import subprocess
import sys
from pathlib import Path


def ends_in_time(script: Path, given: object, seconds: float) -> bool:
    """Whether a script ends well within so many seconds.

    Args:
        script: A Python file, which is not imported, so that nothing of this process is copied.
        given: What it reads on standard input, as JSON.
    """
    command = [sys.executable, "-P", str(script)]
    try:
        ended = subprocess.run(  # noqa: S603 - our own file, without a shell
            command,
            input=json.dumps(given).encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
            env=os.environ | {"TOKENIZERS_PARALLELISM": "false"},
        )
    except subprocess.TimeoutExpired:
        return False
    return ended.returncode == 0
