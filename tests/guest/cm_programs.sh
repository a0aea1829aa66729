#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# cm_programs.sh [hosts] [loss] [manager]: the programs of librdmacm, perftest with the connection manager, and those of UC, UD
# and XRC, in all their modes, between two devices in network namespaces, or with "hosts" between two guests. With "loss" the
# wires lose frames: reliable programs must complete; programs of UD and UC may wait for lost messages.
#
# With -R, perftest has one buffer for the parameters that it sends and receives, and rping writes its next message into the
# buffer of the last one as soon as the answer has come, without waiting for the completion of its SEND. So a retransmitted
# SEND may have other bytes. Therefore "loss" omits rping and perftest with -R, and "loss manager" runs only these.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh
# shellcheck source=tests/guest/cm_lib.sh
. /opt/urdma/tests/cm_lib.sh

lossy='' hosts='' manager=''
for word; do
	case $word in
	loss) lossy=loss ;;
	hosts) hosts=hosts ;;
	manager) manager=manager ;;
	*) fail "usage: cm_programs.sh [hosts] [loss] [manager]" ;;
	esac
done
if [ "$hosts" ]; then
	devices_up 1 || fail "an active device is expected"
	on 1 bash -c '. /opt/urdma/tests/common.sh; devices_up 1' || fail "an active device is expected in guest 1"
	ip address replace fd01::2/64 dev "$(net_of urdma0)" nodad
	# shellcheck disable=SC2016  # for the other guest
	on 1 bash -c '. /opt/urdma/tests/common.sh; ip address replace fd01::1/64 dev "$(net_of urdma0)" nodad'
	server_at=(on 1) client_at=(env)
	da=urdma0 db=urdma0 a=10.77.0.2 b=10.77.0.1
	ga=$(on 1 bash -c '. /opt/urdma/tests/common.sh; gid_index urdma0') gb=$(gid_index urdma0)
else
	devices_up 2 || fail "two active devices are expected"
	namespaces
	da=urdma0 db=urdma1 a=10.1.0.1 b=10.1.0.2
	ga=$(index_in a $da) gb=$(index_in b $db)
fi
# The path MTU that the connection manager and perftest derive from the net device: all connections of a run have the same.
mtu=4096
[ ! "$hosts" ] || mtu=1024
baseline=$(resources)

# end: no program has left anything behind.
end() {
	wait_resources "$baseline" || fail "objects are left: $(rdma resource show)"
	echo "ok"
	exit 0
}

# rping allows 2 s for address resolution, in which a lost ARP or ND packet is repeated once.
for address in $a fd01::1; do
	"${client_at[@]}" ping -q -c 3 -A -w 120 "$address" >/dev/null || fail "no way to $address"
done

if [ -z "$lossy" ] || [ "$manager" ]; then
	# rping: checked data, sizes, threads, connections one after another, both versions of IP.
	served rping -s -a $a -C 5 -V -v -S 100 -- rping -c -a $a -C 5 -V -v -S 100
	served rping -s -a $a -C 5 -V -S 65535 -- rping -c -a $a -C 5 -V -S 65535
	served rping -s -a fd01::1 -C 5 -V -- rping -c -a fd01::1 -C 5 -V
	served rping -s -a $a -C 5 -V -p 9999 -- rping -c -a $a -C 5 -V -p 9999
	served rping -s -a $a -C 2 -V -q -- rping -c -a $a -C 2 -V -q
	served rping -s -a $a -C 2 -V -- rping -c -a $a -I $b -C 2 -V
	for program in ib_send_bw ib_send_lat ib_write_bw ib_write_lat ib_read_bw ib_read_lat "ib_send_lat --use-srq"; do
		# shellcheck disable=SC2086
		served $program -R -F -n 50 -s 3000 -d $da -x "$ga" -- $program -R -F -n 50 -s 3000 -d $db -x "$gb" $a
	done
	# The connection manager repeats its own datagrams after some seconds.
	silence=12
	datagrams ib_send_bw -R -c UD -s 256 -n 50 -F -d $da -x "$ga" -- ib_send_bw -R -c UD -s 256 -n 50 -F -d $db -x "$gb" $a
fi
[ -z "$manager" ] || end

served ucmatose -b $a -c 1 -C 10 -S 4096 -- ucmatose -s $a -c 1 -C 10 -S 4096
served ucmatose -b $a -c 16 -C 2 -- ucmatose -s $a -c 16 -C 2
served rdma_server -- rdma_client -s $a
served cmtime -b $a -c 10 -- cmtime -s $a -c 10
# Without sizes they take minutes. With -T a, the half that reads last gets POLLHUP when the other half has closed.
for mode in "-S 1000 -C 20" "-S 65536 -C 20 -T b" "-S 1000 -C 20 -T n"; do
	# shellcheck disable=SC2086
	served rstream -b $a $mode -- rstream -s $a $mode
done
served riostream -b $a -S 4096 -C 20 -- riostream -s $a -S 4096 -C 20
silence=12
datagrams udaddy -b $a -c 4 -C 10 -S 1000 -- udaddy -s $a -c 4 -C 10 -S 1000
silence=4
group_from=1 group_to=0
[ ! "$hosts" ] || group_from=0 group_to=1
datagrams stdbuf -oL mckey -m 239.9.8.7 -b $a -C 10 -- mckey -m 239.9.8.7 -b $b -s -C 10
group_from='' group_to=''
# udpong is omitted: librdmacm's datagram sockets create an address handle from a LID only, which RoCE does not have.

