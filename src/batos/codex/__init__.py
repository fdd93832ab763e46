"""The codex: who the personas are, read from TOML into frozen values, and the names that follow from it."""
