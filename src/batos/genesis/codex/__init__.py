"""The codex describes the personas: it is read from TOML into frozen values, with the names that follow from it."""
