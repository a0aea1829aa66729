#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# nvme.sh short|full: NVMe over RDMA between two guests. The target (nvmet-rdma) offers a RAM disk, the host (nvme-rdma)
# connects to it: requests of many sizes with compared data, a file system, connections one after another, a target that is
# removed under load and returns. The long form needs nvme-cli and fio (--packages): nvme-cli connects, and fio writes, reads
# and verifies.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh
# shellcheck source=tests/guest/consumer_lib.sh
. /opt/urdma/tests/consumer_lib.sh

case ${1-} in
short) mb=16 seconds=5 files=100 cycles=5 outages="device" ;;
full) mb=24 seconds=8 files=400 cycles=50 outages="port device link" ;;
*) fail "usage: nvme.sh short|full" ;;
esac
nqn=nqn.2026-01.urdma:disk
nvmet=/sys/kernel/config/nvmet
shared=(nqn nvmet)

# ---- the target -----------------------------------------------------------------------------------------------------------
target_up() {
	local s=$nvmet/subsystems/$nqn
	modprobe brd rd_nr=1 rd_size=131072 || fail "no RAM disk"
	modprobe nvmet-rdma || fail "no nvmet-rdma"
	mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config || fail "no configfs"
	mkdir $s $s/namespaces/1 $nvmet/ports/1 || fail "no subsystem"
	echo 1 >$s/attr_allow_any_host
	echo /dev/ram0 >$s/namespaces/1/device_path
	echo 1 >$s/namespaces/1/enable || fail "no namespace"
	echo rdma >$nvmet/ports/1/addr_trtype
	echo ipv4 >$nvmet/ports/1/addr_adrfam
	echo "$server" >$nvmet/ports/1/addr_traddr
	echo 4420 >$nvmet/ports/1/addr_trsvcid
	target_port
}
target_port() {
	ln -s $nvmet/subsystems/$nqn $nvmet/ports/1/subsystems/ || fail "the port does not come up"
}
target_no_port() {
	rm $nvmet/ports/1/subsystems/$nqn || fail "the port stays"
}
target_down() {
	local s=$nvmet/subsystems/$nqn
	target_no_port
	echo 0 >$s/namespaces/1/enable
	rmdir $s/namespaces/1 $s $nvmet/ports/1 || fail "the subsystem stays"
	umount /sys/kernel/config
}

