"""An environment with trtc as a user installs it: an editable install finds its modules by a hook that takes 20 ms."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent


def installed_python(folder: Path) -> Path:
    """Make an environment in a folder: trtc from this checkout, and the libraries of the environment that runs this.

    Returns:
        The interpreter; the ``trtc`` command lies beside it.
    """
    venv = folder / "venv"
    _run(sys.executable, "-m", "venv", "--without-pip", str(venv))
    site = next(venv.glob("lib/python*/site-packages"))
    # pip's build leaves its folders beside the source: it gets a copy of what git knows.
    source = folder / "source"
    listed = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    names = subprocess.run(listed, cwd=CHECKOUT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (CHECKOUT / name).is_file():
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((CHECKOUT / name).read_bytes())
    # Appended, so that what is installed here comes first; import hooks of that environment are not run.
    (site / "libraries.pth").write_text("".join(f"{path}\n" for path in sys.path if path.endswith("site-packages")))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-qq", "--python", str(venv / "bin/python")]
    _run(*pip, "install", "--no-deps", "--no-build-isolation", "--ignore-installed", str(source))
    _run(str(venv / "bin/python"), "-m", "compileall", "-q", str(site))
    return venv / "bin/python"


def _run(*command: str) -> None:
    subprocess.run(command, check=True)
