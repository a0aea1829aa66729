/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * urdma hardware contract: registers, doorbells, commands, WQEs, CQEs, EQEs.
 *
 * Layouts are defined only here. Driver, provider and tests include this file; tools/gen-hw-pkg.sh
 * generates rtl's urdma_hw_pkg from it. docs/hardware-interface.md explains the layouts with the
 * same names, words and bits; tools/check-hw-doc.sh (make lint) compares the two.
 *
 * Every structure is an array of little-endian 64-bit words. A field's name has the number of its
 * word: URDMA_CQE1_QPN is in word 1 of a CQE. The generator needs each #define alone on its line,
 * with a number, BIT_ULL(n) or GENMASK_ULL(h, l) as its value.
 */
#ifndef URDMA_HW_H
#define URDMA_HW_H

#ifdef __KERNEL__
#include <linux/bits.h>
#include <linux/bitfield.h>
#else
#ifndef BIT_ULL
#define BIT_ULL(n) (1ULL << (n))
#endif
#ifndef GENMASK_ULL
#define GENMASK_ULL(h, l) ((~0ULL << (l)) & (~0ULL >> (63 - (h))))
#endif
#endif

#define URDMA_PCI_VENDOR_ID 0x1234
#define URDMA_PCI_DEVICE_ID 0x5244

/* Contract version: software refuses an unknown major; a new minor only adds features. */
#define URDMA_VERSION_MAJOR 1
#define URDMA_VERSION_MINOR 13
/* "URDM" */
#define URDMA_MAGIC 0x5552444d

/* BARs */
#define URDMA_BAR_REGS 0
#define URDMA_BAR_DB 2
#define URDMA_BAR_MSIX 4

/* ---- BAR0: 64-bit registers, byte offsets --------------------------------------------------- */
/* RO: magic, major, minor */
#define URDMA_REG_VERSION 0x0000
#define URDMA_RF_VERSION_MINOR GENMASK_ULL(15, 0)
#define URDMA_RF_VERSION_MAJOR GENMASK_ULL(31, 16)
#define URDMA_RF_VERSION_MAGIC GENMASK_ULL(63, 32)
/* RO: log2 of the numbers of objects */
#define URDMA_REG_CAP_OBJ 0x0008
#define URDMA_RF_CAP_LOG_QP GENMASK_ULL(7, 0)
#define URDMA_RF_CAP_LOG_CQ GENMASK_ULL(15, 8)
#define URDMA_RF_CAP_LOG_MR GENMASK_ULL(23, 16)
#define URDMA_RF_CAP_LOG_SRQ GENMASK_ULL(31, 24)
#define URDMA_RF_CAP_LOG_EQ GENMASK_ULL(39, 32)
#define URDMA_RF_CAP_LOG_PD GENMASK_ULL(47, 40)
#define URDMA_RF_CAP_LOG_DB_PAGES GENMASK_ULL(55, 48)
#define URDMA_RF_CAP_LOG_VECTORS GENMASK_ULL(63, 56)
/* RO: queue limits; CAP_LOG_SRQ 0 in CAP_OBJ means no SRQs */
#define URDMA_REG_CAP_QUEUE 0x0010
#define URDMA_RF_CAP_MAX_SQ_SGE GENMASK_ULL(7, 0)
#define URDMA_RF_CAP_MAX_RQ_SGE GENMASK_ULL(15, 8)
#define URDMA_RF_CAP_MAX_INLINE GENMASK_ULL(31, 16)
#define URDMA_RF_CAP_LOG_SQ GENMASK_ULL(39, 32)
#define URDMA_RF_CAP_LOG_RQ GENMASK_ULL(47, 40)
#define URDMA_RF_CAP_LOG_CQE GENMASK_ULL(55, 48)
#define URDMA_RF_CAP_LOG_EQE GENMASK_ULL(63, 56)
/* RO: transport and memory limits; page shifts as a bit mask (bit n: pages of 2^n bytes) */
#define URDMA_REG_CAP_XPORT 0x0018
#define URDMA_RF_CAP_LOG_MAX_MSG GENMASK_ULL(7, 0)
#define URDMA_RF_CAP_LOG_MAX_MTU GENMASK_ULL(15, 8)
#define URDMA_RF_CAP_GIDS GENMASK_ULL(23, 16)
#define URDMA_RF_CAP_MAX_RD_ATOMIC GENMASK_ULL(31, 24)
#define URDMA_RF_CAP_LOG_CMDQ GENMASK_ULL(39, 32)
#define URDMA_RF_CAP_LOG_DB_PAGE_SIZE GENMASK_ULL(47, 40)
#define URDMA_REG_CAP_PAGES 0x0020
/* RO: feature bits; minor 0 had SEND only */
#define URDMA_REG_CAP_FEATURES 0x0028
#define URDMA_RF_FEAT_RC_SEND BIT_ULL(0)
#define URDMA_RF_FEAT_RC_WRITE BIT_ULL(1)
#define URDMA_RF_FEAT_RC_READ BIT_ULL(2)
#define URDMA_RF_FEAT_RC_ATOMIC BIT_ULL(3)
/* retransmission: NAK, time-out, RNR */
#define URDMA_RF_FEAT_RC_RETRY BIT_ULL(4)
/* fast registration, local and remote invalidation */
#define URDMA_RF_FEAT_MEM_MGT BIT_ULL(5)
/* memory windows of type 2B */
#define URDMA_RF_FEAT_MW_2B BIT_ULL(6)
/* Ethernet function: registers from REG_ETH_CTRL on */
#define URDMA_RF_FEAT_ETH BIT_ULL(7)
/* QPs of type UC: SEND and WRITE */
#define URDMA_RF_FEAT_UC BIT_ULL(8)
/* QPs of type UD; a send WQE then has URDMA_SQE_UD_DATA_OFFSET */
#define URDMA_RF_FEAT_UD BIT_ULL(9)
/* shared receive queues */
#define URDMA_RF_FEAT_SRQ BIT_ULL(10)
/* multicast groups of UD */
#define URDMA_RF_FEAT_MCAST BIT_ULL(11)
/* QPs of type XRC_INI and XRC_TGT, XRC SRQs */
#define URDMA_RF_FEAT_XRC BIT_ULL(12)
/* memory windows of type 1 */
#define URDMA_RF_FEAT_MW_1 BIT_ULL(13)
/* device memory */
#define URDMA_RF_FEAT_DM BIT_ULL(14)
/* FLUSH to global visibility, and ATOMIC WRITE, of RC and XRC */
#define URDMA_RF_FEAT_FLUSH BIT_ULL(15)
#define URDMA_RF_FEAT_ATOMIC_WRITE BIT_ULL(16)
/* MODIFY_CQ, RESIZE_CQ, CQ1_OVERRUN */
#define URDMA_RF_FEAT_CQ_MODIFY BIT_ULL(17)
/* counter sets of QPs: SET_QP_CNT, QUERY_CNT, CLEAR_CNT */
#define URDMA_RF_FEAT_QP_CNT BIT_ULL(18)
/* regions and windows whose addresses start at 0 */
#define URDMA_RF_FEAT_ZERO_BASED BIT_ULL(19)
/* RO: Ethernet function: queue pairs, log2 of the largest rings, longest frame (no FCS, no tag) */
#define URDMA_REG_CAP_ETH 0x0030
#define URDMA_RF_CAP_ETH_QUEUES GENMASK_ULL(7, 0)
#define URDMA_RF_CAP_LOG_ETH_RING GENMASK_ULL(15, 8)
#define URDMA_RF_CAP_ETH_MAX_FRAME GENMASK_ULL(31, 16)
/* maximum descriptors of a frame */
#define URDMA_RF_CAP_ETH_TX_DESCS GENMASK_ULL(39, 32)
/* entries of ETH_UC */
#define URDMA_RF_CAP_ETH_UC GENMASK_ULL(47, 40)
#define URDMA_RF_CAP_LOG_ETH_CQ GENMASK_ULL(55, 48)
/* RO: device memory: log2 of its size in bytes and of its offset in BAR_DB */
#define URDMA_REG_CAP_DM 0x0038
#define URDMA_RF_CAP_LOG_DM GENMASK_ULL(7, 0)
#define URDMA_RF_CAP_LOG_DM_OFFSET GENMASK_ULL(15, 8)
/* in a bus address that software gives the NIC: the rest is an offset in device memory */
#define URDMA_ADDR_DM BIT_ULL(63)
/* RW: RESET clears every object and queue and waits for DMA to end (STATUS.READY) */
#define URDMA_REG_CTRL 0x0040
#define URDMA_RF_CTRL_ENABLE BIT_ULL(0)
#define URDMA_RF_CTRL_RESET BIT_ULL(1)
#define URDMA_REG_STATUS 0x0048
#define URDMA_RF_STATUS_READY BIT_ULL(0)
#define URDMA_RF_STATUS_LINK BIT_ULL(1)
#define URDMA_RF_STATUS_CMDQ_ERR BIT_ULL(2)
#define URDMA_RF_STATUS_EQ0_LOST BIT_ULL(3)
/* RO: cycles since reset, and the clock in Hz */
#define URDMA_REG_CYCLES 0x0050
#define URDMA_REG_CLOCK_HZ 0x0058
/* RW: the port's MAC address, byte 0 of the address in bits 7:0 */
#define URDMA_REG_MAC 0x0060
/* RO: line rate in Mb/s */
#define URDMA_REG_PORT_SPEED 0x0068
/* RO: log2 of the number of counter sets, with set 0, which QPs use by default */
#define URDMA_REG_CAP_CNT 0x0070
#define URDMA_RF_CAP_LOG_CNT_SETS GENMASK_ULL(7, 0)
/* Command queue: bases 4 KB aligned; set while PI is 0 and ENABLE is 0 */
#define URDMA_REG_CMDQ_BASE 0x0100
#define URDMA_REG_CMDQ_CPL_BASE 0x0108
#define URDMA_REG_CMDQ_LOG_SIZE 0x0110
/* WO: producer index (free running, 16 bits) */
#define URDMA_REG_CMDQ_PI 0x0118
/* RO: commands fetched */
#define URDMA_REG_CMDQ_CI 0x0120

