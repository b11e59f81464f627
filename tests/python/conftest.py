# SPDX-License-Identifier: Apache-2.0
"""Hypothesis prints the example that fails, and how to run it again."""

import hypothesis

hypothesis.settings.register_profile("check", deadline=None, print_blob=True,
                                     max_examples=60)
hypothesis.settings.register_profile("long", deadline=None, print_blob=True,
                                     max_examples=2000)
hypothesis.settings.load_profile("check")
