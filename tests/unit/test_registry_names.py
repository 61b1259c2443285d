"""What projects are called: by their names, and apart from each other where they share one."""

from __future__ import annotations

from foreword.store.registry import Known, names


def named(*projects: tuple[str, str, str]) -> dict[str, str]:
    known = {key: Known(key, name, alias_of=alias) for key, name, alias in projects}
    name = names(known)
    return {key: name(key) for key in known}


def test_a_name_that_only_one_has_stays_alone():
    assert named(("git.example/acme/shop", "shop", ""), ("dir:/harbour/pier", "", "")) == {
        "git.example/acme/shop": "shop",
        "dir:/harbour/pier": "pier",
    }


def test_of_one_name_each_says_how_its_key_ends_otherwise():
    told = named(("dir:/a/x/shop", "shop", ""), ("dir:/b/x/shop", "shop", ""), ("git.example/acme/shop", "shop", ""))
    assert list(told.values()) == ["shop (a/x/shop)", "shop (b/x/shop)", "shop (acme/shop)"]


def test_what_counts_as_another_needs_no_telling_apart_from_it():
    told = named(("dir:/a/shop", "shop", ""), ("dir:/b/shop", "shop", "dir:/a/shop"))
    assert told["dir:/a/shop"] == "shop"
    assert told["dir:/b/shop"] == "shop (b/shop)"


def test_a_key_without_folders_is_told_whole_and_one_that_nobody_has_seen_by_its_end():
    assert named(("one", "same", ""), ("two", "same", "")) == {"one": "same (one)", "two": "same (two)"}
    assert names({})("dir:/far/away") == "away"
    assert names({}, also=["dir:/far/away", "dir:/near/away"])("dir:/far/away") == "away (far/away)"
