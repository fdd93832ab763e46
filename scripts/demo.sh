#!/usr/bin/env bash
# A real mission from question to answer, and back out of the image in another process.
#   LIVE=1            use the Ollama at OLLAMA_HOST instead of the emulator (asks before it pulls; YES=1 does not ask)
#   REAL=1            let the emulator answer with a real and very small model (fetches it: scripts/real.sh)
#   MOTION=1          tell another story: voices that begin to say the same, and what the mind does by itself
#   AGENCY=1          tell another story: a service that ten lines of prose describe, made a tool, and made again
#   QUESTION="..."    ask something else of examples/harbour.txt
set -euo pipefail

cd "$(dirname "$0")/.."
exec 2>&1  # progress and results in the order in which they come, wherever this is read
if [ "${MOTION:-}" = 1 ]; then
    exec .venv/bin/python bench/motion.py --tell
fi
batos=$PWD/.venv/bin/batos
question=${QUESTION:-"How did Maud Okafor close the breach in the pier, and why did she refuse the first plan?"}
work=$(mktemp -d)
emulator=
service=
finish() {
    local status=$?
    # A verb may have started a server of the demo's home, which thinks with this emulator.
    [ "${BATOS_HOME:-}" != "$PWD/.batos/demo" ] || "$batos" stop >/dev/null 2>&1 || true
    [ -z "$emulator" ] || kill "$emulator" 2>/dev/null || true
    [ -z "$service" ] || kill "$service" 2>/dev/null || true
    rm -rf "$work"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM

step() { printf '\n\033[1m%s\033[0m\n' "$*"; }
if [ ! -t 1 ] || [ -n "${NO_COLOR:-}" ]; then step() { printf '\n%s\n' "$*"; }; fi
# What is printed can be copied: quoted where a shell needs it, with the path where the command is.
shown() {
    printf '$ .venv/bin/batos'
    local word
    for word in "$@"; do
        case $word in *[!A-Za-z0-9_./:=-]*) printf ' %s' "${word@Q}" ;; *) printf ' %s' "$word" ;; esac
    done
    printf '\n'
    "$batos" "$@"
}

live_or_refuse() {
    export OLLAMA_HOST=${OLLAMA_HOST:-http://127.0.0.1:11434}
    step "This demo thinks with the Ollama at $OLLAMA_HOST"
    shown genesis --plan
    [ "${YES:-}" != 1 ] || return 0
    # Making a persona's model costs nothing; only a pull is asked about.
    "$batos" genesis --plan --json | grep -q '"kind": *"pull"' || return 0
    if [ ! -t 0 ]; then
        echo "Models may have to be pulled (gigabytes): say YES=1 to go on without being asked." >&2
        exit 4
    fi
    read -r -p "Go on, and pull what is missing? [y/N] " reply
    case $reply in [yY]*) ;; *) echo "Nothing was pulled."; exit 4 ;; esac
}

# A home of its own, new each time: the demo begins as a first question does and touches nothing of yours. The emulator
# says the same to the same request; a mission's seeds come from its id, so another run's words are not these.
# (The settings of the person who runs it are put aside too; OLLAMA_HOST counts with LIVE=1 alone.)
unset "${!BATOS_@}"
export BATOS_HOME=$PWD/.batos/demo
rm -rf "$BATOS_HOME"

if [ "${LIVE:-}" = 1 ]; then
    live_or_refuse
else
    voice=()
    if [ "${REAL:-}" = 1 ]; then
        scripts/real.sh install
        voice=(--gguf smollm2)
    fi
    "$batos" emulator --port 0 ${voice[@]+"${voice[@]}"} >"$work/out" 2>"$work/err" &
    emulator=$!
    . scripts/wait_url.sh
    OLLAMA_HOST=$(wait_url "$work/out" "$work/err" "$emulator")
    export OLLAMA_HOST
    if [ "${REAL:-}" = 1 ]; then
        step "This demo thinks with the emulator at $OLLAMA_HOST and SmolLM2-135M: a real model, sixty times smaller than the codex's"
        echo "(Its answers are often wrong. LIVE=1 make demo uses your Ollama instead.)"
    else
        step "This demo thinks with the emulator at $OLLAMA_HOST: the wire is Ollama's, the words are no model's"
        echo "(REAL=1 make demo answers with a very small real model, LIVE=1 make demo uses your Ollama.)"
    fi
fi

if [ "${AGENCY:-}" = 1 ]; then
    . scripts/demo_agency.sh
    exit 0
fi

step "1. Genesis: the codex becomes prototypes in the image, and models in the daemon"
shown genesis

step "2. A mission about examples/harbour.txt"
shown ask --stream --effort cycle --file examples/harbour.txt "$question"

step "3. The same mission, read back from the image by a new process"
mission=$("$batos" missions --json | .venv/bin/python -c 'import json, sys; print(json.load(sys.stdin)["data"]["missions"][0]["id"])')
shown show "$mission"

if [ "${REAL:-}" = 1 ]; then
    step "4. What it did without: methods for the facets that it interpreted"
    shown method list
    echo "(So small a model takes minutes to write one: \`batos method make\` would begin. The story ends here.)"
    exit 0
fi

step "4. What it did without: methods for the facets that it interpreted, begun when the answer was out; the rest now"
shown method make
shown method list
learnt=$("$batos" method list --json | .venv/bin/python -c 'import json, sys; print(next((m["method"] for m in json.load(sys.stdin)["data"]["methods"] if m["active"]), ""))')
if [ -n "$learnt" ]; then
    step "5. One of them, which the next mission runs"
    shown method show "$learnt"
else
    echo "The model wrote none that passed its checks: the facets go on being interpreted."
fi

step "The image is in $BATOS_HOME; look around with: BATOS_HOME=$BATOS_HOME .venv/bin/batos inspect robin_prototype_obj"