/* ---- BAR0: the Ethernet function ------------------------------------------------------------ */
/* RW */
#define URDMA_REG_ETH_CTRL 0x2000
/* frames are received */
#define URDMA_RF_ETH_RX_ENABLE BIT_ULL(0)
#define URDMA_RF_ETH_PROMISC BIT_ULL(1)
#define URDMA_RF_ETH_ALLMULTI BIT_ULL(2)
/* the tag goes into the completion */
#define URDMA_RF_ETH_VLAN_STRIP BIT_ULL(3)
/* accept tagged frames only of the VLANs in ETH_VLAN and of VLAN 0 */
#define URDMA_RF_ETH_VLAN_FILTER BIT_ULL(4)
/* frames of the transmit queues are looped back to the receive queues */
#define URDMA_RF_ETH_LOOPBACK BIT_ULL(5)
/* RW: what RSS hashes, see docs/hardware-interface.md */
#define URDMA_REG_ETH_RSS 0x2008
#define URDMA_RF_ETH_RSS_IPV4 BIT_ULL(0)
#define URDMA_RF_ETH_RSS_IPV6 BIT_ULL(1)
#define URDMA_RF_ETH_RSS_TCP BIT_ULL(2)
#define URDMA_RF_ETH_RSS_UDP BIT_ULL(3)
/* RW, 5 words: Toeplitz key, byte 0 in bits 7:0 of word 0 */
#define URDMA_REG_ETH_RSS_KEY 0x2040
#define URDMA_ETH_RSS_KEY_WORDS 5
/* RW: unicast addresses besides the port's, byte 0 in bits 7:0 */
#define URDMA_REG_ETH_UC 0x2080
#define URDMA_RF_ETH_UC_ADDR GENMASK_ULL(47, 0)
#define URDMA_RF_ETH_UC_VALID BIT_ULL(48)
/* RW, 4 words: multicast filter, a bit for each value of the hash */
#define URDMA_REG_ETH_MC_HASH 0x2100
#define URDMA_ETH_MC_HASH_WORDS 4
/* RW, 16 words: RSS indirection, 128 queue numbers of a byte each */
#define URDMA_REG_ETH_RSS_TABLE 0x2180
#define URDMA_ETH_RSS_TABLE_WORDS 16
/* RW, 64 words: a bit for each VLAN */
#define URDMA_REG_ETH_VLAN 0x2200
#define URDMA_ETH_VLAN_WORDS 64

/* Queue pair n: REG_ETHQ + n * ETHQ_STRIDE + register */
#define URDMA_REG_ETHQ 0x3000
#define URDMA_ETHQ_STRIDE 0x80
/* RW; change a side's registers only while its ENABLE and ACTIVE are 0 */
#define URDMA_ETHQ_CTRL 0x00
#define URDMA_RF_ETHQ_TX_ENABLE BIT_ULL(0)
#define URDMA_RF_ETHQ_RX_ENABLE BIT_ULL(1)
#define URDMA_RF_ETHQ_CQ_ENABLE BIT_ULL(2)
/* RO: the NIC may still issue DMA */
#define URDMA_RF_ETHQ_TX_ACTIVE BIT_ULL(8)
#define URDMA_RF_ETHQ_RX_ACTIVE BIT_ULL(9)
#define URDMA_RF_ETHQ_CQ_ACTIVE BIT_ULL(10)
/* RO: stopped by an error until disabled */
#define URDMA_RF_ETHQ_TX_ERR BIT_ULL(16)
#define URDMA_RF_ETHQ_RX_ERR BIT_ULL(17)
/* RW: rings, contiguous, 4 KB aligned */
#define URDMA_ETHQ_TX_BASE 0x08
#define URDMA_ETHQ_RX_BASE 0x10
#define URDMA_ETHQ_CQ_BASE 0x18
/* RW: log2 of the entries of each; bytes of a receive buffer in units of 64 (1 to 64) */
#define URDMA_ETHQ_SIZE 0x20
#define URDMA_RF_ETHQ_LOG_TX GENMASK_ULL(4, 0)
#define URDMA_RF_ETHQ_LOG_RX GENMASK_ULL(12, 8)
#define URDMA_RF_ETHQ_LOG_CQ GENMASK_ULL(20, 16)
#define URDMA_RF_ETHQ_RX_BUF GENMASK_ULL(38, 32)
/* RW: vector, and the moderation of an armed queue pair's interrupt; may be changed at any time */
#define URDMA_ETHQ_INT 0x28
#define URDMA_RF_ETHQ_VECTOR GENMASK_ULL(5, 0)
#define URDMA_RF_ETHQ_RX_FRAMES GENMASK_ULL(15, 8)
#define URDMA_RF_ETHQ_TX_FRAMES GENMASK_ULL(23, 16)
#define URDMA_RF_ETHQ_RX_USECS GENMASK_ULL(47, 32)
#define URDMA_RF_ETHQ_TX_USECS GENMASK_ULL(63, 48)
/* RO: free-running counts of descriptors done, buffers used, completions written */
#define URDMA_ETHQ_STATE 0x30
#define URDMA_RF_ETHQ_TX_CI GENMASK_ULL(15, 0)
#define URDMA_RF_ETHQ_RX_CI GENMASK_ULL(31, 16)
#define URDMA_RF_ETHQ_CQ_PI GENMASK_ULL(63, 32)

