"""Whose credential an agent of many providers would use."""

from __future__ import annotations

from binderclip.sdk.credentials import key_check, keys_in, stored_check

NAMES = {"acme": ("ACME_TOKEN", "ACME_KEY"), "other": ("OTHER_KEY",)}


def test_the_first_variable_that_is_set_counts() -> None:
    env = {"ACME_TOKEN": "", "ACME_KEY": "k", "HOME": "/root"}
    assert keys_in(env, NAMES) == {"acme": "ACME_KEY"}
    assert keys_in({**env, "ACME_TOKEN": "t"}, NAMES) == {"acme": "ACME_TOKEN"}


def test_checks_name_the_credential_and_never_its_value() -> None:
    """E2: which credential is in use: a login, a stored key, a variable."""
    assert key_check("acme", "ACME_KEY").message == "Uses ACME_KEY for acme."
    assert stored_check("acme", "oauth").code == "credential_login"
    assert stored_check("acme", "api").code == "credential_stored_key"
