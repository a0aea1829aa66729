# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the launcher: the directory of a run's results. Its file .urdma-run lists the files
# that a run makes there. What such a list names is removed when the next run begins there; a file
# that no list names is nobody's to remove, or to write over.

# claim_results DIR INPUT... -- FILE...: makes room in DIR for a run that makes these files, and keeps
# other runs out of it until this shell and all its children have ended. The run reads the INPUTs, so
# they stay. 0, or 1 and the reason in $why.
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
	# A file system that has no locks does without.
	if { exec {lock}<"$dir"; } 2>/dev/null; then
		flock -n -E 75 "$lock" 2>/dev/null || status=$?
		if [ $status = 75 ]; then
			why="a run is under way in '$dir': name another directory"
			return 1
		fi
	fi
	if [ -e "$dir/.urdma-run" ]; then
		while read -r name; do
			# A FIFO is that of a reader that followed a run which was killed.
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

# new_results DIR: makes a directory named after the time in DIR, with `latest` pointing to it, and
# prints its name.
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

# keep FILE LIST: writes what comes to FILE. If FILE cannot take it, the name goes to LIST and the
# rest nowhere: the writer must not stop for it.
keep() {
	if ! cat >"$1" 2>/dev/null; then
		echo "${1##*/}" >>"$2"
		cat >/dev/null
	fi
}