/* ---- BAR0: counters -------------------------------------------------------------------------- */
/* RO counters, one word each */
#define URDMA_REG_COUNTERS 0x1000

#define URDMA_CNT_TX_FRAMES 0
#define URDMA_CNT_TX_BYTES 1
#define URDMA_CNT_RX_FRAMES 2
#define URDMA_CNT_RX_BYTES 3
#define URDMA_CNT_TX_RDMA_PKTS 4
#define URDMA_CNT_RX_RDMA_PKTS 5
#define URDMA_CNT_RX_MAC_ERR 6
#define URDMA_CNT_RX_ICRC_ERR 7
#define URDMA_CNT_RX_MALFORMED 8
#define URDMA_CNT_RX_DROP_FULL 9
#define URDMA_CNT_RX_NO_QP 10
#define URDMA_CNT_RX_NOT_RDMA 11
#define URDMA_CNT_RX_SEQ_ERR 12
#define URDMA_CNT_RX_DUP 13
#define URDMA_CNT_TX_ACK 14
#define URDMA_CNT_TX_NAK_SEQ 15
#define URDMA_CNT_TX_NAK_RNR 16
#define URDMA_CNT_TX_NAK_OTHER 17
#define URDMA_CNT_RX_ACK 18
#define URDMA_CNT_RX_NAK 19
#define URDMA_CNT_RX_NAK_RNR 20
#define URDMA_CNT_DB_OK 21
#define URDMA_CNT_DB_OWNER 22
#define URDMA_CNT_DB_BAD 23
#define URDMA_CNT_RD_TLP 24
#define URDMA_CNT_WR_TLP 25
#define URDMA_CNT_CPL_ERR 26
#define URDMA_CNT_CPL_TIMEOUT 27
#define URDMA_CNT_CPL_UNEXPECTED 28
#define URDMA_CNT_MMIO_BAD 29
#define URDMA_CNT_CMD_OK 30
#define URDMA_CNT_CMD_ERR 31
#define URDMA_CNT_CQE 32
#define URDMA_CNT_CQ_OVERFLOW 33
#define URDMA_CNT_EQE 34
#define URDMA_CNT_EQ_LOST 35
#define URDMA_CNT_IRQ 36
#define URDMA_CNT_PTE_HIT 37
#define URDMA_CNT_PTE_MISS 38
#define URDMA_CNT_MR_ERR 39
#define URDMA_CNT_TX_RETRANS 40
#define URDMA_CNT_TX_TIMEOUT 41
#define URDMA_CNT_DMA_DROP 42
/* READ responses or ACKs that revealed a lost READ response */
#define URDMA_CNT_RX_READ_GAP 43
/* QPs in error: retries exhausted, RNR retries exhausted */
#define URDMA_CNT_RETRY_EXC 44
#define URDMA_CNT_RNR_EXC 45
/* READ response and ATOMIC acknowledge packets: sent; accepted */
#define URDMA_CNT_TX_READ_RSP 46
#define URDMA_CNT_RX_READ_RSP 47
/* READ and ATOMIC requests dropped because too many were waiting */
#define URDMA_CNT_RX_READ_DROP 48
/* Ethernet function: sent; not sent because a descriptor or its read was bad */
#define URDMA_CNT_ETH_TX_FRAMES 49
#define URDMA_CNT_ETH_TX_BAD 50
/* put into receive buffers; of these, multicast */
#define URDMA_CNT_ETH_RX_FRAMES 51
#define URDMA_CNT_ETH_RX_MCAST 52
/* dropped: not for us; no buffer; no room on the NIC; shorter than 60 bytes or too long */
#define URDMA_CNT_ETH_RX_FILTERED 53
#define URDMA_CNT_ETH_RX_NO_BUF 54
#define URDMA_CNT_ETH_RX_DROP_FULL 55
#define URDMA_CNT_ETH_RX_LENGTH 56
/* ACKs, NAKs and READ responses for a PSN that is already acknowledged or was never sent */
#define URDMA_CNT_RX_ACK_GHOST 57
/* UC, UD: packets dropped for a wrong opcode, length, access right or key */
#define URDMA_CNT_RX_DROP_UNREL 58
/* UC, UD: packets dropped because no receive WQE was posted */
#define URDMA_CNT_RX_DROP_NO_WQE 59
/* UD: packets dropped for a Q_Key that differs from the QP's */
#define URDMA_CNT_RX_BAD_QKEY 60
/* page table directory look-ups: hits on chip, misses that read host memory */
#define URDMA_CNT_DIR_HIT 61
#define URDMA_CNT_DIR_MISS 62
#define URDMA_CNT_N 63

/* ---- BAR2: doorbell pages of 4 KB, byte offsets in a page ----------------------------------- */
#define URDMA_DB_PAGE_SIZE 4096
#define URDMA_DB_SQ 0x000
#define URDMA_DB_RQ 0x008
#define URDMA_DB_SRQ 0x010
#define URDMA_DB_CQ 0x018
/* page 0 only */
#define URDMA_DB_EQ 0x020
/* page 0 only; object: Ethernet queue pair. Transmit, receive: producer; completions: consumer */
#define URDMA_DB_ETH_TX 0x028
#define URDMA_DB_ETH_RX 0x030
#define URDMA_DB_ETH_CQ 0x038
/* reserved: a WQE pushed with its doorbell */
#define URDMA_DB_PUSH 0x800
/* The 8-byte word of a doorbell. INDEX: SQ, RQ: producer; CQ, EQ: consumer. Free running. */
#define URDMA_DBW_OBJ GENMASK_ULL(23, 0)
/* CQ, EQ only */
#define URDMA_DBW_ARM GENMASK_ULL(25, 24)
#define URDMA_DBW_INDEX GENMASK_ULL(63, 32)
#define URDMA_DB_ARM_NONE 0
/* CQ: event at the next CQE (at once if there are any at or after INDEX); EQ: interrupt likewise */
#define URDMA_DB_ARM_ANY 1
/* CQ: event at the next solicited or failed CQE */
#define URDMA_DB_ARM_SOLICITED 2

