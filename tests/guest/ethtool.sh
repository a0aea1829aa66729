#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# ethtool requests to the net device, under traffic if they change something: self test, features, rings, channels,
# moderation, RSS, statistics, registers. A failure names the request that did not work.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh

devices_up 2 || fail "two active devices are expected"
namespaces
et() { in_a ethtool "$@"; }
# number PATTERN: the value in the first line of standard input that matches the pattern.
number() { grep -m 1 -E "$1" | sed 's/.*:[[:space:]]*//'; }
stat_of() { et -S "$na" | number "^ *$1:"; }

step() { echo "-- $* ($(cut -d' ' -f1 /proc/uptime))"; }

# queue_stats N: the kernel has the statistics of N queues in each direction. Together with those of unused channels, they
# add up to the device's when there is no traffic.
queue_stats() {
	local way device again
	for _ in $(seq 50); do
		device=$(in_a cat "/sys/class/net/$na/statistics/rx_packets" "/sys/class/net/$na/statistics/tx_packets")
		in_a qstats "$na" >/tmp/qstats || fail "no statistics of queues"
		again=$(in_a cat "/sys/class/net/$na/statistics/rx_packets" "/sys/class/net/$na/statistics/tx_packets")
		[ "$device" != "$again" ] || break
		sleep 0.2
	done
	[ "$(sed -n 's/^total [rt]x-packets //p' /tmp/qstats)" = "$device" ] ||
		fail "the device has counted $device packets: $(cat /tmp/qstats)"
	for way in rx tx; do
		[ "$(grep -c "^$way [0-9]* $way-packets " /tmp/qstats)" = "$1" ] || fail "not $1 queues: $(cat /tmp/qstats)"
	done
}

step "who it is"
et -i "$na" | grep -q '^driver: urdma' || fail "driver: $(et -i "$na")"
et "$na" | grep -q 'Link detected: yes' || fail "link: $(et "$na")"
et -T "$na" | grep -q software-transmit || fail "time stamps: $(et -T "$na")"
[ "$(et -d "$na" raw on | wc -c)" -ge 1024 ] || fail "registers: $(et -d "$na" raw on | wc -c) bytes"

step "self test"
for how in online offline offline; do
	et -t "$na" $how >/tmp/test.log 2>&1 || {
		cat /tmp/test.log
		dmesg | tail -n 5
		fail "self test, $how"
	}
	grep -q 'result is PASS' /tmp/test.log || fail "self test, $how: $(cat /tmp/test.log)"
	ping_ab -c 2 -A -w 120 10.1.0.2
done
# Also with the device down.
ip -n a link set "$na" down
et -t "$na" offline >/tmp/test.log 2>&1 || fail "self test of a device that is down: $(cat /tmp/test.log)"
ip -n a link set "$na" up
addresses_ab
ping_ab -c 2 -A -w 120 10.1.0.2

step "statistics"
before=$(stat_of nic_eth_tx_frames)
ping_ab -c 20 -A -w 120 10.1.0.2
after=$(stat_of nic_eth_tx_frames)
[ $((after - before)) -ge 20 ] || fail "20 pings, and nic_eth_tx_frames went from $before to $after"

step "features"
for feature in "rx off" "tx off" "sg off" "rxhash off" "gro off" "gso off"; do
	# shellcheck disable=SC2086  # two words
	et -K "$na" $feature || fail "-K $feature"
	ping_ab -c 2 -A -w 120 -s 8000 10.1.0.2
	# shellcheck disable=SC2086
	et -K "$na" ${feature% off} on || fail "-K ${feature% off} on"
done
ping_ab -c 2 -A -w 120 -s 8000 10.1.0.2
# With loopback no frame reaches the other side; without it frames do.
et -K "$na" loopback on || fail "-K loopback on"
in_a ping -q -c 2 -i 0.1 -w 2 10.1.0.2 >/dev/null 2>&1 && fail "answers through a loopback"
et -K "$na" loopback off
in_a ip neighbour flush dev "$na"
ping_ab -c 2 -A -w 120 10.1.0.2

# under_flood COMMAND...: runs it under traffic; a few frames may be lost when channels are recreated.
under_flood() {
	in_a ping -q -f -c 100000 -w 2 -s 1000 10.1.0.2 >/tmp/flood.log 2>&1 &
	local pinger=$!
	sleep 0.5
	"$@" || {
		wait $pinger
		fail "$*"
	}
	wait $pinger
	ping_ab -f -c 100 -w 120 10.1.0.2
}

