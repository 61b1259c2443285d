"""Real clients, a fake model, no network -> a line for each client and step: ok, cannot (and why), or FAILED.

    python tests/e2e/run.py [NAME…] [--keep] [--one]

Installs the pinned clients where they are not yet (see tests/clients/install.py), then starts itself again in a network
that has only loopback. A client with a failed step goes through all of its steps once more, in a new home; both
outcomes are printed. Ends with 1 when a client failed twice, or one that npm serves did not run; where npm serves none,
it says so and ends with 0, unless FOREWORD_E2E=required.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.clients.install import Installed, Missing, clients, install, line
from tests.clients.run import be_alone
from tests.clients.versions import VERSIONS
from tests.e2e import broken, steps
from tests.e2e.trial import Cannot, Trial

AT_ONCE = 2  # OpenCode takes half a gigabyte, and each client most of a core
ALONE = "E2E_ALONE"
Step = Callable[[Trial], str]


@dataclass(frozen=True)
class Plan:
    """One client's steps, with how it is installed and started."""

    host: str
    steps: Mapping[str, Step]
    form: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    patient: bool = True  # with deadlines for a slow machine


PLANS = {
    "opencode": Plan("opencode", steps.STEPS),  # the slowest first
    "codex": Plan("codex", steps.CODEX),
    "gemini": Plan("gemini", steps.STEPS),
    "claude-code-broken": Plan("claude-code", broken.STEPS, patient=False),
    "copilot": Plan("copilot", steps.STEPS),
    "claude-code": Plan("claude-code", steps.CLAUDE),
    # An older model, which is told what hooks say in another place.
    "claude-code-plugin": Plan(
        "claude-code", steps.PLUGIN, form=("--plugin",), options=("--model", "claude-sonnet-4-5")
    ),
}


@dataclass(frozen=True)
class Result:
    """How one step went."""

    plan: str
    step: str
    how: str  # ok, cannot or FAILED
    what: str
    seconds: float
    run: int = 1  # the second is that of a client that failed

    def line(self) -> str:
        name = self.plan if self.run == 1 else f"{self.plan}, again"
        return f"{name:27} {self.step:20} {self.how:7} {self.seconds:5.1f} s  {self.what}"


@dataclass
class Report:
    """Prints each result as it comes, and all of them in the end."""

    results: list[Result] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def tell(self, result: Result) -> None:
        with self._lock:
            self.results.append(result)
            print(result.line() if result.how == "FAILED" else _shorter(result.line()), flush=True)

    def failed(self, *, run: int) -> list[str]:
        """Return the plans that failed in their first or second run."""
        return list(dict.fromkeys(each.plan for each in self.results if each.how == "FAILED" and each.run == run))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plans", nargs="*", metavar="NAME", help=f"some of: {', '.join(PLANS)}")
    parser.add_argument("--keep", action="store_true", help="leave the scratch folders of what went well too")
    parser.add_argument("--one", action="store_true", help="one client after the other")
    options = parser.parse_args()
    names = options.plans or list(PLANS)
    if unknown := [name for name in names if name not in PLANS]:
        parser.error(f"no such plan: {unknown[0]}; there are {', '.join(PLANS)}")
    hosts = list(dict.fromkeys(PLANS[name].host for name in names))
    found = install(hosts, folder=clients(os.environ), environ=os.environ)  # with a network, and then without
    if ALONE not in os.environ:
        print("\n".join(map(line, found)), flush=True)
    alone = be_alone(ALONE)
    print(
        "no network but loopback" if alone else "NOT ALONE: `unshare -n` is not allowed here, so a network can be seen"
    )
    ready = {each.host: each.binary for each in found if isinstance(each, Installed)}
    report = Report()
    began = time.monotonic()
    with ThreadPoolExecutor(1 if options.one else AT_ONCE) as pool:
        todo = [name for name in names if PLANS[name].host in ready]
        list(pool.map(lambda name: _go(name, ready[PLANS[name].host], report, keep=options.keep), todo))
    required = os.environ.get("FOREWORD_E2E") == "required"
    return ended(report, found, took=time.monotonic() - began, required=required)


def _go(name: str, binary: Path, report: Report, *, keep: bool) -> None:
    """Take one client through its steps, and once more where one fails: clients have moods of their own."""
    _ = _run(name, binary, report, keep=keep, run=1) or _run(name, binary, report, keep=keep, run=2)


def _run(name: str, binary: Path, report: Report, *, keep: bool, run: int) -> bool:
    """Take one client through all of its steps; after a failure the later ones are still tried, for what they tell."""
    plan = PLANS[name]
    scratch = Path(tempfile.mkdtemp(prefix=f"e2e-{name}-"))
    trial = Trial(plan.host, binary=binary, scratch=scratch, form=plan.form, options=plan.options, patient=plan.patient)
    well = True
    with trial.open():
        for title, step in plan.steps.items():
            began = time.monotonic()
            how, what = _tried(step, trial)
            well = well and how != "FAILED"
            if how == "FAILED":
                what += f"  [kept: {scratch}]"
            report.tell(Result(name, title, how, what, time.monotonic() - began, run))
    if well and not keep:
        shutil.rmtree(scratch, ignore_errors=True)
    return well


def _tried(step: Step, trial: Trial) -> tuple[str, str]:
    try:
        return "ok", step(trial)
    except Cannot as exc:
        return "cannot", str(exc)
    except AssertionError as exc:
        return "FAILED", str(exc) or traceback.format_exc(limit=-2)
    except Exception:  # whatever it is, the other clients are still tried
        return "FAILED", traceback.format_exc(limit=-4)


def ended(report: Report, found: Sequence[Installed | Missing], *, took: float, required: bool) -> int:
    """Print the table and which clients ran; 1 when one failed twice, or did not run that should have."""
    print("\n" + "-" * 100)
    for name in PLANS:
        for each in report.results:
            if each.plan == name:
                print(_shorter(each.line()))
    ran = dict.fromkeys(PLANS[each.plan].host for each in report.results)
    print(f"\nran, in {took:.0f} s: {', '.join(VERSIONS[host].spec for host in ran) or 'NO CLIENT AT ALL'}")
    missing = [each for each in found if isinstance(each, Missing)]
    for each in missing:
        print(f"DID NOT RUN: {VERSIONS[each.host].spec}: {each.why}")
    if missing and not required and not any(each.served for each in missing):
        print("SKIPPED LOUDLY: npm serves none of these here; with FOREWORD_E2E=required this is a failure")
    once, twice = report.failed(run=1), report.failed(run=2)
    for name in once:
        print(f"{name} failed, and {'failed again' if name in twice else 'passed when it was repeated'}")
    print(f"FAILED: {', '.join(twice)}" if twice else "every client passed" if ran else "no client ran")
    return int(bool(twice) or any(each.served or required for each in missing))


def _shorter(line: str) -> str:
    return line if len(line) <= 160 else f"{line[:159]}…"


if __name__ == "__main__":
    sys.exit(main())