/* ---- rings ---------------------------------------------------------------------------------- */
/*
 * Location of a ring. LEVELS 0: ADDR is the base of contiguous memory. 1: ADDR is a contiguous
 * table of 64-bit page addresses. 2: ADDR is a contiguous table of addresses of 4 KB tables of 512
 * page addresses. Pages are 2^PAGE_SHIFT bytes, at least 4 KB; ADDR is 64-byte aligned with LEVELS
 * 1 or 2, and 4 KB aligned with 0. SQ, RQ and CQ use the same fields in the same bits.
 */
#define URDMA_RING_LOG_ENTRIES GENMASK_ULL(4, 0)
#define URDMA_RING_LOG_STRIDE GENMASK_ULL(8, 5)
#define URDMA_RING_LEVELS GENMASK_ULL(10, 9)
#define URDMA_RING_PAGE_SHIFT GENMASK_ULL(16, 11)

/* ---- commands: 64 bytes, 8 words; completions likewise -------------------------------------- */
#define URDMA_CMD_SIZE 64
#define URDMA_CMD0_OPCODE GENMASK_ULL(7, 0)
/* raise an EQE of type CMD in EQ 0 when complete */
#define URDMA_CMD0_EVENT BIT_ULL(8)
/* chosen by software, returned in the completion */
#define URDMA_CMD0_TAG GENMASK_ULL(31, 16)
#define URDMA_CMD0_OBJ GENMASK_ULL(55, 32)

#define URDMA_CMD_NOP 0x00
#define URDMA_CMD_ALLOC_PD 0x01
#define URDMA_CMD_DEALLOC_PD 0x02
#define URDMA_CMD_CREATE_EQ 0x10
#define URDMA_CMD_DESTROY_EQ 0x11
#define URDMA_CMD_CREATE_CQ 0x18
#define URDMA_CMD_DESTROY_CQ 0x19
#define URDMA_CMD_MODIFY_CQ 0x1a
#define URDMA_CMD_RESIZE_CQ 0x1b
#define URDMA_CMD_CREATE_QP 0x20
#define URDMA_CMD_MODIFY_QP 0x21
#define URDMA_CMD_QUERY_QP 0x22
#define URDMA_CMD_DESTROY_QP 0x23
#define URDMA_CMD_SET_QP_CNT 0x24
#define URDMA_CMD_CREATE_MR 0x28
#define URDMA_CMD_DESTROY_MR 0x29
#define URDMA_CMD_SET_GID 0x30
#define URDMA_CMD_CREATE_SRQ 0x38
#define URDMA_CMD_MODIFY_SRQ 0x39
#define URDMA_CMD_QUERY_SRQ 0x3a
#define URDMA_CMD_DESTROY_SRQ 0x3b
#define URDMA_CMD_ATTACH_MCAST 0x3c
#define URDMA_CMD_DETACH_MCAST 0x3d
#define URDMA_CMD_QUERY_CNT 0x40
#define URDMA_CMD_CLEAR_CNT 0x41

/* CREATE_EQ: 16-byte EQEs in contiguous memory, 4 KB aligned */
#define URDMA_CMD_EQ1_LOG_ENTRIES GENMASK_ULL(4, 0)
#define URDMA_CMD_EQ1_VECTOR GENMASK_ULL(21, 16)
#define URDMA_CMD_EQ2_ADDR GENMASK_ULL(63, 0)

/* CREATE_CQ: RING_* in bits 16:0 of word 1 (stride 32 bytes: LOG_STRIDE 5) */
#define URDMA_CMD_CQ1_RING GENMASK_ULL(16, 0)
#define URDMA_CMD_CQ1_EQN GENMASK_ULL(25, 20)
#define URDMA_CMD_CQ1_DB_PAGE GENMASK_ULL(43, 32)
/* a full CQ overwrites its oldest CQE; without it a full CQ is an error */
#define URDMA_CMD_CQ1_OVERRUN BIT_ULL(48)
#define URDMA_CMD_CQ2_ADDR GENMASK_ULL(63, 0)
/* MODIFY_CQ: an armed CQ waits for COUNT CQEs or PERIOD microseconds; 0: no such limit */
#define URDMA_CMD_MCQ1_COUNT GENMASK_ULL(15, 0)
#define URDMA_CMD_MCQ1_PERIOD GENMASK_ULL(31, 16)
/* RESIZE_CQ: the new ring in CQ1_RING and CQ2_ADDR, and the consumer index as in a doorbell */
#define URDMA_CMD_RCQ3_CI GENMASK_ULL(31, 0)

/* CREATE_QP; the QP starts in RESET */
/* XRC_TGT: the XRC domain. To the NIC, an XRC domain is a PD */
#define URDMA_CMD_QP1_PD GENMASK_ULL(15, 0)
#define URDMA_CMD_QP1_DB_PAGE GENMASK_ULL(27, 16)
#define URDMA_CMD_QP1_TYPE GENMASK_ULL(31, 28)
#define URDMA_CMD_QP1_SEND_CQ GENMASK_ULL(55, 32)
/* a CQE for every send WQE */
#define URDMA_CMD_QP1_SIG_ALL BIT_ULL(56)
/* a QP of the kernel: it may post REG_MR, whose page table is given by bus address */
#define URDMA_CMD_QP1_PRIV BIT_ULL(57)
/* receive WQEs come from QP5_SRQN; RQ_RING and RQ_ADDR are ignored */
#define URDMA_CMD_QP1_SRQ BIT_ULL(58)
/* UD: multicast datagrams of the QP go only to the wire, not to members on this NIC */
#define URDMA_CMD_QP1_MCAST_NO_LOOP BIT_ULL(59)
#define URDMA_CMD_QP2_RECV_CQ GENMASK_ULL(23, 0)
#define URDMA_CMD_QP3_SQ_RING GENMASK_ULL(16, 0)
#define URDMA_CMD_QP4_SQ_ADDR GENMASK_ULL(63, 0)
#define URDMA_CMD_QP5_RQ_RING GENMASK_ULL(16, 0)
#define URDMA_CMD_QP5_SRQN GENMASK_ULL(55, 32)
#define URDMA_CMD_QP6_RQ_ADDR GENMASK_ULL(63, 0)
/* QP types, as enum ib_qp_type */
#define URDMA_QPT_RC 2
#define URDMA_QPT_UC 3
#define URDMA_QPT_UD 4
/* no receive queue: RECV_CQ, RQ_RING and RQ_ADDR are ignored */
#define URDMA_QPT_XRC_INI 9
/* no queues and no CQ: rings, addresses and CQs are ignored */
#define URDMA_QPT_XRC_TGT 10

