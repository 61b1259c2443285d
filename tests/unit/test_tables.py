"""A table runs every row, names each that fails, and gives rows their own folder, store and patches."""

import os

import pytest

from tests.tables import table


def test_every_row_runs_and_each_failing_one_is_named():
    ran = []

    @table("number, wanted", [(1, 1), (2, 3), (4, 5)])
    def equal(number, wanted):
        ran.append(number)
        assert number == wanted

    with pytest.raises(ExceptionGroup, match="2 of 3 rows fail") as failed:
        equal()
    assert ran == [1, 2, 4]
    notes = [" ".join(each.__notes__) for each in failed.value.exceptions]
    assert notes == ["in row 1: {'number': 2, 'wanted': 3}", "in row 2: {'number': 4, 'wanted': 5}"]


@table("number", range(3))
def test_rows_share_no_folder_no_store_and_no_patch(tmp_path, store, monkeypatch, number):
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "left").touch()
    assert store.sessions.list() == ()
    assert os.environ.get("FOREWORD_ROW") is None
    monkeypatch.setenv("FOREWORD_ROW", str(number))
