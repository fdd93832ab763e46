#!/usr/bin/env bash
# Real models for the emulator: `install` llama.cpp (xllamacpp) and put models into the user's cache, or `test`.
#   REAL_S=600   most seconds of the tests
# usage: BIN=.venv/bin real.sh install [NAME] | test [pytest's arguments]
set -euo pipefail

cd "$(dirname "$0")/.."
bin=${BIN:-.venv/bin}
what=${1:-}
shift || true

case $what in
install)
    if ! "$bin/python" -c 'import sys; from importlib.util import find_spec; sys.exit(not find_spec("xllamacpp"))'; then
        echo "Installing llama.cpp (xllamacpp, 102 MB) ..." >&2
        "$bin/python" -m pip --disable-pip-version-check --quiet install -c constraints.txt --no-deps xllamacpp
    fi
    # Beside each model that writes stands the embedder, since no vector is invented beside a real voice.
    "$bin/python" scripts/real_models.py "${1:-smollm2}" all-minilm
    ;;
test)
    # Only the files that have such tests: collecting the whole suite takes longer than most of them.
    mapfile -t files < <(grep -rlE 'pytest\.mark\.real\b' tests --include='test_*.py')
    timeout --foreground "${REAL_S:-600}" "$bin/python" -m pytest -q -n 0 -m real "${files[@]}" "$@"
    ;;
*)
    echo "usage: real.sh install [NAME] | test [pytest's arguments]" >&2
    exit 2
    ;;
esac
