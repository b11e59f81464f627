# SPDX-License-Identifier: Apache-2.0
"""Hypothesis prints the example that fails, and how to run it again; the last
line is the one that tools/check counts."""

import hypothesis

hypothesis.settings.register_profile("check", deadline=None, print_blob=True,
                                     max_examples=60)
hypothesis.settings.register_profile("long", deadline=None, print_blob=True,
                                     max_examples=2000)
hypothesis.settings.load_profile("check")


def pytest_terminal_summary(terminalreporter):
    passed, failed = (len(terminalreporter.stats.get(kind, []))
                      for kind in ("passed", "failed"))
    failed += len(terminalreporter.stats.get("error", []))
    terminalreporter.write_line(f"{passed} passed, {failed} failed")
