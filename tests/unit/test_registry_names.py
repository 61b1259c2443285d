"""What projects are called: by their names, and apart from each other where they share one."""

from __future__ import annotations

from foreword.models import KnownProject
from foreword.store.projects import names


def named(*projects: tuple[str, str, str]) -> dict[str, str]:
    known = {key: KnownProject(key, name, alias_of=alias) for key, name, alias in projects}
    name = names(known)
    return {key: name(key) for key in known}


def test_names_stay_alone_or_say_how_their_keys_differ():
    # A name that only one has stays alone.
    assert named(("git.example/acme/shop", "shop", ""), ("dir:/harbour/pier", "", "")) == {
        "git.example/acme/shop": "shop",
        "dir:/harbour/pier": "pier",
    }
    # Of one name each says how its key ends otherwise.
    told = named(("dir:/a/x/shop", "shop", ""), ("dir:/b/x/shop", "shop", ""), ("git.example/acme/shop", "shop", ""))
    assert list(told.values()) == ["shop (a/x/shop)", "shop (b/x/shop)", "shop (acme/shop)"]
    # What counts as another needs no telling apart from it.
    told = named(("dir:/a/shop", "shop", ""), ("dir:/b/shop", "shop", "dir:/a/shop"))
    assert told["dir:/a/shop"] == "shop"
    assert told["dir:/b/shop"] == "shop (b/shop)"
    # A key without folders is told whole and one that nobody has seen by its end.
    assert named(("one", "same", ""), ("two", "same", "")) == {"one": "same (one)", "two": "same (two)"}
    assert names({})("dir:/far/away") == "away"
    assert names({}, also=["dir:/far/away", "dir:/near/away"])("dir:/far/away") == "away (far/away)"
