"""Whose credential an agent of many providers would use, as far as files and variables tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from binderclip.contract.check import Check


def keys_in(env: Mapping[str, str], names: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Providers with a key in the environment, and the name of the variable that holds it."""
    found = (
        (provider, next((key for key in keys if env.get(key)), ""))
        for provider, keys in names.items()
    )
    return {provider: key for provider, key in found if key}


def key_check(provider: str, variable: str) -> Check:
    """A key of the environment is used."""
    return Check(
        code="credential_api_key", level="info", message=f"Uses {variable} for {provider}."
    )


def stored_check(provider: str, kind: str) -> Check:
    """A credential that the CLI stored is used: a login or a key."""
    if kind == "oauth":
        return Check(
            code="credential_login", level="info", message=f"Uses the stored {provider} login."
        )
    return Check(
        code="credential_stored_key", level="info", message=f"Uses the stored {provider} key."
    )
