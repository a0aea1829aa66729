#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# guest.sh ITERS IDLE LOAD...: what tools/speed.sh has a guest do. Before and after each load it waits
# until the host has looked at the simulator's CPU time.
set -u

iters=$1 idle=$2
shift 2

# step NAME: tells the host, waits until it has seen it.
step() {
	: >"/share/$1"
	until [ -e "/share/$1.seen" ]; do
		sleep 0.02
	done
}

# gid DEV: the index of the RoCE v2 GID of its IPv4 address.
gid() {
	local d=/sys/class/infiniband/$1/ports/1 i type gid
	for i in {0..31}; do
		if read -r type && [ "$type" = "RoCE v2" ] && read -r gid <"$d/gids/$i"; then
			case $gid in
			0000:0000:0000:0000:0000:ffff:*)
				echo "$i"
				return
				;;
			esac
		fi <"$d/gid_attrs/types/$i"
	done 2>/dev/null
}

# listening PORT
listening() {
	grep -q "$(printf ':%04X 0.* 0A' "$1")" /proc/net/tcp /proc/net/tcp6
}

port=18500
# pingpong BYTES: ibv_rc_pingpong between the two NICs, polling.
pingpong() {
	local server
	port=$((port + 1))
	timeout 600 ibv_rc_pingpong -d urdma0 -g "$(gid urdma0)" -p $port -n "$iters" -s "$1" >/tmp/server.log 2>&1 &
	server=$!
	until listening $port; do
		kill -0 $server 2>/dev/null || break
		sleep 0.05
	done
	timeout 600 ibv_rc_pingpong -d urdma1 -g "$(gid urdma1)" -p $port -n "$iters" -s "$1" 127.0.0.1 || return
	wait $server
}

for _ in {1..200}; do
	[ "$(cat /sys/class/infiniband/urdma*/ports/1/state | grep -c ACTIVE)" = 2 ] && break
	sleep 0.1
done
# What comes with the boot, such as neighbours' discovery, is over then.
sleep 2
for load; do
	case $load in
	pingpong-*)
		step "$load.begins"
		pingpong "${load#*-}" >"/share/$load.log" 2>&1 || {
			cat "/share/$load.log" /tmp/server.log
			exit 1
		}
		step "$load.ends"
		;;
	idle)
		step idle.begins
		sleep "$idle"
		step idle.ends
		;;
	esac
done
