#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# scsi.sh iser|srp short|full: SCSI over RDMA between two guests. The target is the kernel's LIO with a RAM disk; the
# initiator is ib_iser with open-iscsi's programs, or ib_srp, which gets the target's address.
set -u
# shellcheck source=tests/guest/common.sh
. /opt/urdma/tests/common.sh
# shellcheck source=tests/guest/consumer_lib.sh
. /opt/urdma/tests/consumer_lib.sh

kind=${1-}
case $kind-${2-} in
iser-short | srp-short) mb=16 seconds=3 files=50 cycles=3 ;;
iser-full | srp-full) mb=32 seconds=10 files=500 cycles=20 ;;
*) fail "usage: scsi.sh iser|srp short|full" ;;
esac
iqn=iqn.2026-01.org.urdma:disk
lio=/sys/kernel/config/target
# The number that identifies a target in SRP.
guid=0x0200000000000001
shared=(kind iqn lio guid)

# ---- the target -----------------------------------------------------------------------------------------------------------
# tpg: the directory of the target's portal group.
tpg() {
	if [ "$kind" = iser ]; then
		echo $lio/iscsi/$iqn/tpgt_1
	else
		# ib_srpt names a port by the second half of its first GID.
		local gid
		read -r gid <"/sys/class/infiniband/$(device)/ports/1/gids/0"
		echo "$lio/srpt/${gid#*:*:*:*:}/${gid#*:*:*:*:}"
	fi
}
target_up() {
	local t
	modprobe brd rd_nr=1 rd_size=131072 || fail "no RAM disk"
	modprobe -a target_core_mod target_core_iblock || fail "no LIO"
	mountpoint -q /sys/kernel/config || mount -t configfs configfs /sys/kernel/config || fail "no configfs"
	mkdir -p $lio/core/iblock_0/disk
	echo udev_path=/dev/ram0 >$lio/core/iblock_0/disk/control
	echo 1 >$lio/core/iblock_0/disk/enable || fail "no disk"
	if [ "$kind" = iser ]; then
		modprobe -a iscsi_target_mod ib_isert || fail "no ib_isert"
		mkdir -p $lio/iscsi
	else
		modprobe ib_srpt srpt_service_guid=$guid || fail "no ib_srpt"
		mkdir -p $lio/srpt
		echo 5555 >$lio/srpt/discovery_auth/rdma_cm_port || fail "no port of the connection manager"
	fi
	t=$(tpg)
	mkdir -p "$t" || fail "no target $t"
	mkdir "$t/lun/lun_0" || fail "no LUN"
	ln -s $lio/core/iblock_0/disk "$t/lun/lun_0/disk" || fail "no disk at the LUN"
	if [ "$kind" = iser ]; then
		mkdir "$t/np/$server:3260" || fail "no portal"
		echo 1 >"$t/np/$server:3260/iser" || fail "no portal of iSER"
		echo 0 >"$t/attrib/authentication"
		echo 1 >"$t/attrib/generate_node_acls"
		echo 0 >"$t/attrib/demo_mode_write_protect"
	fi
	if [ "$kind" = srp ]; then
		# ib_srpt accepts only known initiators, and names one that connects by the connection manager after the
		# server's address.
		mkdir -p "$t/acls/$server" || fail "no initiator"
		[ -e "$t/acls/$server/lun_0" ] || mkdir "$t/acls/$server/lun_0" || fail "no LUN for the initiator"
		ln -s "$t/lun/lun_0" "$t/acls/$server/lun_0/disk" || fail "no disk for the initiator"
	fi
	echo 1 >"$t/enable" || fail "the target is not enabled"
}
target_down() {
	local t
	t=$(tpg)
	echo 0 >"$t/enable"
	[ "$kind" = srp ] || rmdir "$t/np/$server:3260" || fail "the portal stays"
	[ "$kind" = iser ] || { rm "$t/acls/$server/lun_0/disk" && rmdir "$t/acls/$server/lun_0" "$t/acls/$server"; } ||
		fail "the initiator stays"
	rm "$t/lun/lun_0/disk" || fail "the disk stays at the LUN"
	rmdir "$t/lun/lun_0" "$t" "$(dirname "$t")" || fail "the target stays"
	if [ "$kind" = iser ]; then rmdir $lio/iscsi; else rmdir $lio/srpt; fi
	rmdir $lio/core/iblock_0/disk $lio/core/iblock_0 || fail "the disk stays"
}

