#!/usr/bin/env bash
# Run `make test` N times in fresh clones with an empty HOME, while every core has other work too.
#
#     tests/soak.sh [N [what pytest understands]]
#
# Prints how long each run took, what failed in it, and the slowest 20 tests of the last one; ends with 1 when a run
# failed. FOREWORD_CLIENTS is passed on: without it each run would install npm's packages again.
set -uo pipefail
runs=${1:-4}
args=${2:-}
root=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/soak-XXXXXX")
clients=${FOREWORD_CLIENTS:-${XDG_CACHE_HOME:-$HOME/.cache}/foreword/clients}
pip_cache=$("$root/.venv/bin/python" -m pip cache dir 2>/dev/null || true)
load=()

stop() {
	((${#load[@]})) && kill "${load[@]}" 2>/dev/null
	rm -rf "$scratch"
}
trap stop EXIT
trap 'exit 130' INT TERM

# The other work: a busy loop a core. It is bounded, should nobody be left to end it.
for _ in $(seq "$(getconf _NPROCESSORS_ONLN)"); do
	timeout 6h bash -c 'while :; do :; done' &
	load+=($!)
done

failed=0
for run in $(seq "$runs"); do
	clone=$scratch/$run/clone
	mkdir -p "$scratch/$run/home"
	git clone --quiet "$root" "$clone"
	# Samples that lie beside the checkout are used by the tests that find them.
	[ -d "$root/../shared" ] && ln -s "$(cd "$root/../shared" && pwd)" "$scratch/$run/shared"
	log=$scratch/$run/log
	began=$SECONDS
	if HOME=$scratch/$run/home FOREWORD_CLIENTS=$clients PIP_CACHE_DIR=$pip_cache \
		make -C "$clone" --no-print-directory test ARGS="--durations=20 $args" >"$log" 2>&1; then
		echo "run $run: $((SECONDS - began)) s: $(tail -n 1 "$log")"
	else
		failed=$((failed + 1))
		echo "run $run: $((SECONDS - began)) s: FAILED"
		grep -E '^(FAILED|ERROR|error:|make: )' "$log" || tail -n 20 "$log"
		cp "$log" "${TMPDIR:-/tmp}/soak-failed-$run.log"
		echo "  all of it: ${TMPDIR:-/tmp}/soak-failed-$run.log"
	fi
	[ "$run" -lt "$runs" ] && rm -rf "$clone"
done
sed -n '/slowest 20 durations/,/^$/p' "$log"
echo "$((runs - failed)) of $runs runs passed"
exit $((failed > 0))
