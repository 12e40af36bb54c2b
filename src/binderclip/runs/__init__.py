"""One run from wake to checkpoint; `lifecycle` calls the steps top to bottom."""
