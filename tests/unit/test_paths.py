"""Where everything of ours lies, and who can get in."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from foreword.errors import BadConfig, ForewordError
from foreword.paths import OUR_FOLDERS, SOCKET_PATH_BYTES, Home, expand, home, socket_problem
from tests.tables import table

if TYPE_CHECKING:
    from collections.abc import Iterator

STRANGER = 12345  # a uid that is nobody here

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: only root can give a file to another user")
not_root = pytest.mark.skipif(os.geteuid() == 0, reason="needs a plain user: root may write everywhere")


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose path is short enough for a socket, as pytest's own are not on macOS."""
    folder = Path(tempfile.mkdtemp(dir="/tmp")).resolve()
    yield folder
    shutil.rmtree(folder)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode) & 0o777


class TestWhere:
    def test_home_is_where_the_environment_says(self):
        # Is dot foreword in the users folder unless told.
        assert home({"HOME": "/home/ada"}).root == Path("/home/ada/.foreword")
        # Is where the environment says.
        assert home({"HOME": "/home/ada", "FOREWORD_HOME": "/data/memory"}).root == Path("/data/memory")
        # Knows the users tilde.
        assert home({"HOME": "/home/ada", "FOREWORD_HOME": "~/memory"}).root == Path("/home/ada/memory")
        # An empty name is no name.
        assert home({"HOME": "/home/ada", "FOREWORD_HOME": ""}).root == Path("/home/ada/.foreword")
        # Expands a tilde at the start alone.
        environ = {"HOME": "/home/ada/"}
        assert expand("~", environ) == "/home/ada"
        assert expand("~/a/~", environ) == "/home/ada/a/~"
        assert expand("a~/b", environ) == "a~/b"

    @table("folder", ["memory", "./memory", "../memory", "~ada/memory", " /memory", "/mem\0ory"])
    def test_refuses_a_path_that_would_depend_on_the_current_folder(self, folder):
        with pytest.raises(BadConfig, match="absolute") as caught:
            home({"HOME": "/home/ada", "FOREWORD_HOME": folder})
        assert "FOREWORD_HOME" in caught.value.hint

    @table("environ", [{}, {"HOME": ""}, {"HOME": "relative"}])
    def test_asks_the_user_database_when_the_environment_knows_no_home(self, environ):
        try:
            folder = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:  # a container with a uid of its own
            with pytest.raises(BadConfig, match="no home folder"):
                home(environ)
        else:
            assert home(environ).root == Path(folder) / ".foreword"


