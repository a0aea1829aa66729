#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The connection managers, and UD, UC and XRC by the stock programs, between two devices in network namespaces: over IPv4, IPv6
# and a VLAN; after the net device was down; and after a reset during a connection. A failure means that QP 1, datagrams or
# address handles do not work, or that the MAD layer does not cope with the removal of a device.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh
# shellcheck source=tests/guest/cm_lib.sh
. /opt/urdma/tests/cm_lib.sh

devices_up 2 || fail "two active devices are expected"

namespaces
baseline=$(resources)
for k in "a $na 1" "b $nb 2"; do
	# shellcheck disable=SC2086  # words
	set -- $k
	ip -n "$1" link add link "$2" name v7 type vlan id 7 egress-qos-map 0:1 4:5
	ip -n "$1" link set v7 up
	ip -n "$1" address add 10.7.0."$3"/24 dev v7
	ip -n "$1" address add fd07::"$3"/64 dev v7 nodad
done
ga=$(index_in a urdma0) gb=$(index_in b urdma1)

for to in 10.1.0.1 fd01::1 10.7.0.1 fd07::1; do
	served rping -s -a $to -C 3 -- rping -c -a $to -C 3 -v
	served udaddy -b $to -C 4 -- udaddy -s $to -C 4
done
served ucmatose -b 10.1.0.1 -c 3 -C 4 -- ucmatose -s 10.1.0.1 -c 3 -C 4
for options in "ibv_ud_pingpong -n 20" "ibv_ud_pingpong -n 20 -s 4096 -e" "ibv_uc_pingpong -n 20 -s 10000"; do
	# shellcheck disable=SC2086
	served $options -d urdma0 -g "$ga" -- $options -d urdma1 -g "$gb" 10.1.0.1
done
for options in "ib_send_bw -c UD -s 1024 -n 50" "ib_send_lat -c UD -s 64 -n 20 -I 100" "ib_send_bw -c UC -s 9000 -n 20" \
	"ib_write_bw -c UC -s 9000 -n 20" "ib_send_lat -c UD -s 64 -n 20 -R"; do
	# shellcheck disable=SC2086
	served $options -F -d urdma0 -x "$ga" -- $options -F -d urdma1 -x "$gb" 10.1.0.1
done
# The program posts more sends than it waits for.
served ibv_srq_pingpong -n 50 -q 8 -s 4096 -d urdma0 -g "$ga" -- ibv_srq_pingpong -n 50 -q 8 -s 4096 -d urdma1 -g "$gb" 10.1.0.1
served ibv_srq_pingpong -n 50 -e -s 3000 -d urdma0 -g "$ga" -- ibv_srq_pingpong -n 50 -e -s 3000 -d urdma1 -g "$gb" 10.1.0.1
served ibv_xsrq_pingpong -n 10 -d urdma0 -g "$ga" -- ibv_xsrq_pingpong -n 10 -d urdma1 -g "$gb" 10.1.0.1
served rdma_xserver -c x -- rdma_xclient -s 10.1.0.1 -c x
served ib_send_bw -c XRC -s 1000 -n 20 -F -d urdma0 -x "$ga" -- ib_send_bw -c XRC -s 1000 -n 20 -F -d urdma1 -x "$gb" 10.1.0.1
wait_resources "$baseline" || fail "objects are left: $(rdma resource show)"

ip -n a link set "$na" down
ip -n a link set "$na" up
addresses_ab
devices_up 2 || fail "the devices are not up again"
gid_comes urdma0 0000:0000:0000:0000:0000:ffff:0a01:0001
served rping -s -a 10.1.0.1 -C 3 -- rping -c -a 10.1.0.1 -C 3
echo "ok: after the net device was down"

# A connection with traffic, and a listener on every device.
pci=$(basename "$(readlink -f /sys/class/infiniband/urdma0/device)")
ip netns exec a rping -s -a 10.1.0.1 >/tmp/server.log 2>&1 &
programs=($!)
for _ in $(seq "$patience"); do
	! rdma resource show cm_id | grep -q 'state LISTEN' || break
	sleep 0.1
done
ip netns exec b rping -c -a 10.1.0.1 >/tmp/client.log 2>&1 &
programs+=($!)
ip netns exec b rping -s -p 7175 >/dev/null 2>&1 &
programs+=($!)
for _ in $(seq "$patience"); do
	! rdma resource show cm_id | grep -q 'state CONNECT' || break
	sleep 0.1
done
rdma resource show cm_id | grep -q 'state CONNECT' || fail "no connection: $(cat /tmp/server.log /tmp/client.log)"
echo 1 >"/sys/bus/pci/devices/$pci/reset" || fail "no reset"
kill "${programs[@]}" 2>/dev/null
wait "${programs[@]}" 2>/dev/null
addresses_ab
devices_up 2 || fail "the devices did not come back"
gid_comes urdma0 0000:0000:0000:0000:0000:ffff:0a01:0001
served rping -s -a 10.1.0.1 -C 3 -- rping -c -a 10.1.0.1 -C 3
for _ in $(seq "$patience"); do
	rdma resource show qp | grep -qv 'type GSI' || break
	sleep 0.1
done
! rdma resource show qp | grep -qv 'type GSI' || fail "QPs are left: $(rdma resource show qp)"
echo "ok: connections, datagrams, a reset in their midst"
