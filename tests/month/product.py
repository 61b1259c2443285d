"""A text of files -> a git repository that is really edited: what the month's sessions work on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
REMOTE = "git@example.org:havn/havn.git"  # makes the project's key the same wherever the test runs; nobody fetches it


class Product:
    """Havn, which books berths in a small marina; its times are those of the simulated clock."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True)
        self._git("init", "--quiet", "--initial-branch=main", at=0.0)
        self._git("remote", "add", "origin", REMOTE, at=0.0)
        for part in (HERE / "havn.txt").read_text(encoding="utf-8").split("=== ")[1:]:
            name, _, text = part.partition("\n")
            self.write(name, text)

    def path(self, file: str) -> str:
        return str(self.root / file)

    def read(self, file: str) -> str:
        return (self.root / file).read_text(encoding="utf-8")

    def write(self, file: str, text: str) -> None:
        (self.root / file).parent.mkdir(parents=True, exist_ok=True)
        (self.root / file).write_text(text, encoding="utf-8")

    def has(self, file: str) -> bool:
        return (self.root / file).exists()

    def move(self, file: str, to: str) -> None:
        (self.root / file).rename(self.root / to)

    def remove(self, file: str) -> None:
        (self.root / file).unlink()

    def commit(self, message: str, *, at: float, who: str) -> None:
        self._git("add", "--all", at=at)
        self._git("commit", "--quiet", "--allow-empty", "-m", message, at=at, who=who)

    def _git(self, *words: str, at: float, who: str = "nobody") -> None:
        when = f"{int(at)} +0000"
        name = {"GIT_AUTHOR_NAME": who, "GIT_COMMITTER_NAME": who}
        mail = {"GIT_AUTHOR_EMAIL": f"{who}@example.org", "GIT_COMMITTER_EMAIL": f"{who}@example.org"}
        alone = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        env = {**os.environ, **alone, **name, **mail, "GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
        subprocess.run(["git", *words], cwd=self.root, env=env, check=True, capture_output=True)