/* MODIFY_QP: changes only the attributes named in MASK */
#define URDMA_CMD_MOD1_MASK GENMASK_ULL(31, 0)
#define URDMA_CMD_MOD1_STATE GENMASK_ULL(35, 32)
#define URDMA_CMD_MOD1_CUR_STATE GENMASK_ULL(39, 36)
/* 1: 256 .. 5: 4096, as enum ib_mtu */
#define URDMA_CMD_MOD1_MTU GENMASK_ULL(43, 40)
#define URDMA_CMD_MOD1_TIMEOUT GENMASK_ULL(48, 44)
#define URDMA_CMD_MOD1_RETRY GENMASK_ULL(51, 49)
#define URDMA_CMD_MOD1_RNR_RETRY GENMASK_ULL(54, 52)
#define URDMA_CMD_MOD1_MIN_RNR GENMASK_ULL(59, 55)
#define URDMA_CMD_MOD2_DEST_QPN GENMASK_ULL(23, 0)
#define URDMA_CMD_MOD2_RQ_PSN GENMASK_ULL(47, 24)
#define URDMA_CMD_MOD2_MAX_RD_ATOMIC GENMASK_ULL(55, 48)
#define URDMA_CMD_MOD2_MAX_DEST_RD_ATOMIC GENMASK_ULL(63, 56)
#define URDMA_CMD_MOD3_SQ_PSN GENMASK_ULL(23, 0)
#define URDMA_CMD_MOD3_SGID_INDEX GENMASK_ULL(31, 24)
#define URDMA_CMD_MOD3_QKEY GENMASK_ULL(63, 32)
/* byte 0 of the address in the low bits */
#define URDMA_CMD_MOD4_DMAC GENMASK_ULL(47, 0)
#define URDMA_CMD_MOD4_TCLASS GENMASK_ULL(55, 48)
#define URDMA_CMD_MOD4_HOP_LIMIT GENMASK_ULL(63, 56)
/* destination GID, bytes 0..7 and 8..15 in memory order; IPv4 as ::ffff:a.b.c.d */
#define URDMA_CMD_MOD5_DGID_LO GENMASK_ULL(63, 0)
#define URDMA_CMD_MOD6_DGID_HI GENMASK_ULL(63, 0)
#define URDMA_CMD_MOD7_FLOW_LABEL GENMASK_ULL(19, 0)
#define URDMA_CMD_MOD7_UDP_SPORT GENMASK_ULL(35, 20)
#define URDMA_CMD_MOD7_PKEY GENMASK_ULL(51, 36)
/* remote write, remote read, remote atomic: URDMA_ACC_* >> 1 */
#define URDMA_CMD_MOD7_ACCESS GENMASK_ULL(54, 52)
/* with AV: priority in the VLAN tag, if the GID has one */
#define URDMA_CMD_MOD7_PCP GENMASK_ULL(57, 55)
/* with ACCESS: the peer may FLUSH */
#define URDMA_CMD_MOD7_FLUSH_GLOBAL BIT_ULL(58)

/* bits of MODIFY_QP's MASK */
#define URDMA_QPM_STATE BIT_ULL(0)
#define URDMA_QPM_CUR_STATE BIT_ULL(1)
#define URDMA_QPM_AV BIT_ULL(2)
#define URDMA_QPM_MTU BIT_ULL(3)
#define URDMA_QPM_TIMEOUT BIT_ULL(4)
#define URDMA_QPM_RETRY BIT_ULL(5)
#define URDMA_QPM_RNR_RETRY BIT_ULL(6)
#define URDMA_QPM_MIN_RNR BIT_ULL(7)
#define URDMA_QPM_DEST_QPN BIT_ULL(8)
#define URDMA_QPM_RQ_PSN BIT_ULL(9)
#define URDMA_QPM_SQ_PSN BIT_ULL(10)
#define URDMA_QPM_MAX_RD_ATOMIC BIT_ULL(11)
#define URDMA_QPM_MAX_DEST_RD_ATOMIC BIT_ULL(12)
#define URDMA_QPM_QKEY BIT_ULL(13)
#define URDMA_QPM_PKEY BIT_ULL(14)
#define URDMA_QPM_ACCESS BIT_ULL(15)
/* with STATE SQD: raise SQ_DRAINED when the send queue is drained */
#define URDMA_QPM_SQD_EVENT BIT_ULL(16)

/* QP states, as enum ib_qp_state */
#define URDMA_QPS_RESET 0
#define URDMA_QPS_INIT 1
#define URDMA_QPS_RTR 2
#define URDMA_QPS_RTS 3
#define URDMA_QPS_SQD 4
#define URDMA_QPS_SQE 5
#define URDMA_QPS_ERR 6

/*
 * CREATE_MR; object: index, the key is index << 8 | VARIANT. The page table is as for a ring. VA's
 * low PAGE_SHIFT bits are the offset in the first page; with LEVELS 0, ADDR is the bus address of
 * VA with these bits cleared.
 */
#define URDMA_CMD_MR1_PD GENMASK_ULL(15, 0)
#define URDMA_CMD_MR1_ACCESS GENMASK_ULL(21, 16)
/* the addresses are 0 to LENGTH - 1; VA only says where the first byte is in its page */
#define URDMA_CMD_MR1_ZERO_BASED BIT_ULL(22)
#define URDMA_CMD_MR1_VARIANT GENMASK_ULL(31, 24)
#define URDMA_CMD_MR1_LEVELS GENMASK_ULL(33, 32)
#define URDMA_CMD_MR1_PAGE_SHIFT GENMASK_ULL(39, 34)
/* any address: VA, LENGTH, ADDR are ignored, an address is a bus address (kernel's DMA MR) */
#define URDMA_CMD_MR1_ALL BIT_ULL(40)
#define URDMA_CMD_MR1_KIND GENMASK_ULL(42, 41)
/* usable at once */
#define URDMA_MRK_REGION 0
/* for REG_MR: invalid until a WQE registers it; uses only PD, VARIANT and KIND */
#define URDMA_MRK_FAST 1
/* memory window type 2B: unbound until BIND_MW; uses only PD, VARIANT and KIND */
#define URDMA_MRK_WINDOW 2
/* memory window type 1: the same, but belongs to its PD, not to a QP; can be bound again */
#define URDMA_MRK_WINDOW_1 3
#define URDMA_CMD_MR2_VA GENMASK_ULL(63, 0)
#define URDMA_CMD_MR3_LENGTH GENMASK_ULL(63, 0)
#define URDMA_CMD_MR4_ADDR GENMASK_ULL(63, 0)
#define URDMA_ACC_LOCAL_WRITE BIT_ULL(0)
#define URDMA_ACC_REMOTE_WRITE BIT_ULL(1)
#define URDMA_ACC_REMOTE_READ BIT_ULL(2)
#define URDMA_ACC_REMOTE_ATOMIC BIT_ULL(3)
#define URDMA_ACC_MW_BIND BIT_ULL(4)
/* remote FLUSH to global visibility; no right allows a FLUSH to persistence */
#define URDMA_ACC_FLUSH_GLOBAL BIT_ULL(5)

