# SPDX-License-Identifier: Apache-2.0
"""The last line is the one that tools/check counts."""


def pytest_terminal_summary(terminalreporter):
    passed, failed = (len(terminalreporter.stats.get(kind, []))
                      for kind in ("passed", "failed"))
    failed += len(terminalreporter.stats.get("error", []))
    terminalreporter.write_line(f"{passed} passed, {failed} failed")
