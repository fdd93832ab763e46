# shellcheck shell=bash
# The story of `make demo AGENCY=1`, which scripts/demo.sh reads: an API that the mind never saw.
: "${batos:?}" "${work:?}"  # set by scripts/demo.sh
.venv/bin/python examples/parcels.py "$work/changed" >"$work/service" 2>&1 &
service=$!
until [ -s "$work/service" ]; do kill -0 "$service"; sleep 0.1; done  # any pace: waits for its first line
address=$(head -n 1 "$work/service")
approve_all() {
    local each
    for each in $("$batos" approvals --json | .venv/bin/python -c 'import json, sys; print(*(a["id"] for a in json.load(sys.stdin)["data"]["approvals"] if "answered_at" not in a))'); do
        shown approvals "$each"
        shown approve "$each"
    done
}

step "1. Ten lines of prose describe a service that nobody told the mind about; a person grants its address"
shown genesis
cat examples/parcels.md
shown grants add api "$address" --name parcels --description examples/parcels.md
shown inspect parcels

step "2. A question needs it, and names neither the tool nor what it is called: a person is asked about the tool first"
shown ask --install ask 'Look up the status of parcel PX200.' || true
approve_all

step "3. The same question: the tool is used, and what came is cited"
shown ask 'Look up the status of parcel PX200.'
shown why last
shown send parcels parcels_ PX201
shown grants queries

step "4. The service changes its replies: the reading is withdrawn, and the document is given as it came"
touch "$work/changed"
shown send parcels parcels_ PX201
shown inspect parcels.fixtures

step "5. It is made again of the new shape, and a person is asked, since the shape came from outside"
shown send parcels parcels_ PX201
approve_all
shown send parcels parcels_ PX201
shown method history parcels.reading_of_parcels_