/* SET_GID; object: index in the table. VALID 0 removes the entry */
#define URDMA_CMD_GID1_VALID BIT_ULL(0)
#define URDMA_CMD_GID1_IPV4 BIT_ULL(1)
#define URDMA_CMD_GID1_VLAN_VALID BIT_ULL(2)
#define URDMA_CMD_GID1_VLAN GENMASK_ULL(27, 16)
#define URDMA_CMD_GID2_SMAC GENMASK_ULL(47, 0)
#define URDMA_CMD_GID3_GID_LO GENMASK_ULL(63, 0)
#define URDMA_CMD_GID4_GID_HI GENMASK_ULL(63, 0)

/*
 * CREATE_SRQ: the receive WQEs are as in an RQ. A ring of 2^LOG_ENTRIES 16-bit indices follows them
 * at byte 2^(LOG_ENTRIES + LOG_STRIDE). One page table covers both. An index names the place of a
 * WQE in the array. The producer index of DB_SRQ counts indices.
 */
#define URDMA_CMD_SRQ1_PD GENMASK_ULL(15, 0)
#define URDMA_CMD_SRQ1_DB_PAGE GENMASK_ULL(27, 16)
/* an SRQ for QPs of type XRC_TGT in the domain SRQ4_XRCD; its CQEs go to SRQ4_CQN */
#define URDMA_CMD_SRQ1_XRC BIT_ULL(28)
#define URDMA_CMD_SRQ2_RING GENMASK_ULL(16, 0)
#define URDMA_CMD_SRQ3_ADDR GENMASK_ULL(63, 0)
#define URDMA_CMD_SRQ4_XRCD GENMASK_ULL(15, 0)
#define URDMA_CMD_SRQ4_CQN GENMASK_ULL(55, 32)
/* MODIFY_SRQ: arms the limit; 0 disarms it */
#define URDMA_CMD_MSRQ1_LIMIT GENMASK_ULL(15, 0)

/* ATTACH_MCAST, DETACH_MCAST; object: QP of type UD. The GID of a group as in MOD5, MOD6 */
#define URDMA_CMD_MC5_GID_LO GENMASK_ULL(63, 0)
#define URDMA_CMD_MC6_GID_HI GENMASK_ULL(63, 0)

/* SET_QP_CNT; object: QP. The set that counts its packets from now on; 0: the default set */
#define URDMA_CMD_QPC1_SET GENMASK_ULL(15, 0)
/* QUERY_CNT; object: set. The group of counters, see URDMA_QCNT_GROUP */
#define URDMA_CMD_QCNT1_GROUP GENMASK_ULL(7, 0)
/*
 * Counters of a set. Counter n is in word 1 + n % QCNT_GROUP of the answer to a query of group
 * n / QCNT_GROUP, in the bits of CPL_QCNT1_VALUE.
 */
#define URDMA_QCNT_RX_PKTS 0
#define URDMA_QCNT_RX_BYTES 1
#define URDMA_QCNT_RX_SEND 2
#define URDMA_QCNT_RX_WRITE 3
#define URDMA_QCNT_RX_READ 4
#define URDMA_QCNT_RX_ATOMIC 5
#define URDMA_QCNT_RX_DUP 6
#define URDMA_QCNT_RX_SEQ_ERR 7
#define URDMA_QCNT_RX_NO_WQE 8
#define URDMA_QCNT_RESP_ERR 9
#define URDMA_QCNT_RESP_FLUSH 10
#define URDMA_QCNT_TX_PKTS 11
#define URDMA_QCNT_TX_BYTES 12
#define URDMA_QCNT_TX_RETRANS 13
#define URDMA_QCNT_RX_ACK 14
#define URDMA_QCNT_RX_NAK_SEQ 15
#define URDMA_QCNT_RX_NAK_RNR 16
#define URDMA_QCNT_RX_READ_GAP 17
#define URDMA_QCNT_TX_TIMEOUT 18
#define URDMA_QCNT_REQ_ERR 19
#define URDMA_QCNT_REQ_FLUSH 20
#define URDMA_QCNT_N 21
#define URDMA_QCNT_GROUP 7

/* command completion */
#define URDMA_CPL0_STATUS GENMASK_ULL(15, 8)
#define URDMA_CPL0_TAG GENMASK_ULL(31, 16)
#define URDMA_CPL0_OBJ GENMASK_ULL(55, 32)
/* QUERY_QP */
#define URDMA_CPL_QP1_STATE GENMASK_ULL(3, 0)
/* state SQD, and messages already started are not yet complete */
#define URDMA_CPL_QP1_SQ_DRAINING BIT_ULL(4)
#define URDMA_CPL_QP2_SQ_PSN GENMASK_ULL(23, 0)
#define URDMA_CPL_QP2_RQ_PSN GENMASK_ULL(47, 24)
#define URDMA_CPL_QP3_SQ_PI GENMASK_ULL(15, 0)
#define URDMA_CPL_QP3_SQ_CI GENMASK_ULL(31, 16)
#define URDMA_CPL_QP3_RQ_PI GENMASK_ULL(47, 32)
#define URDMA_CPL_QP3_RQ_CI GENMASK_ULL(63, 48)
/* QUERY_SRQ: the limit if it is armed, or 0 */
#define URDMA_CPL_SRQ1_LIMIT GENMASK_ULL(15, 0)
#define URDMA_CPL_SRQ1_PI GENMASK_ULL(31, 16)
#define URDMA_CPL_SRQ1_CI GENMASK_ULL(47, 32)
/* RESIZE_CQ: index of the CQE in entry 0 of the new ring */
#define URDMA_CPL_CQ1_BASE GENMASK_ULL(31, 0)
/* QUERY_CNT: a counter; the next words hold the next counters in the same bits */
#define URDMA_CPL_QCNT1_VALUE GENMASK_ULL(62, 0)
/* in every completion, in the last word; see CQE3_PHASE */
#define URDMA_CPL7_PHASE BIT_ULL(63)

/* command status */
#define URDMA_CS_OK 0
#define URDMA_CS_BAD_OPCODE 1
/* number out of range, or object does not exist */
#define URDMA_CS_BAD_OBJECT 2
#define URDMA_CS_EXISTS 3
#define URDMA_CS_BAD_STATE 4
#define URDMA_CS_BAD_PD 5
#define URDMA_CS_BAD_CQ 6
#define URDMA_CS_BAD_EQ 7
#define URDMA_CS_BAD_SIZE 8
#define URDMA_CS_BAD_ALIGN 9
#define URDMA_CS_BAD_ATTR 10
/* other objects still refer to it; RESIZE_CQ: more unread CQEs than the new ring has entries */
#define URDMA_CS_BUSY 11
#define URDMA_CS_BAD_DB_PAGE 12
#define URDMA_CS_BAD_SRQ 13
/* no room for another group or member */
#define URDMA_CS_FULL 14

