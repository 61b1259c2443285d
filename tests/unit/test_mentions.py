"""mentions: whatever a prompt is, the files and functions that it names are found, and nothing raises."""

from hypothesis import given
from hypothesis import strategies as st

from foreword.recall.mentions import LONGEST, MOST, mentioned
from tests.tables import table

ROOT = "/srv/shop"


@table(
    ("text", "files"),
    [
        ("src/app/views.py", ["src/app/views.py"]),
        ("see views.py:120, please", ["views.py"]),
        ("views.py:120:5 and (views.py:7-9)", ["views.py"]),
        ("a.py#L10-L20", ["a.py"]),
        ("./x/y.ts", ["x/y.ts"]),
        ("../lib/z.go and a/./b/../c.rs", ["lib/z.go", "a/c.rs"]),
        (r"src\app\views.cs(12,5) C:\\shop\\a.py", ["src/app/views.cs", "C:/shop/a.py"]),
        ("@src/app.py and @README.md, @docs/", ["src/app.py", "README.md", "docs"]),
        ("`config.toml` 'a.json' \"b.yml\" **c.md**.", ["config.toml", "a.json", "b.yml", "c.md"]),
        ("[the views](src/views.py)", ["src/views.py"]),
        ("/srv/shop/src/a.py:3", ["src/a.py"]),
        ("file:///srv/shop/b.go", ["b.go"]),
        ("/elsewhere/c.py", ["/elsewhere/c.py"]),
        ("/usr/lib/python3.12/json/decoder.py x/node_modules/y.js /a/site-packages/b.py", ["x/node_modules/y.js"]),
        ("tests/test_x.py::TestC::test_m[a-1] fails", ["tests/test_x.py"]),
        ("at loadUser (src/user.ts:4:11)", ["src/user.ts"]),
        ("diff --git a/src/x.py b/src/x.py\n--- a/src/x.py\n+++ b/src/x.py", ["src/x.py"]),
        ("Dockerfile, Makefile and .env?", ["Dockerfile", "Makefile", ".env"]),
        ("views.py's tests", ["views.py"]),
        ("検索する views.py を", ["views.py"]),
        ("30k-image.py", ["30k-image.py"]),
        ("Node.js, Next.js, e.g. v1.2.3 and/or 24/7, *.py, src/**/*.ts, https://x.org/a.py, example.com", []),
        ("@bob @app.route self.lock /api/v1/orders input/output ...", []),
    ],
)
def test_files_are_found_as_they_are_written(text, files):
    assert list(mentioned(text, root=ROOT)[0]) == files


@table(
    ("text", "functions"),
    [
        ("foo() and bar_baz(x, y)", ["foo", "bar_baz"]),
        ("`cancel` then `offer_slot(slot)`", ["cancel", "offer_slot"]),
        ("Basket.total and datasette.resource_for_action()", [
            "Basket.total", "total", "datasette.resource_for_action", "resource_for_action",
        ]),
        ("std::sync::Mutex::lock() and module::fn", ["std::sync::Mutex::lock", "lock", "module::fn", "fn"]),
        ("tests/test_x.py::TestC::test_m[a-1] fails", ["TestC::test_m", "test_m"]),
        ("snake_case_name, CamelCase. HTTPTransport loadUser", [
            "snake_case_name", "CamelCase", "HTTPTransport", "loadUser",
        ]),
        ("self.close() this.open()", ["close", "open"]),
        ("Class.__init__ but not __init__ or CONSTANT_NAME", ["Class.__init__", "__init__"]),
        ("GitHub, JavaScript, URLs, APIs, e.g. file(s), fix(auth): done.Then 3.14 ```python 検索する", []),
    ],
)  # fmt: skip
def test_functions_are_found_as_they_are_written(text, functions):
    assert list(mentioned(text, root=ROOT)[1]) == functions


def test_tracebacks_pastes_and_huge_texts_name_what_matters():
    # A traceback names its own files and functions the innermost first.
    traceback = """Traceback (most recent call last):
  File "/srv/shop/web/my views.py", line 120, in checkout
    total = price(basket)
  File "/srv/shop/pricing.py", line 44, in price
    return 1 / 0
  File "/usr/lib/python3.12/site-packages/q.py", line 9, in run
  File "<string>", line 1, in <module>
ZeroDivisionError: division by zero"""
    files, functions = mentioned(traceback, root=ROOT)
    assert {"pricing.py", "web/my views.py"} <= set(files)
    assert {"checkout", "price", "ZeroDivisionError"} <= set(functions)
    assert not any("site-packages" in file or "<" in file for file in files)
    # The users own names come before what was pasted.
    pasted = "\n".join(f"value_{n} = load_{n}(file_{n}.json)" for n in range(4000))
    files, functions = mentioned(f"In first.py, {pasted}\nsee last_one() in last.py", root=ROOT)
    assert files[0] == "first.py"
    assert "last.py" in files
    assert "last_one" in functions
    assert len(files) <= MOST
    assert len(functions) <= MOST
    # A huge text takes no time.
    for text in ("x" * 3_000_000, "a.py " * 500_000, 'File "' * 500_000, "(" * 1_000_000, "a::" * 500_000):
        mentioned(text, root=ROOT)


ODD = "aB_./\\:@()[]`'\"#L1 \n\0File line,in*~版\ud800"


@given(st.text() | st.text(alphabet=ODD) | st.text(alphabet=ODD, min_size=300), st.text(max_size=5) | st.just("/srv"))
def test_any_text_names_a_bounded_number_of_things(text, root):
    files, functions = mentioned(text, root=root)
    assert mentioned(text, root=root) == (files, functions)
    for found in (files, functions):
        assert len(found) <= MOST
        assert len(set(found)) == len(found)
        assert all(0 < len(name) <= 2 * LONGEST and name.strip() for name in found)
    assert not any(part in (".", "..") for name in files for part in name.split("/") if name[0] != "/")
