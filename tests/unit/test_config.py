"""Settings can always be used; what is wrong with them is reported, and writing changes nothing else."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foreword.config import MOST_BYTES, SETTINGS, TOKENIZERS, Loaded, Setting, change, load, load_synonyms, unset
from foreword.errors import BadConfig, ForewordError
from foreword.layout import LAYOUT, MOST_TOKENS, UNCOUNTED, merge_layout, window_budget
from foreword.models import KINDS, TRIGGERS
from foreword.paths import OUR_FOLDERS, Home
from foreword.recall.tokens import FAMILIES
from tests.settings_page import settings_page
from tests.tables import table

ROOT = Path(__file__).parents[2]
FORMED = {
    "address": ("", "http://127.0.0.1:11434/v1", "https://a.example/v1/embeddings"),
    "model": ("", "nomic-embed-text:v1.5", "BAAI/bge-m3"),
    "key_source": ("", "ANTHROPIC_API_KEY", "~/.keys/anthropic", "/run/keys/model"),
}
DEFAULTS = {setting.name: setting.default for setting in SETTINGS}
# One function call for many examples: each writes the file anew, so that sharing the folder is safe.
fuzz = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def prepared(folder: Path) -> Home:
    here = Home(folder / "home")
    here.prepare()
    return here


@pytest.fixture
def home(tmp_path) -> Home:
    return prepared(tmp_path)


def written(home: Home, text: str, environ: dict[str, str] | None = None) -> Loaded:
    home.config.write_text(text, encoding="utf-8", newline="")
    return load(home, environ or {})


def values(loaded: Loaded) -> dict[str, Any]:
    return {name: each for name, each in vars(loaded.settings).items() if name != "layout"}


class TestTable:
    def test_the_page_tells_the_settings_and_its_examples_work(self, home):
        assert len(SETTINGS) <= 40
        assert ("auto", *FAMILIES) == TOKENIZERS
        # The strictest threshold comes first.
        names = ("threshold_session_start", "threshold_prompt", "threshold_question")
        strict, middle, wide = (DEFAULTS[name] for name in names)
        assert strict > middle > wide > 0
        # The page tells exactly what the code does.
        page = (ROOT / "docs" / "settings.md").read_text("utf-8")
        assert page == settings_page(), "write it anew: python -m tests.settings_page > docs/settings.md"
        # The examples of the page work.
        layout, synonyms = re.findall(r"```toml\n(.*?)```", settings_page(), re.DOTALL)
        loaded = written(home, layout)
        home.synonyms.write_text(synonyms)
        words, problems = load_synonyms(home)
        assert (loaded.problems, loaded.origin["layout"], problems) == ((), "file", ())
        assert words["deploy"] == ("ci", "pipeline", "helm")
        assert "test" not in words

    @table("setting", SETTINGS)
    def test_every_default_is_allowed(self, home, setting):
        raw = ",".join(setting.default) if setting.kind in ("list", "patterns") else str(setting.default)
        change(home, setting.name, raw)
        loaded = load(home, {})
        assert getattr(loaded.settings, setting.name) == setting.default
        assert (loaded.origin[setting.name], loaded.problems) == ("file", ())

    @table("setting", SETTINGS)
    def test_every_meaning_is_one_sentence(self, setting):
        assert re.fullmatch(r"[A-Z][^.|]*\.", setting.what)

    @table(
        ("name", "value"),
        [
            ("model_key_env", "sk-abcdefghijklmnop"),
            ("model_key_env", "ghp_abcdefghijklmnop"),
            ("model_url", "https://me:secret@a.example/v1"),
            ("model_url", "https://a.example/v1?key=secret"),
            ("model_url", "file:///etc/passwd"),
        ],
    )
    def test_a_key_in_the_place_of_its_name_is_refused_and_not_repeated(self, home, name, value):
        with pytest.raises(BadConfig) as refused:
            change(home, name, value)
        assert value not in f"{refused.value} {refused.value.hint}"
        assert getattr(written(home, f'{name} = "{value}"').settings, name) == ""


class TestLoad:
    def test_the_environment_goes_over_the_file_and_the_file_over_the_default(self, tmp_path_factory, tmp_path):
        # Without a file everything is the default.
        home = prepared(tmp_path_factory.mktemp("x"))
        loaded = load(home, {})
        assert values(loaded) == DEFAULTS
        assert loaded.settings.layout == LAYOUT
        assert set(loaded.origin.values()) == {"default"}
        assert loaded.problems == ()
        # Works before the home exists.
        assert load(Home(tmp_path / "nowhere"), {}).problems == ()
        # Takes the file over the default and the environment over the file.
        home = prepared(tmp_path_factory.mktemp("x"))
        loaded = written(
            home, "capture = false\nbackups_keep = 7\n", {"FOREWORD_BACKUPS_KEEP": "8", "FOREWORD_INJECT": "off"}
        )
        found = loaded.settings
        assert (found.capture, found.backups_keep, found.inject) == (False, 8, False)
        origin = loaded.origin
        assert (origin["capture"], origin["backups_keep"], origin["inject"]) == ("file", "environment", "environment")
        assert origin["search_limit"] == "default"
        # An empty word in the environment says nothing.
        home = prepared(tmp_path_factory.mktemp("x"))
        assert load(home, {"FOREWORD_CAPTURE": "", "FOREWORD_BACKUPS_KEEP": ""}).problems == ()
        # A bad word in the environment is told and the file still counts.
        home = prepared(tmp_path_factory.mktemp("x"))
        loaded = written(home, "capture = false\n", {"FOREWORD_CAPTURE": "maybe"})
        assert loaded.settings.capture is False
        assert loaded.origin["capture"] == "file"
        assert len(loaded.problems) == 1
        assert "FOREWORD_CAPTURE" in loaded.problems[0]
        assert "true or false, not 'maybe'" in loaded.problems[0]
        # A list has commas in the environment and tildes are expanded.
        home = prepared(tmp_path_factory.mktemp("x"))
        environ = {"FOREWORD_OFF_PROJECTS": "~/secret, github.com/a/b,", "HOME": "/home/ada"}
        assert load(home, environ).settings.off_projects == ("/home/ada/secret", "github.com/a/b")
        # A file may begin with the mark that windows editors leave.
        home = prepared(tmp_path_factory.mktemp("x"))
        assert written(home, "\ufeffcapture = false\r\nbackups_keep = 3\r\n").settings.backups_keep == 3
        # A number may be whole where a fraction is wanted.
        home = prepared(tmp_path_factory.mktemp("x"))
        found = written(home, "threshold_prompt = 1\n").settings.threshold_prompt
        assert (found, type(found)) == (1.0, float)

    @table(("text", "on"), [("0", False), ("No", False), (" OFF ", False), ("1", True), ("Yes", True), ("true", True)])
    def test_a_switch_is_turned_in_the_words_of_a_shell(self, home, text, on):
        assert written(home, f"capture = {str(not on).lower()}", {"FOREWORD_CAPTURE": text}).settings.capture is on


class TestBroken:
    @table(
        ("text", "says"),
        [
            ("capture = false\nthis is no toml\n", "line 2"),
            ("capture = false\n\n[layout\n", "line 3"),
            ("capture = false\ncapture = true\n", "line 2"),
            ('tokenizer = "open\n', "line 1"),
            ("capture = false\nbackups_keep = " + "9" * 5000, "too long or too deep"),
            ("capture = false\n\noff_projects = " + "[" * 20000, "too long or too deep"),
        ],
    )
    def test_a_file_that_is_not_toml_means_all_defaults_and_says_so(self, home, text, says):
        loaded = written(home, text)
        assert values(loaded) == DEFAULTS
        assert len(loaded.problems) == 1
        assert says in loaded.problems[0]
        assert loaded.problems[0].endswith("built-in values are used")

    def test_a_file_that_cannot_be_read_is_told_and_does_not_hang(self, tmp_path_factory, tmp_path):
        # A file that is not UTF-8 means all defaults.
        home = prepared(tmp_path_factory.mktemp("x"))
        home.config.write_bytes(b"capture = false\n# caf\xe9\n")
        loaded = load(home, {})
        assert values(loaded) == DEFAULTS
        assert "not UTF-8" in loaded.problems[0]
        # A folder in its place is told.
        home = prepared(tmp_path_factory.mktemp("x"))
        home.config.mkdir()
        assert "not a file" in load(home, {}).problems[0]
        # A pipe in its place does not hang.
        home = prepared(tmp_path_factory.mktemp("x"))
        os.mkfifo(home.config)
        assert "not a file" in load(home, {}).problems[0]
        # A link that leads nowhere is told.
        home = prepared(tmp_path_factory.mktemp("x"))
        home.config.symlink_to(home.root / "gone")
        assert "leads nowhere" in load(home, {}).problems[0]
        # A link in a circle is told.
        home = prepared(tmp_path_factory.mktemp("x"))
        home.config.symlink_to(home.config)
        assert "cannot be read" in load(home, {}).problems[0]
        # A home that is a file is told.
        (tmp_path / "home").touch()
        assert "cannot be read" in load(Home(tmp_path / "home"), {}).problems[0]
        # A file beyond all reason is told and not read.
        home = prepared(tmp_path_factory.mktemp("x"))
        home.config.write_bytes(b"# " + b"x" * MOST_BYTES)
        assert "64 KB" in load(home, {}).problems[0]

    @table(
        ("line", "says"),
        [
            ("backups_keep = 'ten'", "must be a whole number from 0 to 100, not 'ten'"),
            ("backups_keep = -1", "from 0 to 100, not -1"),
            ("backups_keep = 0x" + "f" * 9000, "too long to show"),
            ("backups_keep = {x = 1}", "not {'x': 1}"),
            ("capture = 1", "must be true or false, not 1"),
            ("threshold_prompt = nan", "not nan"),
            ("threshold_prompt = 1.1", "from 0 to 1, not 1.1"),
            ("log_level = 'loud'", "must be info or debug or warning or error, not 'loud'"),
            ("tokenizer = ['auto']", "must be auto or claude"),
            ("off_projects = '/a'", "must be a list"),
            ("off_projects = ['./here']", "absolute"),
            ("captur = true", "did you mean `capture`"),
            ('"\\u001b[31m" = 1', "is not a setting"),
            ("deadline.prompt = 1", "is not a setting"),
            ("layout = 3", "must be a table"),
        ],
    )
    def test_one_bad_value_costs_that_value_alone(self, home, line, says):
        loaded = written(home, f"# mine\nsearch_limit = 9\n{line}\ninject = false\n")
        assert values(loaded) == {**DEFAULTS, "search_limit": 9, "inject": False}
        assert len(loaded.problems) == 1
        assert says in loaded.problems[0]
        assert loaded.problems[0].isprintable()

    @fuzz
    @given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
    def test_no_bytes_whatever_raise(self, home, data):
        home.config.write_bytes(data)
        home.synonyms.write_bytes(data)
        load(home, {})
        load_synonyms(home)

    @fuzz
    @given(
        st.lists(
            st.tuples(
                st.sampled_from(
                    [*DEFAULTS, "layout.prompt.budget", "layout.prompt", "layout", "[layout.prompt]\na", "q"]
                ),
                st.sampled_from(
                    ["1", "'x'", "[\n1,\n2]", "{a = 1}", "true", "0.5", "'''\n]\n'''", "1979-05-27", "nan", ""]
                ),
            ),
            max_size=5,
        )
    )
    def test_whatever_is_written_the_settings_can_be_used(self, home, pairs):
        loaded = written(home, "\n".join(f"{name} = {text}" for name, text in pairs))
        for setting in SETTINGS:
            assert type(getattr(loaded.settings, setting.name)) is type(setting.default)
        assert all(str(home.config) in each for each in loaded.problems)


class TestChange:
    def test_a_change_writes_what_was_asked_and_nothing_else(self, tmp_path_factory):
        # Writes only what was changed.
        home = prepared(tmp_path_factory.mktemp("x"))
        change(home, "capture", "off")
        assert home.config.read_text() == "capture = false\n"
        # Makes the home when it is not there.
        tmp_path = tmp_path_factory.mktemp("x")
        here = Home(tmp_path / "home")
        change(here, "backups_keep", "5")
        assert load(here, {}).settings.backups_keep == 5
        # Keeps comments and everything else.
        home = prepared(tmp_path_factory.mktemp("x"))
        table = "[layout.prompt]\n# because of the big repository\nbudget = 400 # less\n"
        written(home, f"# mine\n\ninject = true  # for now\n\n{table}")
        change(home, "inject", "false")
        change(home, "backups_keep", "5")
        change(home, "layout.prompt.budget", "450")
        table = table.replace("400", "450")
        assert home.config.read_text() == f"# mine\n\ninject = false  # for now\nbackups_keep = 5\n\n{table}"
        # Takes a list with commas or as toml.
        home = prepared(tmp_path_factory.mktemp("x"))
        change(home, "off_projects", "~/a, /b")
        assert home.config.read_text() == 'off_projects = ["~/a", "/b"]\n'
        change(home, "off_projects", '["/c, d"]')
        assert load(home, {}).settings.off_projects == ("/c, d",)
        # Repairs a bad value.
        home = prepared(tmp_path_factory.mktemp("x"))
        written(home, "backups_keep = 'ten' # many\n")
        change(home, "backups_keep", "10")
        assert home.config.read_text() == "backups_keep = 10 # many\n"
        # Leaves a private file and no other.
        home = prepared(tmp_path_factory.mktemp("x"))
        written(home, "capture = true\n")
        home.config.chmod(0o644)
        before = home.config.stat().st_ino
        change(home, "capture", "false")
        assert stat.S_IMODE(home.config.stat().st_mode) == 0o600
        assert home.config.stat().st_ino != before, "written in place: a crash would leave half a file"
        assert sorted(path.name for path in home.root.iterdir()) == sorted([*OUR_FOLDERS, "config.toml"])
        # Keeps the link to the users dotfiles.
        tmp_path = tmp_path_factory.mktemp("x")
        home = prepared(tmp_path_factory.mktemp("x"))
        (tmp_path / "dotfiles.toml").write_text("capture = true\n")
        home.config.symlink_to(tmp_path / "dotfiles.toml")
        change(home, "capture", "false")
        assert home.config.is_symlink()
        assert (tmp_path / "dotfiles.toml").read_text() == "capture = false\n"
        # Tells the way out where the home cannot be made.
        tmp_path = tmp_path_factory.mktemp("x")
        with pytest.raises(ForewordError) as caught:
            change(Home(tmp_path / "no" / "home"), "capture", "0")
        assert caught.value.hint

    @table(
        "text",
        [
            "",
            "# only a comment",
            "inject = false",
            "inject = false\r\n\r\n[layout.prompt]\r\nbudget = 3\r\n",
            "\n\n[layout]\n",
            "layout.prompt.budget = 3\n",
            "layout = {prompt = {budget = 3}}\n",
            "[layout.session_start.rules]\ncap = 4\n",
            "off_projects = [\n  '/a', # why\n]\n[layout.question] # [not a table]",
        ],
    )
    @table(("name", "raw"), [("capture", "0"), ("layout.session_start.budget", "77"), ("layout.prompt.index.cap", "9")])
    def test_does_exactly_what_was_asked_however_the_file_is_written(self, home, text, name, raw):
        written(home, text)
        expected: dict[str, Any] = tomllib.loads(text)
        inner = expected
        for key in name.split(".")[:-1]:
            inner = inner.setdefault(key, {})
        inner[name.split(".")[-1]] = False if name == "capture" else int(raw)
        change(home, name, raw)
        assert tomllib.loads(home.config.read_bytes().decode()) == expected

    def test_a_file_that_cannot_be_edited_rightly_is_left_alone(self, tmp_path_factory):
        # Leaves a file alone that it could only edit wrongly.
        home = prepared(tmp_path_factory.mktemp("x"))
        text = "[layout]\nprompt.budget = 3\n"  # tomlkit would add [prompt.index] in place of [layout.prompt.index]
        written(home, text)
        with pytest.raises(BadConfig, match="cannot edit") as caught:
            change(home, "layout.prompt.index.cap", "9")
        assert "editor" in caught.value.hint
        assert home.config.read_text() == text
        # A file deeper than it can look is edited rightly or left alone.
        home = prepared(tmp_path_factory.mktemp("x"))
        text = ".".join("a" * 2000) + " = 1\n"
        assert len(written(home, text).problems) == 1
        try:  # how deep Python can compare depends on its version
            change(home, "capture", "0")
        except BadConfig:
            assert home.config.read_text() == text
        else:
            assert home.config.read_text() == f"{text}capture = false\n"
        # Refuses to touch a file that it cannot read.
        home = prepared(tmp_path_factory.mktemp("x"))
        for data in (b"capture = \n", b"\xff"):
            home.config.write_bytes(data)
            for edit in (lambda: change(home, "capture", "0"), lambda: unset(home, "capture")):
                with pytest.raises(BadConfig, match="cannot be read") as caught:
                    edit()
                assert "repair" in caught.value.hint
            assert home.config.read_bytes() == data
        # Refuses a number below something that is no table.
        home = prepared(tmp_path_factory.mktemp("x"))
        written(home, "layout = 3\n")
        with pytest.raises(BadConfig, match="must be a table"):
            change(home, "layout.prompt.budget", "3")

    @table(
        ("name", "raw"),
        [
            ("capture", "perhaps"),
            ("backups_keep", "1000"),
            ("threshold_prompt", "nan"),
            ("log_level", "loud"),
            ("tokenizer", "two words"),
            ("off_projects", "."),
            ("layout", "3"),
            ("layout.prompt", "3"),
            ("layout.prompt.budget", "much"),
            ("layout.prompt.budget", "-1"),
            ("layout.lunch.budget", "1"),
            ("layout.prompt.index.kinds", "1"),
            ("", "1"),
            ("capture.more", "1"),
        ],
    )
    def test_refuses_what_load_would_refuse_and_tells_the_way_out(self, home, name, raw):
        with pytest.raises(BadConfig) as caught:
            change(home, name, raw)
        assert caught.value.hint
        assert not home.config.exists()

    @fuzz
    @given(st.lists(st.tuples(st.sampled_from(SETTINGS), st.integers(0, 10**6)), min_size=1, max_size=3))
    def test_what_was_changed_last_is_what_is_loaded(self, home, edits):
        home.config.unlink(missing_ok=True)
        expected = dict(DEFAULTS)
        for setting, seed in edits:
            raw, expected[setting.name] = sample(setting, seed)
            change(home, setting.name, raw)
        assert values(load(home, {})) == expected
        for setting, _ in edits:
            unset(home, setting.name)
        assert home.config.read_text() == ""


class TestUnset:
    def test_unsetting_brings_the_default_back(self, tmp_path_factory):
        # Brings the default back and keeps the rest.
        home = prepared(tmp_path_factory.mktemp("x"))
        written(home, "# mine\ncapture = false\nbackups_keep = 3 # few\n[layout.prompt]\nbudget = 5\n")
        assert unset(home, "capture") is True
        assert unset(home, "layout.prompt.budget") is True
        loaded = load(home, {})
        assert (loaded.settings.capture, loaded.origin["capture"], loaded.settings.backups_keep) == (True, "default", 3)
        assert loaded.settings.layout == LAYOUT
        assert home.config.read_text() == "# mine\nbackups_keep = 3 # few\n[layout.prompt]\n"
        # Says when there was nothing to take out.
        home = prepared(tmp_path_factory.mktemp("x"))
        assert unset(home, "capture") is False
        assert unset(home, "layout.prompt.budget") is False
        assert not home.config.exists()
        # Takes out a name that nobody knows.
        home = prepared(tmp_path_factory.mktemp("x"))
        written(home, "captur = false\n")
        assert unset(home, "captur") is True
        assert load(home, {}).problems == ()
        # Refuses a name that is neither known nor there.
        home = prepared(tmp_path_factory.mktemp("x"))
        with pytest.raises(BadConfig, match="is not a setting"):
            unset(home, "captur")


class TestLayout:
    def test_the_users_numbers_change_layout_and_the_rest_follows(self):
        # Layers hold known kinds and caps hold their scopes.
        for each in LAYOUT.values():
            assert sum(layer.cap for layer in each.layers if layer.name != "index") <= each.budget
            for layer in each.layers:
                assert set(layer.kinds) <= set(KINDS)
                assert not layer.groups or sum(layer.groups.values()) == layer.cap
        # Goals come by themselves nowhere.
        assert not any("goal" in layer.kinds for each in LAYOUT.values() for layer in each.layers)
        # Nothing said changes nothing.
        assert merge_layout({}) == (LAYOUT, ())
        # Takes the users numbers.
        layout, wrong = merge_layout(
            {"session_start": {"sessions": {"cap": 10, "limit": 2}, "rules": {"universal": 7}}}
        )
        layers = {layer.name: layer for layer in layout["session_start"].layers}
        assert wrong == ()
        assert (layers["sessions"].cap, layers["sessions"].limit) == (10, 2)
        assert layers["rules"].groups == {"universal": 7, "language": 100, "project": 150}
        assert layers["changes"] == LAYOUT["session_start"].layers[-1]
        # Caps grow with their budget and scopes with their cap.
        layout, _ = merge_layout(
            {"session_start": {"budget": 4000, "rules": {"cap": 700}}, "question": {"budget": 250}}
        )
        layers = {layer.name: layer for layer in layout["session_start"].layers}
        assert layers["standing"].cap == 600
        assert layers["rules"].groups == {"universal": 200, "language": 200, "project": 300}
        assert layout["question"].layers[0].groups == {"universal": 75, "language": 75, "project": 100}
        # Compaction stays half of session start unless told.
        assert merge_layout({"session_start": {"budget": 1000}})[0]["compaction"].budget == 500
        overrides = {"compaction": {"budget": 900}, "session_start": {"budget": 1000}}
        assert merge_layout(overrides)[0]["compaction"].budget == 900
        # The window budget is as specified and follows the budgets unless told.
        totals = {"session_start": 2000, "question": 1000, "prompt": 3000, "tool": 1500}
        assert window_budget(LAYOUT) == totals
        layout, wrong = merge_layout({"session_start": {"budget": 3000}, "prompt": {"budget": 250}})
        assert window_budget(layout) == {**totals, "session_start": 3000, "prompt": 1500}
        overrides = {"session_start": 2500, "question": 10, "prompt": 0, "tool": 20}
        layout, more = merge_layout({"window": overrides})
        assert window_budget(layout) == overrides
        assert (wrong, more) == ((), ())
        assert layout["compaction"].total == UNCOUNTED
        # A budget of nothing gives nothing to every layer.
        each = merge_layout({"session_start": {"budget": 0}})[0]["session_start"]
        assert {layer.cap for layer in each.layers} == {0}

    @table(
        ("overrides", "says"),
        [
            ({"lunch": {}}, "known are session_start, prompt, compaction, question"),
            ({"prompt": {"rules": {}}}, "known are budget, files, notes, index"),
            ({"prompt": {"index": {"kap": 1}}}, "known are cap, limit"),
            ({"prompt": {"index": 4}}, "`layout.prompt.index` must be a table"),
            ({"prompt": 4}, "`layout.prompt` must be a table"),
            (4, "`layout` must be a table"),
            ({"prompt": {"budget": True}}, "whole number from 0 to 10000, not True"),
            ({"prompt": {"budget": -1}}, "not -1"),
            ({"prompt": {"budget": 5.0}}, "not 5.0"),
            ({"prompt": {"budget": MOST_TOKENS + 1}}, "not 10001"),
            ({"prompt": {"index": {"limit": 201}}}, "from 0 to 200"),
            ({"window": {"compaction": 1}}, "known are session_start, question, prompt"),
            ({"window": {"prompt": "much"}}, "whole number from 0 to 100000, not 'much'"),
            ({"window": {"tool": -1}}, "not -1"),
            ({"window": 3}, "`layout.window` must be a table"),
        ],
    )
    def test_what_is_wrong_is_named_and_ours_is_kept(self, overrides, says):
        layout, wrong = merge_layout(overrides)
        assert layout == LAYOUT
        assert len(wrong) == 1
        assert says in wrong[0]

    @fuzz
    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
            lambda inner: st.dictionaries(
                st.sampled_from([*LAYOUT, "window", "budget", "index", "rules", "cap", "limit", "?"]),
                inner,
                max_size=4,
            ),
        )
    )
    def test_whatever_is_said_the_layout_can_be_used(self, overrides):
        layout, _ = merge_layout(overrides)
        assert tuple(layout) == (*TRIGGERS, "tool")
        for trigger, each in layout.items():
            assert 0 <= each.budget <= MOST_TOKENS
            assert [layer.name for layer in each.layers] == [layer.name for layer in LAYOUT[trigger].layers]
            assert all(layer.cap >= 0 and layer.limit >= 0 for layer in each.layers)
            assert each.total >= 0


class TestSynonyms:
    def test_synonyms_are_ours_until_the_user_says_otherwise(self, tmp_path_factory):
        # Ours are there without a file.
        home = prepared(tmp_path_factory.mktemp("x"))
        words, problems = load_synonyms(home)
        assert problems == ()
        assert len(words) >= 40
        assert {"ci", "pipeline"} <= set(words["deploy"])
        assert {"authentication", "security"} <= set(words["auth"])
        assert {"testing", "ci"} <= set(words["test"])
        assert {"database", "sql"} <= set(words["db"])
        # Ours are plain lower case words.
        home = prepared(tmp_path_factory.mktemp("x"))
        for word, others in load_synonyms(home)[0].items():
            assert word not in others
            assert all(re.fullmatch(r"[a-z0-9]+", each) for each in (word, *others))
        # The users line takes the place of ours.
        home = prepared(tmp_path_factory.mktemp("x"))
        home.synonyms.write_text('Deploy = ["Helm", "helm", "deploy", "argo"]\ntest = []\n"検索" = ["search"]\n')
        words, problems = load_synonyms(home)
        assert problems == ()
        assert words["deploy"] == ("helm", "argo")
        assert "test" not in words
        assert words["検索"] == ("search",)
        assert words["db"] == ("database", "sql")
        # A file that is not TOML means ours.
        home = prepared(tmp_path_factory.mktemp("x"))
        ours = load_synonyms(home)[0]
        home.synonyms.write_text("deploy = ['x']\ndeploy -> helm\n")
        words, problems = load_synonyms(home)
        assert words == ours
        assert len(problems) == 1
        assert str(home.synonyms) in problems[0]


def sample(setting: Setting, seed: int) -> tuple[str, Any]:
    """Some allowed value of a setting, as a shell says it and as it is loaded."""
    if setting.kind == "bool":
        return ("yes", True) if seed % 2 else ("no", False)
    if setting.kind == "int":
        number = int(setting.between[0]) + seed % (int(setting.between[1]) - int(setting.between[0]) + 1)
        return str(number), number
    if setting.kind == "float":
        number = setting.between[0] + (setting.between[1] - setting.between[0]) * (seed % 1000) / 1000
        return str(number), number
    if setting.kind == "patterns":
        return f"*.p{seed}, vault/{seed}-x/*", (f"*.p{seed}", f"vault/{seed}-x/*")
    if setting.kind == "list":
        return f"/p{seed}, key-{seed}", (f"/p{seed}", f"key-{seed}")
    words = setting.choices or FORMED[setting.kind]
    word = words[seed % len(words)]
    return word, word