# ---- the initiator --------------------------------------------------------------------------------------------------------
iscsi() {
	iscsiadm -m node -T $iqn -p $server:3260 "$@" >/tmp/iscsi.log 2>&1
}
login() {
	if [ "$kind" = iser ]; then
		iscsi --login
	else
		echo "id_ext=${guid#0x},ioc_guid=${guid#0x},dest=$server:5555" >"/sys/class/infiniband_srp/srp-$(device)-1/add_target"
	fi
}
logged_in() {
	# ib_srp refuses a second login while it still removes the first one.
	waits "login: $(cat /tmp/iscsi.log)" login
	waits "a disk comes" disk_opens /dev/sda
}
logout() {
	if [ "$kind" = iser ]; then
		iscsi --logout || fail "no logout: $(cat /tmp/iscsi.log)"
	else
		echo 1 >"$(echo /sys/class/srp_remote_ports/port-*/delete)"
	fi
	waits "the disk goes" test ! -b /dev/sda
}

beginning
modprobe sd_mod
: >/tmp/iscsi.log
if [ "$kind" = iser ]; then
	modprobe ib_iser || fail "no ib_iser"
	mkdir -p /run/lock/iscsi
	echo "InitiatorName=iqn.2026-01.org.urdma:host0" >/etc/iscsi/initiatorname.iscsi
	# In its own session: when it ends, it ends its process group.
	setsid iscsid -f >/tmp/iscsid.log 2>&1 &
	daemon=$!
	waits "iscsid answers" iscsiadm -m iface
	iscsiadm -m node -o new -T $iqn -p $server:3260 -I iser >/tmp/iscsi.log 2>&1 || fail "no node: $(cat /tmp/iscsi.log)"
	iscsi -o update -n "node.session.initial_login_retry_max" -v 1
else
	modprobe ib_srp || fail "no ib_srp"
fi
! login 2>/dev/null || fail "logged in to a target that is not there"
phase "no target, no login"
far target_up || fail "no target"
logged_in
phase "login"

blockio run /dev/sda /tmp/state $mb $seconds || fail "data or requests"
phase "requests of 4 to 256 KB, 16 at a time"
was=$(far one_byte 0) || fail "the disk of the target"
[ "$was" != 0 ] || far one_byte 255 >/dev/null
! blockio check /dev/sda /tmp/state 2>/dev/null || fail "a changed byte was not noticed"
far one_byte "$was" >/dev/null
blockio check /dev/sda /tmp/state || fail "data"
phase "a changed byte is noticed"

file_system /dev/sda $files logout logged_in
phase "ext4: $files files"
for _ in $(seq $cycles); do
	logout
	logged_in
	dd if=/dev/sda of=/dev/null bs=64k count=2 iflag=direct 2>/tmp/dd.log || fail "no data after another login: $(cat /tmp/dd.log)"
done
phase "$cycles logins"
logout
if [ "$kind" = iser ]; then
	kill "$daemon"
	wait "$daemon"
fi
far target_down || fail "the target stays"
# The target's core loads all kinds of disks.
core="target_core_iblock target_core_file target_core_pscsi target_core_user target_core_mod brd"
if [ "$kind" = iser ]; then
	ending ib_iser "ib_isert iscsi_target_mod $core"
else
	ending ib_srp "ib_srpt $core"
fi
echo "ok: $kind"
