#!/usr/bin/env bash
# Record the terminal of README: a real run against the emulator, drawn as docs/first-question.svg.
set -euo pipefail

cd "$(dirname "$0")/.."
exec .venv/bin/python bench/recording_side.py "$@"
