# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the launcher: the directory of a run's results. Its file .urdma-run lists the files that
# a run creates there. The next run in the directory removes the listed files. A file that is not
# listed is never removed or overwritten.

# claim_results DIR INPUT... -- FILE...: prepares DIR for a run that creates these files, and locks it
# until this shell and all its children have ended. The run reads the INPUTs, so they are kept.
# Returns 0, or 1 with the reason in $why.
# shellcheck disable=SC2034  # the caller tells it
claim_results() {
	local dir=$1 name input old=() inputs=() lock status=0
	shift
	while [ "$1" != -- ]; do
		inputs+=("$1")
		shift
	done
	shift
	if ! mkdir -p "$dir" 2>/dev/null || [ ! -w "$dir" ]; then
		why="cannot write to the results directory '$dir'"
		return 1
	fi
	# On a file system without locks, continue without one.
	if { exec {lock}<"$dir"; } 2>/dev/null; then
		flock -n -E 75 "$lock" 2>/dev/null || status=$?
		if [ $status = 75 ]; then
			why="a run is under way in '$dir': name another directory"
			return 1
		fi
	fi
	if [ -e "$dir/.urdma-run" ]; then
		while read -r name; do
			# A FIFO is from the reader of a killed run.
			if [[ $name != */* && (-f $dir/$name || -p $dir/$name) ]]; then
				old+=("$name")
			fi
		done <"$dir/.urdma-run"
	fi
	for name in ${old[@]+"${old[@]}"}; do
		for input in ${inputs[@]+"${inputs[@]}"}; do
			if [ "$dir/$name" -ef "$input" ]; then
				why="the run reads $input, a result of an earlier run in '$dir' that would be removed: name another directory"
				return 1
			fi
		done
	done
	if [ ${#old[@]} -gt 0 ]; then
		say "[urdma] removing the results of an earlier run in $dir: ${old[*]}"
		(cd "$dir" && rm -f -- "${old[@]}")
	fi
	for name; do
		if [ -e "$dir/$name" ]; then
			why="'$dir' has a file $name that no run of ./urdma has left there (.urdma-run does not list it): name another directory"
			return 1
		fi
	done
	if ! printf '%s\n' "$@" 2>/dev/null >"$dir/.urdma-run"; then
		why="cannot write to the results directory '$dir'"
		return 1
	fi
}

# new_results DIR: creates a directory in DIR, named after the current time, points `latest` to it,
# and prints its name.
new_results() {
	local base dir n=1
	mkdir -p "$1" || return 1
	base=$1/$(date +%Y%m%d-%H%M%S)
	dir=$base
	while ! mkdir "$dir" 2>/dev/null; do
		if [ ! -e "$dir" ]; then
			return 1 # there is no name that would do: a full disk, or no right
		fi
		dir=${base}_$n
		n=$((n + 1))
	done
	ln -sfn "${dir##*/}" "$1/latest"
	echo "$dir"
}

# keep FILE LIST: copies its input to FILE. If a write fails, it adds the name to LIST and discards
# the rest, so that the writer does not stop.
keep() {
	if ! cat >"$1" 2>/dev/null; then
		echo "${1##*/}" >>"$2"
		cat >/dev/null
	fi
}