ignored=$(counted rx_seq_err) lost=$unreliable_lost
for program in ib_send_bw ib_send_lat ib_write_bw ib_write_lat; do
	datagrams $program -c UC -F -n 50 -s 9000 -d $da -x "$ga" -- $program -c UC -F -n 50 -s 9000 -d $db -x "$gb" $a
done
datagrams ibv_uc_pingpong -n 50 -s 20000 -e -d $da -g "$ga" -- ibv_uc_pingpong -n 50 -s 20000 -e -d $db -g "$gb" $a
# If a packet of a UC message is lost, the NIC drops and counts the rest of the message. After a lost last packet there is no
# rest.
[ $((unreliable_lost - lost)) -lt 5 ] || [ "$(counted rx_seq_err)" != "$ignored" ] || fail "no packet of UC was counted as out of sequence"
datagrams ibv_ud_pingpong -n 50 -s 1024 -d $da -g "$ga" -- ibv_ud_pingpong -n 50 -s 1024 -d $db -g "$gb" $a
for options in "ib_send_bw -c UD -s 1024 -q 4" "ib_send_lat -c UD -s 1024" "ib_send_bw -c UD -s 64 -b" \
	"ib_send_lat -c UD -s 64 -e"; do
	# shellcheck disable=SC2086
	datagrams $options -n 50 -F -d $da -x "$ga" -- $options -n 50 -F -d $db -x "$gb" $a
done
# Unreliable messages do not wait for a receive, so as many receives as messages are posted.
for options in "ib_send_bw -c UD -s 1024 -q 2 -r 512" "ib_send_bw -c UC -s 3000 -r 512"; do
	# shellcheck disable=SC2086
	datagrams $options --use-srq -n 50 -F -d $da -x "$ga" -- $options --use-srq -n 50 -F -d $db -x "$gb" $a
done
for options in "ib_send_bw -s 4000 -q 4" "ib_send_bw -s 1000 -b -q 2"; do
	# shellcheck disable=SC2086
	served $options --use-srq -n 50 -F -d $da -x "$ga" -- $options --use-srq -n 50 -F -d $db -x "$gb" $a
done
served ibv_srq_pingpong -m $mtu -n 200 -q 8 -s 6000 -d $da -g "$ga" -- \
	ibv_srq_pingpong -m $mtu -n 200 -q 8 -s 6000 -d $db -g "$gb" $a

# XRC: two clients of one server, whose messages go to one SRQ.
for options in "-n 100 -s 4096" "-n 50 -s 6000 -e"; do
	# shellcheck disable=SC2086
	served ibv_xsrq_pingpong -m $mtu -c 2 $options -d $da -g "$ga" -- bash -c 'for i in 1 2; do "$@" & done
		wait -n && wait -n' bash ibv_xsrq_pingpong -m $mtu $options -d $db -g "$gb" $a
done
served rdma_xserver -c r -- rdma_xclient -s $a -c r
served rdma_xserver -c x -- rdma_xclient -s $a -c x
for options in "ib_send_bw -s 2000 -q 4" "ib_send_bw -s 1000 -b" "ib_send_bw -s 64 -e -q 2" "ib_send_lat -s 64" "ib_send_lat -s 3000 -e" \
	"ib_write_bw -s 5000 -q 2" "ib_write_lat -s 64" "ib_read_bw -s 5000" "ib_read_bw -s 1000 -e" "ib_atomic_bw" "ib_atomic_lat -e"; do
	# shellcheck disable=SC2086
	served $options -c XRC -n 50 -F -d $da -x "$ga" -- $options -c XRC -n 50 -F -d $db -x "$gb" $a
done

# Programs that describe a device.
for d in $da $db; do
	ibstatus "$d" | grep -q 'state:.*ACTIVE' || fail "ibstatus: $(ibstatus "$d")"
	ibstat "$d" | grep -q 'CA type: urdma$' || fail "ibstat: $(ibstat "$d")"
	ibstat "$d" | grep -qE 'Hardware version: 0x[0-9a-f]+$' || fail "ibstat: $(ibstat "$d")"
	ibstat "$d" | grep -qE 'Firmware version: *[0-9]' || fail "ibstat: $(ibstat "$d")"
	ibv_devinfo -v -d "$d" | grep -qE 'board_id:[[:space:]]*[0-9a-f]+:[0-9a-f]+' || fail "ibv_devinfo: $(ibv_devinfo -d "$d")"
	ibv_devinfo -v -d "$d" | grep -qE 'hw_ver:[[:space:]]*0x[0-9a-f]+' || fail "ibv_devinfo: $(ibv_devinfo -d "$d")"
done
for object in dev link "resource show" "resource show qp" "resource show cq" "resource show mr" "resource show pd" \
	"resource show cm_id" "resource show ctx" "statistic show" "system show"; do
	# shellcheck disable=SC2086
	rdma $object >/tmp/rdma.log 2>&1 || fail "rdma $object: $(cat /tmp/rdma.log)"
done
[ -z "$lossy" ] || echo "UD and UC: $unreliable_lost packets were lost, $unreliable_stopped programs waited for them"
[ -z "$lossy" ] || [ $unreliable_lost -gt 0 ] || fail "the wire has lost nothing of UD and UC"
end
