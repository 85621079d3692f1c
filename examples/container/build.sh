#!/bin/sh
# Builds the image atdp:cpu or atdp:cuda from this checkout, and tries it without a network.
#
#     build.sh [cpu|cuda]
#
# Needs Docker with BuildKit, and Python with pip for the wheel. DOCKER names another program, such as podman.
set -eu
variant=${1:-cpu}
docker=${DOCKER:-docker}
here=$(cd "$(dirname "$0")" && pwd)
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
cp "$here/Dockerfile" "$here/../../constraints.txt" "$context"
python3 -m pip wheel --quiet --no-deps --wheel-dir "$context" "$here/../.."
"$docker" build --build-arg VARIANT="$variant" --tag "atdp:$variant" "$context"

alone() {
    "$docker" run --rm --interactive --network none --read-only --tmpfs /tmp --cap-drop ALL "$@"
}
echo 'Ask mary.jones@example.com for it.' | alone "atdp:$variant" detect - --set run.store=none | grep -q '"EMAIL"'
alone --entrypoint python "atdp:$variant" -c 'import os, atdp_cli.training.trainer; assert os.getuid() == 1000'
echo "atdp:$variant works."
