"""trouble: a failure that was swallowed is found again, whole, and never becomes another failure."""

import threading

from hypothesis import given
from hypothesis import strategies as st

from foreword.problems import MOST_BYTES, Problem, note, noted


def test_troubles_come_back_whole_and_bounded(tmp_path_factory):
    # What was noted comes back oldest first.
    tmp_path = tmp_path_factory.mktemp("x")
    path = str(tmp_path / "trouble")
    troubles = tuple(Problem(float(n), "hook: spool", f"OSError: {n}") for n in range(5))
    for trouble in troubles:
        note(path, trouble)
    assert noted(path) == troubles
    assert (tmp_path / "trouble").stat().st_mode & 0o777 == 0o600
    # A long story is cut.
    tmp_path = tmp_path_factory.mktemp("x")
    path = str(tmp_path / "trouble")
    note(path, Problem(1.0, "x", "y" * 100_000))
    assert len(noted(path)[0].what) == 2000
    # The file stays small and the newest are there.
    tmp_path = tmp_path_factory.mktemp("x")
    path = str(tmp_path / "trouble")
    for n in range(500):
        note(path, Problem(float(n), "x", "y" * 2000))
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 2 * (MOST_BYTES + 3000)
    found = noted(path)
    assert [trouble.at for trouble in found] == [float(n) for n in range(500 - len(found), 500)]
    assert len(found) > 100
    # A torn line costs only itself.
    tmp_path = tmp_path_factory.mktemp("x")
    path = str(tmp_path / "trouble")
    note(path, Problem(1.0, "a", "first"))
    note(path, Problem(2.0, "b", "second"))
    with open(path, "rb+") as file:
        file.truncate((tmp_path / "trouble").stat().st_size - 7)
    note(path, Problem(3.0, "c", "third"))
    assert [trouble.what for trouble in noted(path)] == ["first", "third"]
    # Lines that cannot be read are passed over.
    tmp_path = tmp_path_factory.mktemp("x")
    path = tmp_path / "trouble"
    path.write_bytes(
        b'\xff\xfe\n[]\n{}\n3\n{"at":"x","where":1,"what":2}\n{"at":1,"where":null,"what":[]}\n' + b"[" * 99_999
    )
    note(str(path), Problem(1.0, "a", "b"))
    assert noted(str(path)) == (Problem(1.0, "a", "b"),)
    # A home that cannot be written to is no further failure.
    tmp_path = tmp_path_factory.mktemp("x")
    note(str(tmp_path / "nowhere" / "trouble"), Problem(1.0, "a", "b"))
    note(str(tmp_path), Problem(1.0, "a", "b"))
    assert noted(str(tmp_path / "nowhere" / "trouble")) == ()
    assert noted(str(tmp_path)) == ()


@given(where=st.text(), what=st.text(alphabet=st.characters(), max_size=300))
def test_any_text_comes_back(tmp_path_factory, where, what):
    path = str(tmp_path_factory.mktemp("t") / "trouble")
    note(path, Problem(1.5, where, what))
    (trouble,) = noted(path)
    assert trouble == Problem(1.5, *(text.encode("utf-8", "replace").decode() for text in (where, what)))


def test_notes_of_many_at_once_are_all_there(tmp_path):
    path = str(tmp_path / "trouble")
    threads = [
        threading.Thread(target=lambda n=n: [note(path, Problem(n, "x", str(m))) for m in range(50)]) for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(noted(path)) == 400
