#!/usr/bin/env bash
# What a user installs: the wheel is built, put into an empty environment, and answers a mission from there.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-python3.11}
case $python in */*) python=$(cd "$(dirname "$python")" && pwd)/$(basename "$python") ;; esac
work=$(mktemp -d)
emulator=
finish() {
    local status=$?
    [ -z "$emulator" ] || kill "$emulator" 2>/dev/null || true
    rm -rf "$work"
    exit "$status"
}
trap finish EXIT

cd "$root"
echo "Building the wheel ..."
"$python" -m build --wheel --outdir "$work/dist" . >"$work/build.log" 2>&1 || { cat "$work/build.log" >&2; exit 1; }
wheel=$(ls "$work"/dist/batos-*.whl)

echo "Installing $(basename "$wheel") into an empty environment ..."
"$python" -m venv "$work/venv"
"$work/venv/bin/python" -m pip --disable-pip-version-check --quiet install -c constraints.txt "$wheel"
cp examples/harbour.txt "$work/"

# Nothing of the checkout or of the person's settings may be seen from here on.
cd "$work"
unset PYTHONPATH "${!BATOS_@}" "${!OLLAMA_@}"
export BATOS_HOME=$work/home BATOS_DEBUG_LOOP=1
batos=$work/venv/bin/batos
"$batos" --version
# What errors point to is in the package, and a program imports its client from it.
"$batos" help ollama.answers
"$work/venv/bin/python" -c 'from batos import AsyncClient, Client'

"$batos" emulator --port 0 >"$work/emulator.out" 2>"$work/emulator.err" &
emulator=$!
# shellcheck source=scripts/wait_url.sh
. "$root/scripts/wait_url.sh"
OLLAMA_HOST=$(wait_url "$work/emulator.out" "$work/emulator.err" "$emulator")
export OLLAMA_HOST
"$batos" genesis
"$batos" ask --quiet --file harbour.txt "How many boats did the harbour hold at its height?" >"$work/answer.txt"
[ -s "$work/answer.txt" ] || { echo "the mission gave no answer" >&2; exit 1; }
"$batos" missions --json | "$work/venv/bin/python" -c '
import json, sys
(mission,) = json.load(sys.stdin)["data"]["missions"]
assert mission["status"] == "done", mission
'
echo "The wheel works: $(basename "$wheel") answered a mission from an empty environment."