# ---- the host -------------------------------------------------------------------------------------------------------------
# connect_to ADDRESS: as `nvme connect -t rdma`. Sets controller.
connect_to() {
	local answer
	exec 3<>/dev/nvme-fabrics || return 1
	if ! echo "nqn=$nqn,transport=rdma,traddr=$1,trsvcid=4420,reconnect_delay=1,ctrl_loss_tmo=600,keep_alive_tmo=30" >&3; then
		exec 3>&-
		return 1
	fi
	read -r answer <&3
	exec 3>&-
	answer=${answer#instance=}
	controller=nvme${answer%%,*}
}
connected() {
	connect_to "$server" || fail "cannot connect: $(dmesg | tail -n 5)"
	disk=/dev/${controller}n1
	waits "$disk comes" disk_opens "$disk"
	is_live || fail "$controller is $(cat "/sys/class/nvme/$controller/state")"
}
is_live() {
	[ "$(cat "/sys/class/nvme/$controller/state")" = live ]
}
# fio_run OPTION...: runs fio on the disk with verified data.
fio_run() {
	timeout "$limit" fio --name=urdma --filename="$disk" --direct=1 --ioengine=libaio --iodepth=16 --size=${mb}m \
		--verify=crc32c --verify_fatal=1 --verify_state_save=0 --output=/tmp/fio.log "$@"
}
# The stock programs do the same.
programs() {
	local was
	disconnected
	nvme connect -t rdma -a "$server" -s 4420 -n $nqn -c 1 -l 600 -k 30 || fail "nvme connect"
	controller=$(nvme list-subsys | sed -n 's/.* \(nvme[0-9]*\) rdma .*/\1/p')
	disk=/dev/${controller}n1
	waits "$disk comes" disk_opens "$disk"
	fio_run --rw=randrw --bsrange=4k-128k --rwmixread=30 --verify_backlog=64 || fail "fio: $(tail -n 20 /tmp/fio.log)"
	fio_run --rw=write --bs=64k || fail "fio: $(tail -n 20 /tmp/fio.log)"
	was=$(far one_byte 0) || fail "the disk of the target"
	[ "$was" != 0 ] || far one_byte 255 >/dev/null
	! fio_run --rw=read --bs=64k >/dev/null 2>&1 || fail "fio does not notice a changed byte"
	far one_byte "$was" >/dev/null
	fio_run --rw=read --bs=64k || fail "fio: $(tail -n 20 /tmp/fio.log)"
	nvme disconnect -n $nqn | grep -q 'disconnected 1 controller' || fail "nvme disconnect"
	waits "$disk goes" test ! -e "$disk"
	connected
}
disconnected() {
	echo 1 >"/sys/class/nvme/$controller/delete_controller"
	waits "$controller goes" test ! -e "/sys/class/nvme/$controller"
	waits "$disk goes" test ! -e "$disk"
}
# outage KIND: the target goes away and returns.
outage() {
	case $1 in
	port)
		far target_no_port || fail "the port stays"
		sleep 3
		far target_port || fail "the port does not come back"
		;;
	device)
		far device_goes || fail "the device of guest 1 stays"
		sleep 3
		far device_comes || fail "the device of guest 1 does not come back"
		# nvmet-rdma does not listen again by itself on a device that was removed.
		{ far target_no_port && far target_port; } || fail "the port does not come back"
		;;
	link)
		# The link returns when QPs have timed out twice. The CM gives a QP eight attempts, and they must not be
		# exhausted: if a READ of the target fails, the host waits for its own time-out, because the READ's first WR has
		# no wr_cqe, so its error is not seen, and nvmet ignores the flushed last WR.
		enough=$(($(counted tx_timeout) + 2))
		cosim link 0 down >/dev/null || fail "the link stays up"
		waits "time-outs" timed_out
		cosim link 0 up >/dev/null || fail "the link stays down"
		;;
	esac
}
timed_out() {
	[ "$(counted tx_timeout)" -ge "$enough" ]
}
reconnects() {
	dmesg | grep -c 'nvme.*Successfully reconnected'
}

beginning
modprobe nvme-core io_timeout=240 admin_timeout=240
modprobe nvme-rdma || fail "no nvme-rdma"
connect_to "$server" 2>/dev/null && fail "connected to a target that is not there"
far target_up || fail "no target"
connected
queues=$(rdma resource show qp | grep -c 'type RC state RTS')
[ "$queues" -ge 2 ] || fail "no queues: $(rdma resource show qp)"
phase "a target, and a host with $queues queues"

blockio run "$disk" /tmp/state $mb $seconds || fail "data or requests"
phase "requests of 4 to 256 KB, 16 at a time"
was=$(far one_byte 0) || fail "the disk of the target"
[ "$was" != 0 ] || far one_byte 255 >/dev/null
! blockio check "$disk" /tmp/state 2>/dev/null || fail "a changed byte was not noticed"
far one_byte "$was" >/dev/null
blockio check "$disk" /tmp/state || fail "data"
phase "a changed byte is noticed"

if [ "$form" = full ]; then
	programs
	phase "nvme-cli, and fio with verification"
fi

file_system "$disk" $files disconnected connected
phase "ext4: $files files"

for _ in $(seq $cycles); do
	disconnected
	connected
	dd if="$disk" of=/dev/null bs=64k count=2 iflag=direct 2>/dev/null || fail "no data after another connect"
done
phase "$cycles connects"

n=0
for kind in $outages; do
	before=$(reconnects)
	blockio run "$disk" /tmp/state $mb $((seconds + 10)) >/tmp/blockio.log 2>&1 &
	load=$!
	sleep 4
	outage "$kind"
	waits "$controller reconnects" is_live
	wait $load || fail "$kind: $(cat /tmp/blockio.log)"
	blockio check "$disk" /tmp/state || fail "$kind: data"
	[ "$kind" = link ] || [ "$(reconnects)" -gt "$before" ] || fail "$kind: nothing was interrupted"
	phase "target gone under load, $kind: $(cat /tmp/blockio.log), $(($(reconnects) - before)) reconnects"
	n=$((n + 1))
done

disconnected
far target_down || fail "the target stays"
ending "nvme-rdma" "nvmet-rdma brd"
echo "ok: NVMe over RDMA, $n outages"
