#!/bin/sh
# Audits every model folder in RUNS, a process each, and prints a line for each: gate, highest exposure, path.
#
#     audit-all.sh RUNS MANIFEST [OPTION of atdp audit-canary]...
#
# Ends as atdp does over several models, with the first of 3, 1, 4, 0 that occurs; a model that cannot be read is a 3.
set -eu
runs=$1
manifest=$2
shift 2
codes=' '
for model in "$runs"/*/; do
    model=${model%/}
    [ -d "$model" ] || continue
    case $model in *.private | *.partial) continue ;; esac
    code=0
    found=$(atdp audit-canary "$model" --manifest "$manifest" --json --quiet "$@") || code=$?
    case $code in
    130) exit 130 ;;
    2) code=3 ;;
    esac
    codes="$codes$code "
    if [ -n "$found" ]; then
        printf '%s\n' "$found" | jq -r '.models[] | [.gate, (.combined.max_exposure // "-"), .model] | @tsv'
    else
        printf 'ERROR\t-\t%s\n' "$model"
    fi
done
for code in 3 1 4 0; do
    case $codes in *" $code "*) exit "$code" ;; esac
done
echo "audit-all.sh: there is no model in $runs." >&2
exit 2