step "rings"
max=$(et -g "$na" | number '^TX:')
for n in 64 100 4096 "$max" 1024; do
	under_flood et -G "$na" rx "$n" tx "$n"
	want=64
	while [ $want -lt "$n" ]; do want=$((2 * want)); done
	[ "$(et -g "$na" | grep '^RX:' | tail -n 1 | sed 's/.*:[[:space:]]*//')" = $want ] || fail "-G $n: $(et -g "$na")"
done
et -G "$na" rx $((2 * max)) 2>/dev/null && fail "rings of twice the maximum were taken"

step "channels"
max=$(et -l "$na" | number '^Combined:')
for n in 1 "$max"; do
	[ "$(et -l "$na" | grep '^Combined:' | tail -n 1 | sed 's/.*:[[:space:]]*//')" = "$n" ] || under_flood et -L "$na" combined "$n"
	[ "$(et -l "$na" | grep '^Combined:' | tail -n 1 | sed 's/.*:[[:space:]]*//')" = "$n" ] || fail "-L $n: $(et -l "$na")"
done
et -L "$na" combined $((max + 1)) 2>/dev/null && fail "more channels than there are were taken"
queue_stats "$max"
et -L "$na" combined 1
ping_ab -f -c 100 -w 120 10.1.0.2
queue_stats 1
et -L "$na" combined "$max"

step "moderation"
for c in "rx-usecs 0 rx-frames 0 tx-usecs 0 tx-frames 0" "rx-usecs 0 rx-frames 1" "rx-usecs 50 rx-frames 32 tx-usecs 100 tx-frames 64" \
	"rx-usecs 4 rx-frames 16 tx-usecs 16 tx-frames 32"; do
	# shellcheck disable=SC2086
	et -C "$na" $c || fail "-C $c"
	ping_ab -f -c 200 -w 120 10.1.0.2
done
et -C "$na" rx-usecs 0 rx-frames 8 2>/dev/null && fail "moderation without a time was taken"
[ "$(et -c "$na" | number '^rx-usecs:')" = 4 ] || fail "-c: $(et -c "$na")"

step "RSS"
key=6d:5a:56:da:25:5b:0e:c2:41:67:25:3d:43:a3:8f:b0:d0:ca:2b:cb:ae:7b:30:b4:77:cb:2d:a3:80:30:f2:0c:6a:42:b7:3b:be:ac:01:fa
et -X "$na" hkey $key || fail "-X hkey"
et -x "$na" | grep -q "$key" || fail "the key is not what was set: $(et -x "$na")"
et -N "$na" rx-flow-hash udp4 sd || fail "-N udp4 sd"
et -n "$na" rx-flow-hash udp4 | grep -q 'L4 bytes' && fail "ports of UDP are still hashed"
et -N "$na" rx-flow-hash udp4 sdfn || fail "-N udp4 sdfn"
et -n "$na" rx-flow-hash udp6 | grep -q 'L4 bytes' || fail "ports of UDP are not hashed"
if [ "$max" -gt 1 ]; then
	# All frames to the last queue, then to all queues.
	last=$((max - 1))
	weights=$(for _ in $(seq $last); do printf '0 '; done)1
	# shellcheck disable=SC2086
	et -X "$na" weight $weights || fail "-X weight $weights"
	before=$(stat_of "rx${last}_packets") other=$(stat_of rx0_packets)
	ping_ab -f -c 200 -w 120 10.1.0.2
	[ $(($(stat_of "rx${last}_packets") - before)) -ge 200 ] || fail "200 answers did not come to queue $last"
	[ $(($(stat_of rx0_packets) - other)) -le 10 ] || fail "answers came to queue 0"
	et -L "$na" combined 1 2>/dev/null && fail "a channel that the table names was taken away"
	et -X "$na" default || fail "-X default"
	# Flows with different ports use different queues.
	other=$(stat_of rx0_packets) before=$(stat_of "rx${last}_packets")
	for p in $(seq 40); do
		in_b bash -c "echo x >/dev/udp/10.1.0.1/$((20000 + p))" 2>/dev/null
	done
	spread=
	for _ in $(seq "$patience"); do
		if [ "$(stat_of rx0_packets)" != "$other" ] && [ "$(stat_of "rx${last}_packets")" != "$before" ]; then
			spread=1
			break
		fi
		sleep 0.1
	done
	[ -n "$spread" ] || fail "40 flows came to one queue"
fi
echo "ok: ethtool"