/* ---- send WQE: 64 << n bytes, n = 0..3 ------------------------------------------------------ */
#define URDMA_SQE0_OPCODE GENMASK_ULL(7, 0)
#define URDMA_SQE0_SIGNALED BIT_ULL(8)
#define URDMA_SQE0_SOLICITED BIT_ULL(9)
#define URDMA_SQE0_FENCE BIT_ULL(10)
#define URDMA_SQE0_INLINE BIT_ULL(11)
/* SGEs that follow; 0 with INLINE */
#define URDMA_SQE0_NUM_SGE GENMASK_ULL(23, 16)
/* immediate data (in network order: byte 0 is the first on the wire) or key to invalidate */
#define URDMA_SQE1_IMM GENMASK_ULL(31, 0)
/* XRC_INI: the SRQ at the peer, in every message's WQE */
#define URDMA_SQE1_XRC_SRQN GENMASK_ULL(55, 32)
#define URDMA_SQE2_RADDR GENMASK_ULL(63, 0)
#define URDMA_SQE3_RKEY GENMASK_ULL(31, 0)
/* length of the message, equal to the sum of the SGEs. ATOMIC: 8, with one SGE of 8 bytes */
#define URDMA_SQE3_LENGTH GENMASK_ULL(63, 32)
/*
 * ATOMIC: after the SGE, in the first 64 bytes. CS: swap and compare values; FA: SWAP_ADD is the
 * number to add.
 */
#define URDMA_SQE6_SWAP_ADD GENMASK_ULL(63, 0)
#define URDMA_SQE7_COMPARE GENMASK_ULL(63, 0)
/*
 * LOCAL_INV: the key is in SQE1_IMM. REG_MR and BIND_MW: the new key is in SQE3_RKEY (software
 * chooses its variant; its index is that of the region or window), the start address in SQE2_RADDR.
 * There are no SGEs; NUM_SGE and LENGTH are 0. BIND_MW: the lkey of the region is in SQE1_IMM;
 * MR_LENGTH is not 0.
 */
#define URDMA_SQE4_MR_LENGTH GENMASK_ULL(63, 0)
/* REG_MR: bus address of the page table, as MR4_ADDR; the NIC reads it until the invalidation */
#define URDMA_SQE5_MR_ADDR GENMASK_ULL(63, 0)
#define URDMA_SQE6_MR_ACCESS GENMASK_ULL(5, 0)
/* the addresses are 0 to MR_LENGTH - 1; RADDR: as VA of CREATE_MR; BIND_MW: in the region */
#define URDMA_SQE6_MR_ZERO_BASED BIT_ULL(6)
#define URDMA_SQE6_MR_LEVELS GENMASK_ULL(9, 8)
#define URDMA_SQE6_MR_PAGE_SHIFT GENMASK_ULL(21, 16)
/*
 * FLUSH and ATOMIC WRITE have no SGEs; NUM_SGE and LENGTH are 0. FLUSH: the fields of the FETH, and
 * the length of the range that starts at SQE2_RADDR.
 */
#define URDMA_SQE1_FLUSH_TYPE GENMASK_ULL(3, 0)
#define URDMA_SQE1_FLUSH_LEVEL GENMASK_ULL(5, 4)
#define URDMA_SQE4_FLUSH_LENGTH GENMASK_ULL(31, 0)
/* FLUSH_TYPE, a mask */
#define URDMA_FLUSH_GLOBAL 1
#define URDMA_FLUSH_PERSISTENT 2
/* FLUSH_LEVEL: the range, or the whole region or window of the key */
#define URDMA_FLUSH_RANGE 0
#define URDMA_FLUSH_MR 1
/* ATOMIC WRITE: the 8 bytes in memory order, the first in bits 7:0 */
#define URDMA_SQE6_WRITE_VALUE GENMASK_ULL(63, 0)
/*
 * UD: the destination. Words 4 to 6 are MODIFY_QP's words 5, 6 and 4. The WQE has at least 128
 * bytes; bytes 64 to 95 are reserved and 0.
 */
#define URDMA_SQE2_DEST_QPN GENMASK_ULL(23, 0)
/* if bit 31 is set, the NIC sends the Q_Key of the QP */
#define URDMA_SQE3_QKEY GENMASK_ULL(31, 0)
#define URDMA_SQE4_DGID_LO GENMASK_ULL(63, 0)
#define URDMA_SQE5_DGID_HI GENMASK_ULL(63, 0)
#define URDMA_SQE6_DMAC GENMASK_ULL(47, 0)
#define URDMA_SQE6_TCLASS GENMASK_ULL(55, 48)
#define URDMA_SQE6_HOP_LIMIT GENMASK_ULL(63, 56)
#define URDMA_SQE7_FLOW_LABEL GENMASK_ULL(19, 0)
#define URDMA_SQE7_UDP_SPORT GENMASK_ULL(35, 20)
#define URDMA_SQE7_SGID_INDEX GENMASK_ULL(43, 36)
/* priority in the VLAN tag, if the GID has one */
#define URDMA_SQE7_PCP GENMASK_ULL(46, 44)
/* byte offset of the first SGE or of inline data */
#define URDMA_SQE_DATA_OFFSET 32
/* the same for a UD WQE */
#define URDMA_SQE_UD_DATA_OFFSET 96

#define URDMA_WR_SEND 0
#define URDMA_WR_SEND_IMM 1
#define URDMA_WR_SEND_INV 2
#define URDMA_WR_WRITE 3
#define URDMA_WR_WRITE_IMM 4
#define URDMA_WR_READ 5
#define URDMA_WR_ATOMIC_CS 6
#define URDMA_WR_ATOMIC_FA 7
#define URDMA_WR_LOCAL_INV 8
#define URDMA_WR_REG_MR 9
#define URDMA_WR_BIND_MW 10
#define URDMA_WR_FLUSH 11
#define URDMA_WR_ATOMIC_WRITE 12

/* ---- receive WQE: 64 << n bytes, n = 0..3; SGEs follow at byte 16 --------------------------- */
#define URDMA_RQE0_NUM_SGE GENMASK_ULL(7, 0)
#define URDMA_RQE_DATA_OFFSET 16

/* scatter-gather element: 16 bytes; LENGTH 0 means nothing (not 2 GB) */
#define URDMA_SGE_SIZE 16
#define URDMA_SGE0_ADDR GENMASK_ULL(63, 0)
#define URDMA_SGE1_LENGTH GENMASK_ULL(31, 0)
#define URDMA_SGE1_LKEY GENMASK_ULL(63, 32)

/* ---- CQE: 32 bytes -------------------------------------------------------------------------- */
#define URDMA_CQE_SIZE 32
/* CQE of an XRC SRQ: CQE2_SRQN is its number, even if the status is not 0 */
#define URDMA_CQE0_XRC BIT_ULL(0)
#define URDMA_CQE0_IMM BIT_ULL(1)
#define URDMA_CQE0_INV BIT_ULL(2)
#define URDMA_CQE0_SOLICITED BIT_ULL(3)
/* 1: CQE of a receive queue */
#define URDMA_CQE0_RECV BIT_ULL(4)
/*
 * UD receive: the first 40 bytes of the data are a GRH: an IPv6 header, or (IPV4) 20 bytes of zeros
 * and an IPv4 header. LENGTH includes them.
 */
