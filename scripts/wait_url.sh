# shellcheck shell=bash
# Sourced: wait_url OUT ERR PID waits until the emulator has printed its address to OUT, and prints it.
wait_url() {
    local url
    for _ in $(seq 200); do
        url=$(grep -ohE 'http://[0-9.]+:[0-9]+' "$1" "$2" 2>/dev/null | head -n 1 || true)
        if [ -n "$url" ]; then
            printf '%s\n' "$url"
            return 0
        fi
        kill -0 "$3" 2>/dev/null || break
        sleep 0.1
    done
    echo "the emulator did not start:" >&2
    cat "$1" "$2" >&2
    return 1
}
