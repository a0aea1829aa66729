#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The names of devices, and network namespaces: a device gets another name; in shared mode programs of other namespaces use it;
# in exclusive mode it belongs to one namespace, moves to another under traffic, and returns when that one is removed.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

devices_up 2 || fail "two active devices are expected"
step() { echo "-- $* ($(cut -d' ' -f1 /proc/uptime))"; }

# talk SERVER CLIENT ADDRESS: sends messages between these devices, whose programs connect at ADDRESS.
talk() {
	pair ibv_rc_pingpong "$3" "$1" "$2" -c -n 50 ||
		fail "$1 and $2: status $status, server's $server_status: $(cat /tmp/server.log /tmp/client.log)"
}

# index_in NAMESPACE DEV: gid_index there, after the GID of its IPv4 address has appeared.
index_in() {
	# shellcheck disable=SC2016  # for the other shell
	ip netns exec "$1" bash -c '. /opt/urdma/tests/common.sh
		for _ in $(seq "$patience"); do
			gids "$1" | grep -q " 0000:0000:0000:0000:0000:ffff:" && gid_index "$1" && break
			sleep 0.1
		done' - "$2"
}

# packets DEV [COMMAND...]: packets received by the device, which is where COMMAND runs.
packets() { "${@:2}" cat "/sys/class/infiniband/$1/ports/1/hw_counters/rcvd_pkts"; }
more_than() { [ "$(packets "${@:2}")" -gt "$1" ]; }

# devices [COMMAND...]: the names of RDMA devices seen there.
devices() {
	"$@" rdma dev show | sed 's/^[0-9]*: //; s/:.*//' | sort | tr '\n' ' '
}

# wants DEVICES [COMMAND...]: checks that these are seen there.
sees() { [ "$(devices "${@:2}")" = "$1" ]; }
wants() { waits "devices '$1' as '${*:2}' sees them" sees "$@"; }

# mode shared|exclusive: the mode cannot change while there are other namespaces, and a work queue removes them.
mode() {
	waits "$1 namespaces" rdma system set netns "$1"
	rdma system show | grep -q "netns $1" || fail "not $1: $(rdma system show)"
}

step "another name"
rdma dev set urdma0 name card
wants "card urdma1 "
! rdma dev set urdma1 name card 2>/dev/null || fail "two devices have one name"
ibv_devinfo -d card >/dev/null || fail "ibv_devinfo does not find the new name"
! ibv_devinfo -d urdma0 >/dev/null 2>&1 || fail "ibv_devinfo still finds the old name"
talk card urdma1 127.0.0.1
# Under traffic: a program that has the device open is not affected.
before=$(packets card)
pair ib_write_bw 127.0.0.1 card urdma1 -D 3 &
load=$!
waits "packets at card" more_than $((before + 20)) card
rdma dev set card name urdma0
wait $load || fail "traffic while the name changed: $(cat /tmp/server.log /tmp/client.log)"
talk urdma0 urdma1 127.0.0.1

step "shared between namespaces"
rdma system show | grep -q 'netns shared' || fail "not shared: $(rdma system show)"
(
	namespaces
	wants "urdma0 urdma1 " in_a
	where[urdma0]="ip netns exec a" where[urdma1]="ip netns exec b"
	talk urdma0 urdma1 10.1.0.1
) || exit 1

step "exclusive"
mode exclusive
(
	namespaces
	rdma dev set urdma0 netns a || fail "urdma0 cannot go to a"
	rdma dev set urdma1 netns b || fail "urdma1 cannot go to b"
	wants ""
	wants "urdma0 " in_a
	wants "urdma1 " in_b
	! ibv_devinfo -d urdma0 >/dev/null 2>&1 || fail "the first namespace can use urdma0"
	where[urdma0]="ip netns exec a" where[urdma1]="ip netns exec b"
	gid_of[urdma0]=$(index_in a urdma0) gid_of[urdma1]=$(index_in b urdma1)
	talk urdma0 urdma1 10.1.0.1

	# The program that had it open loses it; the device works in its new namespace.
	step "moved under traffic"
	before=$(packets urdma0 in_a)
	pair ib_write_bw 10.1.0.1 urdma0 urdma1 -m 1024 -D 600 &
	load=$!
	waits "packets at urdma0" more_than $((before + 20)) urdma0 in_a
	in_a rdma dev set urdma0 netns b || fail "urdma0 cannot go to b"
	! wait $load || fail "the programs ended well, and one had lost its device"
	wants "" in_a
	wants "urdma0 urdma1 " in_b
	in_b rdma dev set urdma0 netns a || fail "urdma0 cannot come back to a"
	wants "urdma0 " in_a
	gid_of[urdma0]=$(index_in a urdma0)
	talk urdma0 urdma1 10.1.0.1
) || exit 1
wants "urdma0 urdma1 "

step "shared again"
mode shared
talk urdma0 urdma1 127.0.0.1
echo "ok: names and network namespaces"