#define URDMA_CQE0_GRH BIT_ULL(5)
#define URDMA_CQE0_IPV4 BIT_ULL(6)
/* UD receive: the frame had a VLAN tag, which is in TCI */
#define URDMA_CQE0_VLAN BIT_ULL(7)
/* send: URDMA_WR_*; receive: the peer's opcode, URDMA_WR_SEND* or WRITE_IMM */
#define URDMA_CQE0_OPCODE GENMASK_ULL(15, 8)
#define URDMA_CQE0_STATUS GENMASK_ULL(23, 16)
/* a hint for debugging: see docs/hardware-interface.md */
#define URDMA_CQE0_VENDOR GENMASK_ULL(31, 24)
/*
 * free-running index of the WQE: the slot is the low LOG_ENTRIES bits. For a WQE of an SRQ: its
 * place in the array
 */
#define URDMA_CQE0_WQE GENMASK_ULL(47, 32)
#define URDMA_CQE0_TCI GENMASK_ULL(63, 48)
#define URDMA_CQE1_LENGTH GENMASK_ULL(31, 0)
#define URDMA_CQE1_QPN GENMASK_ULL(55, 32)
#define URDMA_CQE2_IMM GENMASK_ULL(31, 0)
#define URDMA_CQE2_SRC_QPN GENMASK_ULL(55, 32)
#define URDMA_CQE2_SRQN GENMASK_ULL(55, 32)
/* value of REG_CYCLES when the CQE was written */
#define URDMA_CQE3_CYCLES GENMASK_ULL(62, 0)
/*
 * Inverts at each round of the ring; it is 1 in the first round. The NIC's writes become visible in
 * ascending order. So when software sees the phase bit, in the last word, the words before it are
 * valid.
 */
#define URDMA_CQE3_PHASE BIT_ULL(63)

/* CQE status: as enum ib_wc_status */
#define URDMA_WC_SUCCESS 0
#define URDMA_WC_LOC_LEN_ERR 1
#define URDMA_WC_LOC_QP_OP_ERR 2
#define URDMA_WC_LOC_PROT_ERR 4
#define URDMA_WC_FLUSH_ERR 5
#define URDMA_WC_MW_BIND_ERR 6
#define URDMA_WC_BAD_RESP_ERR 7
#define URDMA_WC_LOC_ACCESS_ERR 8
#define URDMA_WC_REM_INV_REQ_ERR 9
#define URDMA_WC_REM_ACCESS_ERR 10
#define URDMA_WC_REM_OP_ERR 11
#define URDMA_WC_RETRY_EXC_ERR 12
#define URDMA_WC_RNR_RETRY_EXC_ERR 13

/* ---- Ethernet descriptors and completions --------------------------------------------------- */
/*
 * Transmit, 16 bytes. The first descriptor of a frame carries its options. CSUM: the NIC writes the
 * checksum over the bytes from CSUM_START to the end at CSUM_AT; the sum includes the old value of
 * the two bytes there. Offsets refer to the frame in memory, without the tag that VLAN inserts.
 */
#define URDMA_ETXD_SIZE 16
#define URDMA_ETXD0_ADDR GENMASK_ULL(63, 0)
/* 1 to 16383 */
#define URDMA_ETXD1_LENGTH GENMASK_ULL(13, 0)
/* of the frame */
#define URDMA_ETXD1_LAST BIT_ULL(16)
#define URDMA_ETXD1_VLAN BIT_ULL(17)
#define URDMA_ETXD1_CSUM BIT_ULL(18)
#define URDMA_ETXD1_CSUM_START GENMASK_ULL(31, 20)
#define URDMA_ETXD1_TCI GENMASK_ULL(47, 32)
#define URDMA_ETXD1_CSUM_AT GENMASK_ULL(63, 52)
/* Receive, 8 bytes: address of a buffer */
#define URDMA_ERXD_SIZE 8

/* Completion, 32 bytes */
#define URDMA_ECQE_SIZE 32
#define URDMA_ECQE0_KIND GENMASK_ULL(1, 0)
/* a frame was received */
#define URDMA_ECQE_RX 1
/* all descriptors before INDEX are done */
#define URDMA_ECQE_TX 2
/* TX: at least one frame was not sent */
#define URDMA_ECQE0_ERR BIT_ULL(2)
/* RX: the NIC has removed a tag and put it into TCI */
#define URDMA_ECQE0_VLAN BIT_ULL(3)
/* RX: 0: no hash; 1: hash of addresses; 2: hash of addresses and ports */
#define URDMA_ECQE0_HASH_TYPE GENMASK_ULL(5, 4)
/* RX: buffers used */
#define URDMA_ECQE0_BUFS GENMASK_ULL(15, 8)
/* RX: bytes of the frame in the buffers */
#define URDMA_ECQE0_LENGTH GENMASK_ULL(31, 16)
#define URDMA_ECQE0_TCI GENMASK_ULL(47, 32)
/*
 * RX: ones' complement sum of the frame in the buffers from byte 14 on, over 16-bit words with the
 * low byte first
 */
#define URDMA_ECQE0_CSUM GENMASK_ULL(63, 48)
#define URDMA_ECQE1_HASH GENMASK_ULL(31, 0)
/* free running; RX: index of the first buffer used */
#define URDMA_ECQE1_INDEX GENMASK_ULL(47, 32)
/* REG_CYCLES, and the phase bit as in CQE3 */
#define URDMA_ECQE3_CYCLES GENMASK_ULL(62, 0)
#define URDMA_ECQE3_PHASE BIT_ULL(63)

/* ---- EQE: 16 bytes -------------------------------------------------------------------------- */
#define URDMA_EQE_SIZE 16
#define URDMA_EQE0_TYPE GENMASK_ULL(15, 8)
#define URDMA_EQE0_OBJ GENMASK_ULL(39, 16)
#define URDMA_EQE0_DATA GENMASK_ULL(63, 40)
#define URDMA_EQE1_CYCLES GENMASK_ULL(62, 0)
#define URDMA_EQE1_PHASE BIT_ULL(63)

/* object: 0; data: 0 - the completion ring has new completions */
#define URDMA_EV_CMD 1
/* object: CQ */
#define URDMA_EV_CQ 2
/*
 * object: CQ; its ring was full. The CQ is dead, and each of its QPs goes to ERR at its next CQE.
 */
#define URDMA_EV_CQ_ERR 3
/* object: QP */
#define URDMA_EV_QP_FATAL 4
#define URDMA_EV_QP_REQ_ERR 5
#define URDMA_EV_QP_ACCESS_ERR 6
#define URDMA_EV_COMM_EST 7
#define URDMA_EV_LAST_WQE 8
#define URDMA_EV_SQ_DRAINED 9
/* object: port 1; data bit 0: link */
#define URDMA_EV_PORT 10
/* object: SRQ; fewer WQEs are left than the limit, which is disarmed */
#define URDMA_EV_SRQ_LIMIT 11
/* object: SRQ; it is dead, and each of its QPs goes to ERR when it needs a WQE */
#define URDMA_EV_SRQ_ERR 12

#endif
