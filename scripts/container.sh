#!/bin/sh
# What the container runs: a verb of batos, as its only argument list; for `serve` it looks at the home first and says
# how a client gets in. The keys themselves are made by `serve` at its first start, in the home, which is the volume.
set -eu
umask 077

home=${BATOS_HOME:-/data}

say() { printf '%s\n' "$*"; }

if [ "${1:-serve}" = serve ]; then
    mkdir -p "$home" 2>/dev/null || true
    if ! [ -w "$home" ]; then
        say "$home cannot be written by user $(id -u): give it that folder (chown -R $(id -u):$(id -g)), or name its owner" >&2
        say "by BATOS_UID and BATOS_GID (docs/compose.md)." >&2
        exit 2
    fi
    if [ -s "$home/keys/server.json" ]; then
        say "The keys of this server are in $home/keys."
    else
        say "First start: the keys of this server are made in $home/keys, on the volume."
    fi
    say "A client on this host gets a key of its own, once:"
    say "  docker compose exec -T batos batos keys new laptop --out - >laptop.batos-key.json"
    say "and uses it:"
    say "  BATOS_SERVER=laptop.batos-key.json batos status"
    say "Nothing installed on the host is needed either: docker compose exec batos batos status"
    if ! [ -d "$home/modelfiles" ]; then
        if [ "${BATOS_GENESIS:-asked}" = auto ]; then
            say "There was no genesis yet: it begins now, pulls the models, and goes on with the next start if it is stopped."
            say "How far it is: docker compose exec batos batos status"
        else
            say "There was no genesis yet: docker compose exec batos batos genesis"
        fi
    fi
fi

exec batos "${@:-serve}"
