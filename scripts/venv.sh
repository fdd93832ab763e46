#!/usr/bin/env bash
# The environment of a checkout: `make` it, or say whether the one there is `stale` (prints the name of a phony target).
# PYTHON and EXTRAS may be empty: then those of the environment that is there count, else python3.11 and dev.
# usage: venv.sh make|stale PYTHON EXTRAS STAMP
set -euo pipefail

what=$1 stamp=$4
venv=$(dirname "$stamp")
was_python='' was_extras=''
if [ -f "$stamp" ]; then { read -r was_python; read -r was_extras; } <"$stamp" || true; fi
command -v "${was_python:-none}" >/dev/null || was_python='' was_extras=''
python=${2:-${was_python:-python3.11}}
# An environment that was made for the demo has no tools (`none`), one for a room has few (`test`): whoever needs more gets them.
case $was_extras in none | test) was_extras=dev ;; esac
extras=${3:-${was_extras:-dev}}

if [ "$what" = stale ]; then
    if [ -f "$stamp" ] && [ "$(printf '%s\n' "$python" "$extras")" != "$(head -n 2 "$stamp")" ]; then echo other-environment; fi
    exit 0
fi

say() { printf '%s\n' "$*" >&2; }

if ! command -v "$python" >/dev/null; then
    say "BAT OS needs Python 3.11 or newer, and there is no \`$python\` here."
    say "  Debian, Ubuntu:  apt-get install python3.11 python3.11-venv"
    say "  another one:     make PYTHON=python3.12 (or the path of any newer Python)"
    exit 2
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    say "BAT OS needs Python 3.11 or newer; \`$python\` is $("$python" -V 2>&1). Use another: make PYTHON=python3.12"
    exit 2
fi
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    say "$python has no venv module. Debian, Ubuntu: apt-get install python$version-venv"
    exit 2
fi

if [ -x "$venv/bin/python" ] && [ "$("$venv/bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' || true)" != "$version" ]; then
    rm -rf "$venv"
fi
if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    say "Making the environment $venv with $("$python" -V) ..."
    "$python" -m venv --clear "$venv"
fi
case $extras in
none) what=. with="" ;;
*) what=".[$extras]" with=" and its tools ($extras)" ;;
esac
say "Installing BAT OS$with (constraints.txt has the versions) ..."
# On a terminal pip says what it loads, with its bar; a log has no use for that.
quiet=(--quiet)
if [ -t 1 ]; then quiet=(); fi
"$venv/bin/python" -m pip --disable-pip-version-check "${quiet[@]}" install -c constraints.txt -e "$what"
printf '%s\n' "$python" "$extras" >"$stamp"
