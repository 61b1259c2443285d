"""The month as it happened: sixty sessions of three developers with one agent, step by step. Nothing here is random.

Mia writes the server, Jonas the map and the texts, Priya runs it all. Each corrects the agent in an own way: Mia with
reasons, Jonas in few words, Priya by what went wrong in the harbour.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

DAY = 86_400.0
FIRST = datetime(2026, 10, 5, tzinfo=UTC).timestamp()  # a Monday
DAYS = 30


@dataclass(frozen=True)
class Step:
    """One thing that somebody does in a session; what it means is told by play.py."""

    verb: str
    arguments: tuple


@dataclass(frozen=True)
class HookInput:
    """One session: who had it when, and what happened."""

    day: int
    hour: float
    who: str
    steps: tuple[Step, ...]

    @property
    def at(self) -> float:
        return FIRST + (self.day - 1) * DAY + self.hour * 3600


@dataclass(frozen=True)
class Choice:
    """What was decided about a subject on a day; `words` tell a line that says it, `not_words` one that says another."""

    day: int
    name: str
    words: tuple[str, ...]
    not_words: tuple[str, ...] = ()


# The choices that were replaced, oldest first: from the day of the next on, none of them may be told as what holds.
LINES = {
    "where bookings are stored": (
        Choice(2, "a SQLite file", ("bookings", "sqlite"), ("postgres", "mysql")),
        Choice(9, "Postgres", ("bookings", "postgres"), ("mysql",)),
        Choice(19, "MySQL", ("bookings", "mysql")),
    ),
    "how prices are kept": (
        Choice(3, "floats in euros", ("prices", "floats"), ("cents",)),
        Choice(8, "integer cents", ("prices", "cents")),
    ),
    "who delivers guest mails": (
        Choice(4, "SendGrid", ("mails", "sendgrid"), ("postmark",)),
        Choice(14, "Postmark", ("mails", "postmark")),
    ),
    "how a login is kept": (
        Choice(5, "JWT tokens", ("login", "jwt"), ("cookies",)),
        Choice(16, "signed cookies", ("login", "cookies")),
    ),
    "how long a forecast is kept": (
        Choice(6, "an hour", ("forecast", "hour"), ("minutes",)),
        Choice(20, "ten minutes", ("forecast", "minutes")),
    ),
    "what starts the nightly jobs": (
        Choice(7, "cron", ("nightly", "cron"), ("apscheduler", "systemd")),
        Choice(12, "APScheduler", ("nightly", "apscheduler"), ("systemd",)),
        Choice(23, "systemd timers", ("nightly", "systemd")),
    ),
}
GRACE = 4  # days: a file that no edit took away is believed gone when it was missed for three
# Names that are gone, each with the last day on which they may be told.
GONE = {
    "find_berth": 10,
    "purge_old": 13,
    "havn/notify.py": 15 + GRACE,
    "send_sms": 15,
    "check_token": 21,
    "discount": 24,
}
# What the users answer when they are asked, and the day: words of a note -> yes or no.
REVIEWS = {
    12: {"uv run pytest": True, "british": True, "olga": False},
    20: {"logger": True, "single quotes": False, "double quotes": False, "rust": False},
    27: {"pier c": True, "npm run types": True, "migrate": True, "quotes": False, "comment": False},
}
REFUSED = ("olga", "rewrite it in rust")  # notes that were thrown away; no injection after that day may hold them


def say(text: str) -> Step:
    return Step("say", (text,))


def answer(text: str) -> Step:
    return Step("answer", (text,))


def read(file: str) -> Step:
    return Step("read", (file,))


def edit(file: str, old: str, new: str) -> Step:
    return Step("edit", (file, old, new))


def write(file: str, text: str) -> Step:
    return Step("write", (file, text))


def run(command: str, output: str = "") -> Step:
    return Step("run", (command, output))


def fail(command: str, output: str) -> Step:
    return Step("fail", (command, output))


def move(file: str, to: str) -> Step:
    return Step("move", (file, to))


def remove(file: str) -> Step:
    return Step("remove", (file,))


def todo(*subjects: str) -> Step:
    return Step("todo", subjects)


def done(number: int) -> Step:
    return Step("done", (number,))


def remember(kind: str, title: str, body: str = "") -> Step:
    return Step("remember", (kind, title, body))


def handoff(message: str, *nexts: str) -> Step:
    return Step("handoff", (message, *nexts))


def note(text: str) -> Step:
    return Step("note", (text,))


def goal(title: str) -> Step:
    return Step("goal", (title,))


def reached(title: str) -> Step:
    return Step("reached", (title,))


def compaction() -> Step:
    return Step("compaction", ())


PYTEST = "uv run pytest -q"


def green(many: int, command: str = PYTEST) -> Step:
    return run(command, f"{'.' * many} [100%]\n{many} passed in {many / 10:.2f}s")


def red(test: str, error: str, *, passed: int = 9, command: str = PYTEST) -> Step:
    """A run of the tests in which one fails, as pytest tells it."""
    name = test.rpartition("::")[2]
    head = f"{'.' * passed}F [100%]\n=== FAILURES ===\n___ {name} ___\n"
    tail = f"=== short test summary info ===\nFAILED {test} - {error[:60]}\n1 failed, {passed} passed in 2.{passed}s"
    return fail(command, f"{head}\n    def {name}():\nE       {error}\n\n{test.partition('::')[0]}:12\n{tail}")


def schema(now: int, wanted: int) -> tuple[Step, ...]:
    """The failure that is always mended in the same way."""
    error = f"RuntimeError: database schema is at {now}, the code wants {wanted}"
    return (
        red("tests/test_storage.py::test_open", error, passed=wanted),
        run("uv run python -m havn.migrate", f"migrated from {now} to {wanted}"),
        green(wanted + 1),
    )


def storm(seconds: str) -> Step:
    """The failure that nobody has mended."""
    error = f"TimeoutError: the met office did not answer within {seconds} s"
    return red(
        "tests/test_weather.py::test_storm_warning_live", error, command="uv run pytest -q tests/test_weather.py"
    )


def port(pid: int) -> Step:
    """The failure that everybody mends in another way."""
    return fail(
        "uv run python -m havn.api", f"OSError: [Errno 98] address already in use: ('127.0.0.1', 8080) (pid {pid})"
    )


SERVED = run("uv run python -m havn.api", "serving on 127.0.0.1:8080")


def types(line: int) -> tuple[Step, ...]:
    return (
        fail("npx tsc --noEmit", f"web/map.ts({line},34): error TS2304: Cannot find name 'Berth'."),
        run("npm run types", "wrote web/berth.d.ts"),
        run("npx tsc --noEmit", "no issues found"),
    )


# Work that nobody talks about: prompt, file, what was there, what is there now, and what the agent says of it.
CHORES = {
    "draught": (
        "Boats with a deep keel get berths that are too shallow. Let fits() look at the draught too.",
        "havn/berths.py",
        'return boat["length"] <= berth["length"]\n',
        'return boat["length"] <= berth["length"] and boat["draught"] <= berth["draught"]\n',
        "fits() compares the draught as well as the length now.",
    ),
    "pier": (
        "pier_of() breaks for names in lower case, please handle them.",
        "havn/berths.py",
        "return name[0]\n",
        "return name[:1].upper()\n",
        "pier_of() gives the pier in capitals, and nothing for an empty name.",
    ),
    "nights": (
        "A booking of the same day must count one night.",
        "havn/bookings.py",
        'return (booking["to"] - booking["from"]).days\n',
        'return max(1, (booking["to"] - booking["from"]).days)\n',
        "nights() never gives less than one.",
    ),
    "season": (
        "The high season begins in May from next year on.",
        "havn/prices.py",
        "6 <= day.month <= 8",
        "5 <= day.month <= 8",
        "season_of() counts May as high season.",
    ),
    "tax": (
        "Children pay no tourist tax, so tourist_tax() should get the grown-ups only.",
        "havn/prices.py",
        "def tourist_tax(people, nights):\n    return people * nights",
        "def tourist_tax(grown_ups, nights):\n    return grown_ups * nights",
        "tourist_tax() takes the number of grown-ups.",
    ),
    "number": (
        "Invoice numbers need the letters HV in front.",
        "havn/invoices.py",
        'return f"{year}-{count:05}"\n',
        'return f"HV{year}-{count:05}"\n',
        "number_of() begins with HV.",
    ),
    "pay": (
        "pay() must not let a guest pay more than the invoice says.",
        "havn/invoices.py",
        'invoice["total"] - amount\n',
        'max(0, invoice["total"] - amount)\n',
        "pay() stops at zero.",
    ),
    "remind": (
        "The reminder should name the berth.",
        "havn/invoices.py",
        "is open: {invoice['open']}",
        "for berth {invoice['berth']} is open: {invoice['open']}",
        "remind() names the berth.",
    ),
    "tide": (
        "tide_at() is an hour off in summer, take the table's own offset.",
        "havn/weather.py",
        "def tide_at(table, hour):\n    return table[hour % 24]\n",
        "def tide_at(table, hour, offset=0):\n    return table[(hour + offset) % 24]\n",
        "tide_at() takes the offset of the table.",
    ),
    "wind": (
        "Storm warnings should come at 15 metres a second, not 17.",
        "havn/weather.py",
        ">= 17\n",
        ">= 15\n",
        "storm_warning() warns from 15 metres a second on.",
    ),
    "welcome": (
        "The confirmation should say when the office is open.",
        "havn/{messages}.py",
        "Berth {booking['berth']} is yours.",
        "Berth {booking['berth']} is yours; the office is open from 8 to 18.",
        "confirmation() tells the opening hours.",
    ),
    "lines": (
        "The storm mail should tell the wind.",
        "havn/{messages}.py",
        '"Check your lines."',
        '"Strong wind is coming: check your lines."',
        "storm_mail() speaks of the wind.",
    ),
    "health": (
        "The health check should tell the version too.",
        "havn/api.py",
        'return {"ok": True}\n',
        'return {"ok": True, "version": "0.3.0"}\n',
        "health() tells the version.",
    ),
    "list": (
        "list_bookings() must tell how many there are.",
        "havn/api.py",
        'return {"bookings": load_bookings(request.db)}\n',
        'found = load_bookings(request.db)\n    return {"bookings": found, "count": len(found)}\n',
        "list_bookings() gives a count beside the bookings.",
    ),
    "grey": (
        "Booked berths should be red on the map, grey looks like out of order.",
        "web/map.ts",
        'berth.free ? "green" : "grey"',
        'berth.free ? "green" : "red"',
        "colourOf() paints booked berths red.",
    ),
    "zoom": (
        "zoomTo() should scroll to the pier softly.",
        "web/map.ts",
        "return `#${pier}`;",
        "return `#${pier}?smooth`;",
        "zoomTo() scrolls softly.",
    ),
    "label": (
        "Show the length of a berth on the map.",
        "web/map.ts",
        "<g>${berth.name}</g>",
        "<g>${berth.name} ${berth.length} m</g>",
        "drawBerth() writes the length beside the name.",
    ),
    "tasks": (
        "One failing task must not stop the others at night.",
        "havn/jobs.py",
        "return [task() for task in tasks]\n",
        "return [_guarded(task) for task in tasks]\n\n\ndef _guarded(task):\n    try:\n        return task()\n    except Exception as error:\n        return error\n",
        "nightly() goes on when a task fails, because _guarded() catches what it raises.",
    ),
    "extend": (
        "extend() must refuse a negative number of days.",
        "havn/bookings.py",
        "def extend(booking, days):\n",
        'def extend(booking, days):\n    if days.days < 0:\n        raise ValueError("a booking only grows")\n',
        "extend() raises for negative days.",
    ),
    "free": (
        "Berths that are closed for repair are not free.",
        "havn/berths.py",
        'if berth["name"] not in booked]\n',
        'if berth["name"] not in booked and not berth.get("closed")]\n',
        "free_berths() leaves out what is closed.",
    ),
}


def chore(name: str, *, many: int, module: str = "messages") -> tuple[Step, ...]:
    prompt, file, old, new, summary = CHORES[name]
    file = file.replace("{messages}", module)
    check = run("npx tsc --noEmit", "no issues found") if file.endswith(".ts") else green(many)
    return say(prompt), read(file), edit(file, old, new), check, answer(f"{summary} All checks pass.")


def session(day: int, hour: float, who: str, *steps: Step | tuple[Step, ...]) -> HookInput:
    flat = [each for step in steps for each in (step if isinstance(step, tuple) else (step,))]
    return HookInput(day, hour, who, tuple(flat))


SESSIONS = (
    # ---- the first week: what Havn is, and what it is made of
    session(
        1, 9, "mia",
        goal("Open the spring season with online booking"),
        say("Havn books berths in our marina. Read how a berth is found and tell me what you would do first."),
        read("havn/berths.py"), read("havn/bookings.py"),
        answer("find_berth() takes the shortest berth that fits. overlaps() counts a night twice: that comes first."),
    ),
    session(
        1, 14, "mia",
        say("Guests cannot book the night after somebody else. There is a red test in tests/test_bookings.py, fix it."),
        red("tests/test_bookings.py::test_back_to_back_is_free", "AssertionError: assert not True", passed=1, command="pytest -q"),
        edit("havn/bookings.py", 'one["from"] <= two["to"] and two["from"] <= one["to"]', 'one["from"] < two["to"] and two["from"] < one["to"]'),
        green(2, "pytest -q"),
        answer("The cause was `<=` in overlaps(): a booking that ends when another begins counted as a clash."),
        say("No, use `uv run pytest` instead of plain pytest, the versions are pinned there."),
        green(2), answer("Ran the tests with uv, they pass."),
    ),
    session(
        2, 9, "mia",
        say("Let's store bookings in a SQLite file, because one marina never has two writers. Never commit to main directly, make a branch."),
        read("havn/storage.py"),
        edit("havn/storage.py", "return sqlite3.connect(path)\n", "return sqlite3.connect(path, timeout=5)\n"),
        green(4), run("git commit -am 'Wait for a locked database'", "[branch 1a2b3c4] Wait for a locked database"),
        answer("open_db() waits five seconds for a locked SQLite file. Committed on a branch."),
    ),
    session(
        2, 15, "jonas",
        say("The cancel button says the booking is gone, but the status is wrong in the list. Look at cancel()."),
        read("havn/bookings.py"), answer('cancel() sets the status "canceled", the list looks for "cancelled".'),
        say("No, write cancelled instead of canceled, British spelling in all texts."),
        edit("havn/bookings.py", '"canceled"', '"cancelled"'), green(4), answer("cancel() says cancelled."),
    ),
    session(
        3, 9, "mia",
        say("Let's keep prices as floats in euros, because the tariff has cents anyway. Let's store all times in UTC, because the boats come from three time zones."),
        chore("season", many=5)[1:],
    ),
    session(
        3, 16, "priya",
        note("Pier C floods at spring tide, says the harbour master"),
        say("Add a line to the nightly job that tells how many reminders went out."),
        edit("havn/jobs.py", "def remind_guests(invoices, send):\n", "def remind_guests(invoices, send):\n    print(len(invoices))\n"),
        green(5), answer("remind_guests() prints how many there are."),
        say("No, don't use print, use the logger, print never reaches the log of the harbour."),
        edit("havn/jobs.py", "    print(len(invoices))\n", '    log.info("%s reminders", len(invoices))\n'),
        edit("havn/jobs.py", '"""What runs at night."""\n', '"""What runs at night."""\n\nimport logging\n\nlog = logging.getLogger("havn")\n'),
        green(5), answer("remind_guests() uses the logger."),
    ),
    session(
        4, 10, "jonas",
        say("We'll use SendGrid for guest mails because the free tier is enough. Let's use Leaflet for the map, because Google wants a credit card."),
        read("havn/notify.py"), read("web/map.ts"),
        remember("learning", "Gotcha: the tide table is in local time, everything else is UTC"),
        answer("Both are noted; send_mail() posts to SendGrid already."),
    ),
    session(4, 17, "jonas", say("hm, can you see the map?"), answer("I see web/map.ts, but not the page itself.")),
    session(
        5, 9, "mia",
        say("Use JWT tokens for the login because the app needs no session table then. We'll store the bookings in a SQLite file, because one marina never has two writers."),
        edit("havn/auth.py", "return base64.b64encode(user.encode()).decode()\n", "return _signed(user)\n\n\ndef _signed(user):\n    return base64.b64encode(user.encode()).decode() + '.sig'\n"),
        green(6), todo("expire tokens after a day", "log failed logins"), done(1),
        answer("token_for() signs its token. Still open: log failed logins."),
    ),
    session(
        5, 15, "priya",
        say("Start the service and check the health page."), port(4711), run("pkill -f havn.api"), SERVED,
        answer("The old process still held the port. After pkill it serves."),
    ),
    session(
        6, 11, "priya",
        say("Let's keep each forecast for an hour, because the met office limits our calls."),
        read("havn/weather.py"), storm("5.01"), answer("The cache is there already. test_storm_warning_live fails: the met office is slow."),
        note("The printer in the office is called Olga"),
    ),
    session(
        7, 11, "priya",
        say("Let's use cron for the nightly jobs, because it is there already."),
        read("havn/jobs.py"), write("deploy/crontab", "0 3 * * * uv run python -m havn.jobs\n"),
        answer("deploy/crontab runs the nightly jobs at three."),
    ),
    # ---- the second week: money, a database, names
    session(
        8, 9, "mia",
        say("The invoice of the Albatros was a cent off. Let's use integer cents for prices instead of floats, because a sum of floats bit us."),
        red("tests/test_prices.py::test_price_of", "AssertionError: assert 50.400000000000006 == 50.4"),
        edit("havn/prices.py", "RATE = 2.4\n", "RATE = 240\n"),
        edit("havn/prices.py", 'return boat["length"] * RATE * nights\n', 'return round(boat["length"] * RATE) * nights\n'),
        green(10), answer("The cause was the float in RATE: price_of() counts in cents now, because a sum of floats is never exact."),
    ),
    session(
        8, 13, "jonas",
        say("Please add a type for berths to the map."), types(3),
        answer("The type file was missing, because npm run types had not been run."),
        say("No, use single quotes instead of double quotes in TypeScript."), answer("Single quotes from here on."),
    ),
    session(8, 17, "priya", chore("wind", many=10)),
    session(
        9, 9, "mia",
        say("We'll store bookings in Postgres instead of SQLite, because the office and the web both write now."),
        edit("havn/storage.py", "import sqlite3\n", "import psycopg\n"),
        edit("havn/storage.py", "return sqlite3.connect(path, timeout=5)\n", "return psycopg.connect(path)\n"),
        schema(7, 9), answer("open_db() connects to Postgres. The test wanted the new schema, so I ran the migration."),
    ),
    session(
        9, 14, "priya",
        say("Check that the price tests are green."), green(10, "pytest -q"), answer("Ten tests pass."),
        say("No, use `uv run pytest` instead of pytest."), green(10), answer("Ran with uv, all green."),
    ),
    session(
        10, 9, "mia",
        goal("Storm mails go out by themselves"),
        say("Rename find_berth to best_berth everywhere, it does not find just any."),
        edit("havn/berths.py", "def find_berth(", "def best_berth("),
        edit("havn/bookings.py", "find_berth", "best_berth"),
        red("tests/test_api.py::test_post_booking", "ImportError: cannot import name 'find_berth' from 'havn.berths'"),
        edit("havn/api.py", "find_berth", "best_berth"), green(10),
        run("git commit -am 'Rename find_berth to best_berth'", "[branch 2b3c4d5] Rename"),
        answer("Renamed in berths.py, bookings.py and api.py; the import in api.py was the last."),
    ),
    session(10, 16, "jonas", say("the map is slow on my phone, any idea?"), read("web/map.ts"), answer("Nothing in drawMap() looks slow; I would need a profile of the phone.")),
    session(
        11, 9, "priya",
        say("Is the storm test still red?"), storm("5.27"), answer("Yes: the met office does not answer in time."),
        say("We store all of the times in UTC, since boats come from three time zones."), answer("Yes, UTC everywhere."),
    ),
    session(
        11, 14, "jonas",
        chore("zoom", many=0), say("No, cancelled instead of canceled please, British spelling in texts."), answer("Corrected in the legend."),
    ),
    session(11, 18, "mia", chore("draught", many=11)),
    session(
        12, 9, "priya",
        say("Let's use APScheduler for the nightly jobs instead of cron, because cron has no retry."),
        run("uv add apscheduler", "added apscheduler 3.10.4"),
        edit("havn/jobs.py", "def nightly(tasks):\n", "def nightly(tasks):\n    log.info('night of %s tasks', len(tasks))\n"),
        run("git rm deploy/crontab", "rm 'deploy/crontab'"), remove("deploy/crontab"), green(11),
        answer("nightly() is started by APScheduler; the crontab is gone."),
    ),
    session(12, 15, "mia", chore("tasks", many=12), say("stop adding a comment to every line"), answer("Took the comments out.")),
    session(
        13, 12, "mia",
        say("Nobody calls purge_old any more, take it out."),
        edit("havn/jobs.py", '\n\ndef purge_old(bookings, before):\n    return [booking for booking in bookings if booking["to"] >= before]\n', ""),
        green(12), answer("purge_old() is gone."),
    ),
    session(
        14, 13, "jonas",
        say("Let's use Postmark for guest mails, because SendGrid loses our confirmation mails."),
        edit("havn/notify.py", 'post("sendgrid"', 'post("postmark"'), green(12), answer("send_mail() posts to Postmark."),
        note("Maybe we should rewrite it in Rust"),
    ),
    # ---- the third week: a module moves, the login changes
    session(
        15, 9, "mia",
        say("notify.py is about messages, so call it messages.py, and send_sms() can go, nobody pays for it."),
        run("git mv havn/notify.py havn/messages.py"), move("havn/notify.py", "havn/messages.py"),
        edit("havn/messages.py", '\n\ndef send_sms(number, text, post):\n    return post("sms", {"number": number, "text": text})\n', ""),
        green(12), run("git commit -am 'Move notify to messages'", "[branch 3c4d5e6] Move"),
        answer("havn/messages.py holds what was in notify.py, without send_sms()."),
    ),
    session(
        15, 14, "priya",
        say("The tests fail on my machine, please look."), schema(9, 11),
        answer("Your database was behind: the schema must be migrated whenever the code wants a newer one."),
        say("No, not print, use the logger: print never reaches the log."), answer("Used the logger."),
    ),
    session(15, 18, "jonas", chore("grey", many=0)),
    session(
        16, 9, "mia",
        say("Let's use signed cookies for the login rather than JWT tokens, since logout must work at once."),
        edit("havn/auth.py", "def check_token(token, users):\n", "def check_cookie(cookie, users):\n    return cookie.split('.')[0] in users\n\n\ndef check_token(token, users):\n"),
        green(13), todo("take out check_token", "log failed logins"), answer("check_cookie() is there. Still open: take out check_token."),
    ),
    session(
        16, 13, "jonas",
        say("Show free berths first on the map."), types(9),
        answer("The types were stale again: npm run types has to run whenever the berths change."),
        say("No, use double quotes instead of single quotes in TypeScript, prettier does."), answer("Double quotes then."),
    ),
    session(
        17, 9, "priya",
        say("Start the service for the demo."), port(902), run("PORT=8081 uv run python -m havn.api", "serving on 127.0.0.1:8081"),
        answer("The demo of yesterday still held port 8080, so it runs on 8081."),
    ),
    session(
        17, 13, "jonas",
        chore("label", many=0)[:-1], compaction(), answer("drawBerth() writes the length beside the name."),
        handoff("The map is ready but for phones", "measure drawMap on a phone", "ask Mia for a smaller berth list"),
    ),
    session(17, 17, "mia", chore("number", many=13)),
    session(
        18, 9, "mia",
        say("Let's store all the times in UTC, because our boats come from three time zones. Then make pay() safe, it must not let a guest pay more than what is due."),
        chore("pay", many=13)[1:], remember("learning", "Gotcha: the tide table is in local time, everything else in UTC"),
    ),
    session(18, 15, "priya", say("Anything new from the met office?"), storm("6.40"), answer("No, it times out as before.")),
    session(
        19, 9, "mia",
        say("Let's store bookings in MySQL, because the hosting of the port has nothing else."),
        edit("havn/storage.py", "import psycopg\n", "import pymysql\n"),
        edit("havn/storage.py", "return psycopg.connect(path)\n", "return pymysql.connect(read_default_file=path)\n"),
        green(13), answer("open_db() connects to MySQL."),
    ),
    session(19, 13, "jonas", chore("welcome", many=13), say("stop adding a comment to every line"), answer("Took them out.")),
    session(
        19, 17, "priya",
        say("Log when somebody cancels."), edit("havn/bookings.py", "def cancel(booking):\n", "def cancel(booking):\n    print('cancelled', booking['id'])\n"),
        answer("cancel() tells of it."), say("No, use the logger instead of print, print never reaches the log."),
        edit("havn/bookings.py", "    print('cancelled', booking['id'])\n", "    log.info('cancelled %s', booking['id'])\n"),
        edit("havn/bookings.py", "from havn.berths", "import logging\n\nfrom havn.berths"),
        edit("havn/bookings.py", "\n\ndef overlaps", "\nlog = logging.getLogger('havn')\n\n\ndef overlaps"),
        green(13), answer("cancel() uses the logger."),
    ),
    session(
        20, 11, "priya",
        say("Let's keep each forecast for ten minutes, because storms come quicker than that."),
        edit("havn/weather.py", "> 3600:", "> 600:"), green(13), answer("cached_forecast() asks again after ten minutes."),
    ),
    session(
        21, 12, "mia",
        say("Take out check_token, everybody has a cookie by now."),
        edit("havn/auth.py", "\n\ndef check_token(token, users):\n    return base64.b64decode(token).decode() in users\n", ""),
        todo("take out check_token"), done(1), green(13), run("git commit -am 'Take out check_token'", "[branch 4d5e6f7] Take"),
        answer("check_token() is gone; check_cookie() is what is left."),
    ),
    # ---- the fourth week
    session(22, 9, "mia", say("The storage test is red for me."), schema(11, 12), answer("It was the schema again; the migration mended it.")),
    session(22, 13, "jonas", say("tsc complains on my laptop."), types(15), answer("npm run types wrote the missing file.")),
    session(22, 17, "priya", say("is there a way to see who is in the harbour right now?"), answer("Not yet; there is no page for it.")),
    session(
        23, 9, "priya",
        say("Let's use systemd timers for the nightly jobs, because APScheduler dies with the web process."),
        write("deploy/havn-night.timer", "[Timer]\nOnCalendar=*-*-* 03:00\n"), run("uv remove apscheduler", "removed"), green(13),
        answer("deploy/havn-night.timer starts the nightly jobs."),
    ),
    session(
        23, 14, "mia",
        say("Run the whole suite before I go."), green(13, "pytest -q"), answer("Thirteen pass."),
        say("No, use `uv run pytest` instead of plain pytest."), green(13), answer("With uv, thirteen pass too."),
    ),
    session(
        24, 9, "mia",
        say("Call discount() rebate(), that is the word on the invoice."),
        edit("havn/prices.py", "def discount(", "def rebate("), edit("havn/invoices.py", "discount", "rebate"), green(13),
        answer("rebate() in prices.py and invoices.py."),
    ),
    session(24, 15, "jonas", chore("lines", many=13)),
    session(
        25, 9, "priya",
        say("The service does not come up after the update."), port(31337), run("docker compose stop web", "stopped"), SERVED,
        answer("A container held the port; it is stopped and the service runs."),
    ),
    session(25, 13, "jonas", chore("health", many=13), say("No, cancelled instead of canceled, British spelling in the texts."), answer("Done.")),
    session(25, 17, "mia", chore("nights", many=13)),
    session(26, 9, "mia", chore("tax", many=14), reached("Storm mails go out by themselves")),
    session(26, 13, "jonas", chore("remind", many=14)),
    session(26, 17, "priya", say("How is the storm test?"), storm("5.88"), answer("Red as ever: the met office takes more than five seconds."),
        say("No, write dates as 2026-10-30 instead of 30 Oct, the office sorts by them."), answer("Written so from here on."),
    ),
    session(27, 12, "priya", chore("tide", many=14)),
    session(28, 12, "mia", chore("extend", many=14), todo("tell the guest why extend refused"), answer("Still open: tell the guest why extend refused.")),
    session(29, 9, "mia", chore("list", many=14)),
    session(29, 11, "jonas", say("what did we say about quotes again?"), answer("There were two answers: single first, double later.")),
    session(29, 14, "priya", chore("free", many=14), say("No, write dates as 2026-11-02 instead of 2 Oct please."), answer("Corrected.")),
    session(
        29, 17, "mia", chore("pier", many=14),
        handoff("The season can open but for the storm mails", "make test_storm_warning_live answer without the met office", "tell the guest why extend refused"),
    ),
)  # fmt: skip