class TestPrepare:
    @table("mask", [0o000, 0o022, 0o077, 0o777])
    def test_makes_folders_that_only_we_can_enter_whatever_the_umask(self, tmp_path, umask, mask):
        here = Home(tmp_path / "home")
        os.umask(mask)
        here.prepare()
        assert {mode(folder) for folder in (here.root, here.run, here.spool, here.backups, here.logs)} == {0o700}

    def test_a_home_is_prepared_safely_or_the_way_out_is_told(self, tmp_path_factory):
        # Can be called again and leaves what is there.
        tmp_path = tmp_path_factory.mktemp("x")
        here = Home(tmp_path / "home")
        here.prepare()
        here.database.write_bytes(b"memories")
        here.prepare()
        assert here.database.read_bytes() == b"memories"
        # Closes folders that were left open.
        tmp_path = tmp_path_factory.mktemp("x")
        here = Home(tmp_path / "home")
        here.prepare()
        for folder in (here.root, here.spool):
            folder.chmod(0o755)
        here.prepare()
        assert (mode(here.root), mode(here.spool)) == (0o700, 0o700)
        # Never closes a folder that others use.
        tmp_path = tmp_path_factory.mktemp("x")
        shared = tmp_path / "shared"
        shared.mkdir()
        shared.chmod(0o777)
        (shared / "somebodys").mkdir()
        with pytest.raises(ForewordError, match="Foreword's") as caught:
            Home(shared).prepare()
        assert "folder of its own" in caught.value.hint
        assert mode(shared) == 0o777
        # Tells the way out where the parent is missing.
        tmp_path = tmp_path_factory.mktemp("x")
        with pytest.raises(ForewordError, match="No such file") as caught:
            Home(tmp_path / "no" / "home").prepare()
        assert str(tmp_path / "no") in caught.value.hint
        # Tells the way out where a file stands in place of a folder of ours.
        tmp_path = tmp_path_factory.mktemp("x")
        here = Home(tmp_path / "home")
        here.root.mkdir(mode=0o700)
        here.spool.touch()
        with pytest.raises(ForewordError, match="spool"):
            here.prepare()
        # Tells the way out of a name that is too long.
        tmp_path = tmp_path_factory.mktemp("x")
        with pytest.raises(ForewordError, match="too long"):
            Home(tmp_path / ("x" * 300)).prepare()
        # Follows the users own link to another disk.
        tmp_path = tmp_path_factory.mktemp("x")
        (tmp_path / "disk").mkdir(mode=0o700)
        (tmp_path / "home").symlink_to(tmp_path / "disk")
        Home(tmp_path / "home").prepare()
        assert (tmp_path / "disk" / "run").is_dir()
        # Refuses a link that leads nowhere.
        tmp_path = tmp_path_factory.mktemp("x")
        (tmp_path / "home").symlink_to(tmp_path / "gone")
        with pytest.raises(ForewordError):
            Home(tmp_path / "home").prepare()

    @table("names", [[], ["config.toml"], ["memory.db", "other"], OUR_FOLDERS])
    def test_takes_an_open_folder_that_is_empty_or_ours(self, tmp_path, names):
        here = Home(tmp_path / "home")
        here.root.mkdir(mode=0o755)
        for name in names:
            (here.root / name).mkdir() if name in OUR_FOLDERS else (here.root / name).touch()
        here.prepare()
        assert mode(here.root) == 0o700

    @table("where", ["file", "file/home"])
    def test_tells_the_way_out_where_a_file_stands_in_the_way(self, tmp_path, where):
        (tmp_path / "file").touch()
        with pytest.raises(ForewordError, match="is a file") as caught:
            Home(tmp_path / where).prepare()
        assert "FOREWORD_HOME" in caught.value.hint

    @table("bits", [0o500, 0o400])
    def test_does_not_open_a_folder_that_the_user_closed(self, tmp_path, bits):
        here = Home(tmp_path / "my home")
        here.prepare()
        here.root.chmod(bits)
        with pytest.raises(ForewordError) as caught:
            here.prepare()
        assert f"chmod 700 '{here.root}'" in caught.value.hint
        here.root.chmod(0o700)

    @not_root
    def test_tells_the_way_out_where_the_parent_cannot_be_written(self, tmp_path):
        tmp_path.chmod(0o500)
        with pytest.raises(ForewordError, match="Permission") as caught:
            Home(tmp_path / "home").prepare()
        assert "FOREWORD_HOME" in caught.value.hint
        tmp_path.chmod(0o700)

    @table("name", OUR_FOLDERS)
    def test_refuses_a_link_in_place_of_a_folder_of_ours(self, tmp_path, name):
        here = Home(tmp_path / "home")
        here.root.mkdir(mode=0o700)
        (tmp_path / "elsewhere").mkdir(mode=0o755)
        (here.root / name).symlink_to(tmp_path / "elsewhere")
        with pytest.raises(ForewordError, match="link"):
            here.prepare()
        assert mode(tmp_path / "elsewhere") == 0o755

    @only_root
    def test_nothing_of_another_user_is_taken(self, tmp_path_factory):
        # Refuses a folder of another user.
        tmp_path = tmp_path_factory.mktemp("x")
        (tmp_path / "home").mkdir()
        os.chown(tmp_path / "home", STRANGER, STRANGER)
        with pytest.raises(ForewordError, match=f"uid {STRANGER}") as caught:
            Home(tmp_path / "home").prepare()
        assert "your own" in caught.value.hint
        # Refuses a link to a folder of another user.
        tmp_path = tmp_path_factory.mktemp("x")
        (tmp_path / "theirs").mkdir()
        os.chown(tmp_path / "theirs", STRANGER, STRANGER)
        (tmp_path / "home").symlink_to(tmp_path / "theirs")
        with pytest.raises(ForewordError, match=f"uid {STRANGER}"):
            Home(tmp_path / "home").prepare()
        assert not list((tmp_path / "theirs").iterdir())
        # Refuses the link of another user even to a folder of ours.
        tmp_path = tmp_path_factory.mktemp("x")
        (tmp_path / "ours").mkdir(mode=0o700)
        (tmp_path / "home").symlink_to(tmp_path / "ours")
        os.chown(tmp_path / "home", STRANGER, STRANGER, follow_symlinks=False)
        with pytest.raises(ForewordError, match="not one of yours"):
            Home(tmp_path / "home").prepare()
        assert not list((tmp_path / "ours").iterdir())


class TestSocket:
    def test_a_socket_path_is_fine_up_to_its_longest(self, short):
        # A home that is not there yet is fine.
        assert socket_problem(Home(short / "h")) == ""
        # A prepared home is fine even in the shared temp folder.
        here = Home(short / "h")
        here.prepare()
        assert socket_problem(here) == ""
        # The longest path that is fine can be bound.
        here = Home(short / ("x" * (SOCKET_PATH_BYTES - len(f"{short}//run/worker.sock"))))
        here.prepare()
        assert len(str(here.socket)) == SOCKET_PATH_BYTES
        assert socket_problem(here) == ""
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(here.socket))
        # A path of one byte more is told with the way out.
        here = Home(short / ("x" * (SOCKET_PATH_BYTES + 1 - len(f"{short}//run/worker.sock"))))
        assert "104 bytes" in socket_problem(here)
        assert "FOREWORD_HOME" in socket_problem(here)
        # Counts bytes and not characters.
        assert "bytes" in socket_problem(Home(short / ("é" * 40)))

    def test_a_parent_where_anyone_can_swap_our_folder_is_a_problem(self, short):
        here = Home(short / "h")
        here.prepare()
        assert socket_problem(here) == ""
        short.chmod(0o777)
        assert "replace" in socket_problem(here)
        short.chmod(0o1777)
        assert socket_problem(here) == ""
