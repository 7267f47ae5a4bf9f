"""How each test of a suite ended, one line a test as it ends, appended to the file that OUTCOMES names: `passed`, `failed` or
`skipped`, a tab, the test's name. A test that ends several ways (subtests, its clean-up) is failed if one of them is.

A plugin of pytest (`-p outcomes`), a runner of Django (`TEST_RUNNER = "outcomes.DjangoRunner"`), and a filter for what
`go test -json` (`python3 outcomes.py go`), `cargo test` (`... cargo`) or JUnit's console with `--details testfeed` (`... junit`) print.
"""

import json
import os
import re
import sys


def tell(outcome, name):
    with open(os.environ["OUTCOMES"], "a") as file:
        # Names hold the server's version (SQLAlchemy's), and parameters with line breaks.
        name = re.sub(r"\+psycopg_\d+_\d+", "+psycopg", " ".join(name.split()))
        file.write(f"{outcome}\t{name}\n")


def pytest_runtest_logreport(report):
    if report.failed:
        tell("failed", report.nodeid)
    elif report.skipped:
        tell("skipped", report.nodeid)
    elif report.when == "call":
        tell("passed", report.nodeid)


try:
    import unittest

    from django.test.runner import DiscoverRunner
except ImportError:
    pass
else:

    class Result(unittest.TextTestResult):
        def addSuccess(self, test):
            super().addSuccess(test)
            tell("passed", test.id())

        def addExpectedFailure(self, test, err):
            super().addExpectedFailure(test, err)
            tell("passed", test.id())

        def addError(self, test, err):
            super().addError(test, err)
            tell("failed", test.id())

        def addFailure(self, test, err):
            super().addFailure(test, err)
            tell("failed", test.id())

        def addUnexpectedSuccess(self, test):
            super().addUnexpectedSuccess(test)
            tell("failed", test.id())

        def addSubTest(self, test, subtest, err):
            super().addSubTest(test, subtest, err)
            if err is not None:
                tell("failed", test.id())

        def addSkip(self, test, reason):
            super().addSkip(test, reason)
            tell("skipped", test.id())

    class DjangoRunner(DiscoverRunner):
        def get_resultclass(self):
            return Result


def go(lines):
    words = {"pass": "passed", "fail": "failed", "skip": "skipped"}
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if event.get("Test") and event["Action"] in words:
            tell(words[event["Action"]], f"{event['Package']} {event['Test']}")


def cargo(lines):
    words = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}
    for line in lines:
        print(line, end="")
        ended = re.match(r"test (.+?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)", line)
        if ended:
            tell(words[ended[2]], ended[1])


def junit(lines):
    words = {"SUCCESSFUL": "passed", "FAILED": "failed", "SKIPPED": "skipped", "ABORTED": "skipped"}
    for line in lines:
        print(line, end="")
        name, _, word = line.strip().rpartition(" :: ")
        if word in words:
            tell(words[word], name)


if __name__ == "__main__":
    filters = {"go": go, "cargo": cargo, "junit": junit}
    assert len(sys.argv) == 2 and sys.argv[1] in filters, "usage: outcomes.py go|cargo|junit < what the tests print"
    filters[sys.argv[1]](sys.stdin)
