// SPDX-License-Identifier: Apache-2.0
/*
 * vfio-user server. Each command has a function, which checks the lengths before it reads fields,
 * and checks every field before it acts. A command returns 0, a negative errno for the error reply,
 * or one of the two verdicts below.
 *
 * Only urdma_vfio_user_process() and urdma_vfio_user_destroy() drop a client. The model may call
 * back while a command is being executed, so callbacks only mark the connection.
 */
#define _GNU_SOURCE
#include "host/vfio_user.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/vfio_user_dma.h"
#include "host/vfio_user_proto.h"
#include "pcie/config_space.h"
#include "socket.h"

/* Limits. The largest message QEMU sends is a REGION_WRITE_MULTI of 200 writes, 4824 bytes. */
#define MAX_MESSAGE	  8192u	  /* bytes, header included */
#define MAX_TRANSFER	  4096u	  /* bytes of data in one region access: the configuration space */
#define MAX_FDS		  16u	  /* per message; QEMU accepts no larger value */
#define MAX_READS	  64u	  /* register reads in flight */
#define OUTPUT_HIGH	  262144u /* bytes of replies that a client may leave unread */
#define MESSAGES_PER_CALL 64u
#define LOGS_PER_CLIENT	  200u

/* Verdicts of a command besides 0 and -errno. */
#define REPLY_LATER 1 /* the reply is sent elsewhere, now or later */
#define TRY_AGAIN   2 /* the function is full: keep the message until the model has run */

struct server_read;

struct urdma_vfio_user_server {
	struct urdma_pcie *pcie;
	urdma_vfio_user_log_fn log;
	void *log_ctx;
	bool log_debug;
	struct urdma_vfio_user_stats stats;

	struct urdma_socket listen;

	/* The client. fd is -1 if there is none. */
	int fd;
	bool negotiated;
	bool write_multiple;
	bool broken;   /* drop it when no command is being executed */
	bool draining; /* the last reply is queued; drop it after one attempt to send it */
	bool stalled;  /* the message in input waits for room in the function */
	unsigned int logs;
	uint64_t multi_done; /* writes of a stalled REGION_WRITE_MULTI already done */

	/* The message being received. */
	union {
		uint8_t bytes[MAX_MESSAGE];
		struct vu_header header;
	} input;
	size_t input_len;
	int fds[MAX_FDS];
	unsigned int num_fds;
	bool too_many_fds;
	bool foreign_fd; /* a descriptor was neither a file nor an eventfd, and was closed */

	/* Replies not yet sent, as whole messages; the first may be partly sent. */
	uint8_t *output;
	size_t output_len;
	size_t output_sent;

	struct server_read *reads; /* in flight */
	unsigned int num_reads;

	struct vu_dma dma;

	int msix_fd[URDMA_PCIE_MSIX_COUNT]; /* -1: none */
	int err_fd;
	int req_fd;
};

/* A register read in flight. server is NULL when the value is no longer needed. */
struct server_read {
	struct urdma_vfio_user_server *server;
	struct server_read *next;
	struct vu_header header;
	struct vu_region_access access;
};

/* ---- Logging ---- */

static const char *command_name(unsigned int command)
{
	static const char *const names[] = {
		[VU_VERSION] = "VERSION",
		[VU_DMA_MAP] = "DMA_MAP",
		[VU_DMA_UNMAP] = "DMA_UNMAP",
		[VU_DEVICE_GET_INFO] = "DEVICE_GET_INFO",
		[VU_DEVICE_GET_REGION_INFO] = "DEVICE_GET_REGION_INFO",
		[VU_DEVICE_GET_REGION_IO_FDS] = "DEVICE_GET_REGION_IO_FDS",
		[VU_DEVICE_GET_IRQ_INFO] = "DEVICE_GET_IRQ_INFO",
		[VU_DEVICE_SET_IRQS] = "DEVICE_SET_IRQS",
		[VU_REGION_READ] = "REGION_READ",
		[VU_REGION_WRITE] = "REGION_WRITE",
		[VU_DMA_READ] = "DMA_READ",
		[VU_DMA_WRITE] = "DMA_WRITE",
		[VU_DEVICE_RESET] = "DEVICE_RESET",
		[VU_DIRTY_PAGES] = "DIRTY_PAGES",
		[VU_REGION_WRITE_MULTI] = "REGION_WRITE_MULTI",
		[VU_DEVICE_FEATURE] = "DEVICE_FEATURE",
		[VU_MIG_DATA_READ] = "MIG_DATA_READ",
		[VU_MIG_DATA_WRITE] = "MIG_DATA_WRITE",
	};

	if (command < sizeof(names) / sizeof(names[0]) && names[command])
		return names[command];
	return "unknown command";
}

static void __attribute__((format(printf, 3, 4)))
log_line(struct urdma_vfio_user_server *s, enum urdma_vfio_user_level level, const char *format,
	 ...)
{
	char line[512];
	va_list args;
	int n;

	if (level == URDMA_VFIO_USER_DEBUG && !s->log_debug)
		return;
	/* A client that sends only errors must not fill the disk. */
	if (level == URDMA_VFIO_USER_ERROR && s->fd >= 0 && s->logs++ >= LOGS_PER_CLIENT) {
		if (s->logs != LOGS_PER_CLIENT + 1)
			return;
		format = "further errors of this client are not shown";
	}

	n = snprintf(line, sizeof(line), "vfio-user %s: ", s->listen.address.sun_path);
	va_start(args, format);
	vsnprintf(line + n, sizeof(line) - (size_t)n, format, args);
	va_end(args);
	if (s->log)
		s->log(s->log_ctx, level, line);
	else
		fprintf(stderr, "%s\n", line);
}

/* Logs why a command is refused; returns error for the caller to return. */
static int __attribute__((format(printf, 3, 4)))
refuse(struct urdma_vfio_user_server *s, int error, const char *format, ...)
{
	char reason[320];
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	log_line(s, URDMA_VFIO_USER_ERROR, "%s refused: %s (%s)",
		 command_name(s->input.header.command), reason, strerror(-error));
	return error;
}

static void break_connection(struct urdma_vfio_user_server *s, const char *why)
{
	if (s->broken)
		return;
	s->broken = true;
	s->stats.disconnects++;
	log_line(s, URDMA_VFIO_USER_ERROR, "connection closed: %s", why);
}

/* ---- Output ---- */

/*
 * Each message has its own send call, so the kernel delivers it as a whole or not at all. (QEMU
 * treats a header that arrives in two pieces as an error.)
 */
static void flush_output(struct urdma_vfio_user_server *s)
{
	size_t at = 0;

	while (at < s->output_len && !s->broken) {
		struct vu_header header;
		ssize_t n;

		memcpy(&header, s->output + at, sizeof(header));
		n = send(s->fd, s->output + at + s->output_sent, header.size - s->output_sent,
			 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			if (errno != EAGAIN && errno != EWOULDBLOCK) {
				log_line(s, URDMA_VFIO_USER_INFO, "client gone: %s",
					 strerror(errno));
				s->broken = true;
			}
			break;
		}
		s->output_sent += (size_t)n;
		if (s->output_sent < header.size)
			break;
		at += header.size;
		s->output_sent = 0;
	}
	memmove(s->output, s->output + at, s->output_len - at);
	s->output_len -= at;
}

/* Appends a reply; payload in two parts, either of which may be empty. */
static void queue_reply(struct urdma_vfio_user_server *s, const struct vu_header *request,
			uint32_t error, const void *payload, size_t len, const void *data,
			size_t data_len)
{
	struct vu_header header = {
		.id = request->id,
		.command = request->command,
		.size = (uint32_t)(sizeof(header) + len + data_len),
		.flags = VU_FLAG_REPLY | (error ? VU_FLAG_ERROR : 0),
		.error = error,
	};
	uint8_t *to;

	if (s->broken)
		return;
	/*
	 * QEMU reads all the time and has few commands in flight. The server does not wait for a
	 * client that stops reading: the client's end of the connection may exist only in a message
	 * that it sent here, and then no one would ever read or hang up.
	 */
	if (header.size > OUTPUT_HIGH - s->output_len) {
		break_connection(s, "client does not read its replies");
		return;
	}
	to = s->output + s->output_len;
	memcpy(to, &header, sizeof(header));
	if (len)
		memcpy(to + sizeof(header), payload, len);
	if (data_len)
		memcpy(to + sizeof(header) + len, data, data_len);
	s->output_len += header.size;
}

static void reply(struct urdma_vfio_user_server *s, const void *payload, size_t len)
{
	if (!(s->input.header.flags & VU_FLAG_NO_REPLY))
		queue_reply(s, &s->input.header, 0, payload, len, NULL, 0);
}

/* ---- Descriptors that came with the message ---- */

static void close_fds(struct urdma_vfio_user_server *s)
{
	for (unsigned int i = 0; i < s->num_fds; i++)
		if (s->fds[i] >= 0)
			close(s->fds[i]);
	s->num_fds = 0;
	s->too_many_fds = false;
	s->foreign_fd = false;
}

/* Gives descriptor i of the message to the caller. */
static int take_fd(struct urdma_vfio_user_server *s, unsigned int i)
{
	int fd = s->fds[i];

	s->fds[i] = -1;
	return fd;
}

/* ---- Interrupts ---- */

/* Another kind of descriptor could block, or be a file that would be overwritten. */
static bool is_eventfd(int fd)
{
	char path[64], target[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	return strcmp(target, "anon_inode:[eventfd]") == 0;
}

static bool fire_eventfd(struct urdma_vfio_user_server *s, int fd)
{
	const uint64_t one = 1;

	/* Does not block: O_NONBLOCK is set. A full counter means that an interrupt is pending. */
	if (write(fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		return false;
	s->stats.interrupts++;
	return true;
}

static void replace_fd(int *slot, int fd)
{
	if (*slot >= 0)
		close(*slot);
	*slot = fd;
}

static void clear_irqs(struct urdma_vfio_user_server *s, unsigned int index)
{
	switch (index) {
	case VU_IRQ_MSIX:
		for (unsigned int i = 0; i < URDMA_PCIE_MSIX_COUNT; i++)
			replace_fd(&s->msix_fd[i], -1);
		break;
	case VU_IRQ_ERR:
		replace_fd(&s->err_fd, -1);
		break;
	case VU_IRQ_REQ:
		replace_fd(&s->req_fd, -1);
		break;
	}
}

/* The slot of one interrupt; index and number have been checked. */
static int *irq_slot(struct urdma_vfio_user_server *s, unsigned int index, unsigned int number)
{
	switch (index) {
	case VU_IRQ_MSIX:
		return &s->msix_fd[number];
	case VU_IRQ_ERR:
		return &s->err_fd;
	default:
		return &s->req_fd;
	}
}

static unsigned int irq_count(unsigned int index)
{
	switch (index) {
	case VU_IRQ_MSIX:
		return URDMA_PCIE_MSIX_COUNT;
	case VU_IRQ_ERR: /* QEMU warns about a PCIe device without it; never fired */
	case VU_IRQ_REQ:
		return 1;
	default:
		return 0; /* the function has neither INTx nor MSI */
	}
}

/* False: the client has set no eventfd for it. */
static bool trigger_irq(struct urdma_vfio_user_server *s, unsigned int index, unsigned int number)
{
	int fd = *irq_slot(s, index, number);

	if (fd >= 0)
		fire_eventfd(s, fd);
	return fd >= 0;
}

/* ---- struct urdma_host_ops ---- */

static int host_dma_read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct urdma_vfio_user_server *s = ctx;

	if (vu_dma_read(&s->dma, addr, buf, len)) {
		s->stats.dma_faults++;
		log_line(s, URDMA_VFIO_USER_ERROR,
			 "DMA read of %zu bytes at 0x%" PRIx64 ": not mapped for reading", len,
			 addr);
		return -EFAULT;
	}
	s->stats.dma_reads++;
	return 0;
}

static int host_dma_write(void *ctx, uint64_t addr, const void *buf, size_t len)
{
	struct urdma_vfio_user_server *s = ctx;

	if (vu_dma_write(&s->dma, addr, buf, len)) {
		s->stats.dma_faults++;
		log_line(s, URDMA_VFIO_USER_ERROR,
			 "DMA write of %zu bytes at 0x%" PRIx64 ": not mapped for writing", len,
			 addr);
		return -EFAULT;
	}
	s->stats.dma_writes++;
	return 0;
}

/*
 * QEMU sets eventfds shortly after the guest has enabled MSI-X. A vector that fires in between
 * stays pending in the function until its eventfd is set.
 */
static int host_msix(void *ctx, unsigned int vector)
{
	struct urdma_vfio_user_server *s = ctx;

	return trigger_irq(s, VU_IRQ_MSIX, vector) ? 0 : -EAGAIN;
}

static const struct urdma_host_ops host_ops = {
	.dma_read = host_dma_read,
	.dma_write = host_dma_write,
	.msix = host_msix,
};

/* ---- Register reads ---- */

static void unlink_read(struct urdma_vfio_user_server *s, struct server_read *read)
{
	for (struct server_read **p = &s->reads; *p; p = &(*p)->next) {
		if (*p == read) {
			*p = read->next;
			s->num_reads--;
			return;
		}
	}
}

/* A failed read returns all ones, as from a real root complex. */
static void read_done(void *arg, int status, uint64_t value)
{
	struct server_read *read = arg;
	struct urdma_vfio_user_server *s = read->server;

	unlink_read(s, read);
	if (status && !s->broken)
		log_line(s, URDMA_VFIO_USER_ERROR,
			 "register read of %u bytes at BAR%u + 0x%" PRIx64 " failed (%s)",
			 read->access.count, read->access.region, read->access.offset,
			 strerror(-status));
	if (status)
		value = UINT64_MAX;
	if (!(read->header.flags & VU_FLAG_NO_REPLY)) {
		value = htole64(value);
		queue_reply(s, &read->header, 0, &read->access, sizeof(read->access), &value,
			    read->access.count);
		flush_output(s); /* a CPU is waiting */
	}
	free(read);
}

/*
 * A reset drops the reads in flight that the function has not completed, so their callbacks never
 * come. The guest's CPUs still wait for them.
 */
static void complete_lost_reads(struct urdma_vfio_user_server *s)
{
	while (s->reads)
		read_done(s->reads, -ECONNRESET, 0);
}

static void reset_function(struct urdma_vfio_user_server *s)
{
	int ret = urdma_pcie_reset(s->pcie);

	if (ret)
		log_line(s, URDMA_VFIO_USER_ERROR, "reset of the function failed (%s)",
			 strerror(-ret));
	complete_lost_reads(s);
}

/* ---- Configuration space: any length, in accesses of 4 bytes at most ---- */

static int access_config(struct urdma_vfio_user_server *s, uint64_t offset, uint8_t *buf,
			 size_t len, bool write)
{
	while (len) {
		size_t step = offset % 4 == 0 && len >= 4 ? 4 : offset % 2 == 0 && len >= 2 ? 2 : 1;
		int ret;

		if (write)
			ret = urdma_pcie_config_write(s->pcie, (unsigned int)offset, buf, step);
		else
			ret = urdma_pcie_config_read(s->pcie, (unsigned int)offset, buf, step);
		if (ret)
			return refuse(s, ret, "configuration access at 0x%" PRIx64 " failed",
				      offset);
		offset += step;
		buf += step;
		len -= step;
	}
	return 0;
}

/* ---- Commands ---- */

/* The payload of the current message. */
static const void *payload(const struct urdma_vfio_user_server *s)
{
	return s->input.bytes + sizeof(struct vu_header);
}

static size_t payload_len(const struct urdma_vfio_user_server *s)
{
	return s->input.header.size - sizeof(struct vu_header);
}

/* A limit of the client: a non-negative integer, if present. */
static bool limit_is_valid(const json_t *caps, const char *name)
{
	const json_t *value = json_object_get(caps, name);

	return !value || (json_is_integer(value) && json_integer_value(value) >= 0);
}

/*
 * Replies with those of the client's capabilities that have a limit here. QEMU receives into the
 * buffer of its request, so text that would not fit there is omitted.
 */
static size_t make_capabilities(struct urdma_vfio_user_server *s, const json_t *caps, char *text,
				size_t room)
{
	static const struct {
		const char *name;
		unsigned int value;
	} limits[] = {
		{ "max_msg_fds", MAX_FDS },
		{ "max_data_xfer_size", MAX_TRANSFER },
		{ "max_dma_maps", VU_DMA_MAX_MAPS },
		{ "pgsizes", VU_DMA_PAGE },
	};
	char list[256] = "";
	size_t n = 0;
	int len;

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (json_object_get(caps, limits[i].name))
			n += (size_t)snprintf(list + n, sizeof(list) - n, "%s\"%s\":%u",
					      n ? "," : "", limits[i].name, limits[i].value);
	s->write_multiple = json_is_true(json_object_get(caps, "write_multiple"));
	if (s->write_multiple)
		snprintf(list + n, sizeof(list) - n, "%s\"write_multiple\":true", n ? "," : "");

	len = snprintf(text, room, "{\"capabilities\":{%s}}", list);
	if (len >= 0 && (size_t)len < room)
		return (size_t)len + 1;
	s->write_multiple = false;
	len = snprintf(text, room, "{}");
	return len >= 0 && (size_t)len < room ? (size_t)len + 1 : 0;
}

static int do_version(struct urdma_vfio_user_server *s)
{
	const char *text = (const char *)payload(s) + sizeof(struct vu_version);
	struct {
		struct vu_version version;
		char text[512];
	} answer = { .version = { VU_VERSION_MAJOR, VU_VERSION_MINOR } };
	struct vu_version version;
	json_t *root = NULL, *caps;
	json_error_t json_error;
	size_t text_len, room;
	int ret = 0;

	if (s->negotiated)
		return refuse(s, -EINVAL, "version has been negotiated before");
	if (payload_len(s) < sizeof(version))
		return refuse(s, -EINVAL, "payload of %zu bytes", payload_len(s));
	memcpy(&version, payload(s), sizeof(version));
	if (version.major != VU_VERSION_MAJOR) {
		s->draining = true;
		return refuse(s, -EOPNOTSUPP, "major version %u", version.major);
	}

	text_len = payload_len(s) - sizeof(version);
	if (text_len) {
		if (text[text_len - 1] != '\0')
			return refuse(s, -EINVAL, "JSON text does not end with NUL");
		root = json_loadb(text, text_len - 1, JSON_REJECT_DUPLICATES, &json_error);
		if (!root)
			return refuse(s, -EINVAL, "bad JSON: %s", json_error.text);
	}
	caps = json_object_get(root, "capabilities");
	if (root && !json_is_object(root))
		ret = refuse(s, -EINVAL, "JSON is not an object");
	else if (caps && !json_is_object(caps))
		ret = refuse(s, -EINVAL, "capabilities are not an object");
	else if (!limit_is_valid(caps, "max_msg_fds") ||
		 !limit_is_valid(caps, "max_data_xfer_size") ||
		 !limit_is_valid(caps, "max_dma_maps") || !limit_is_valid(caps, "pgsizes"))
		ret = refuse(s, -EINVAL, "a limit is not a number");
	else if (json_object_get(caps, "write_multiple") &&
		 !json_is_boolean(json_object_get(caps, "write_multiple")))
		ret = refuse(s, -EINVAL, "write_multiple is not a boolean");
	if (!ret) {
		room = text_len < sizeof(answer.text) ? text_len : sizeof(answer.text);
		text_len = make_capabilities(s, caps, answer.text, room);
	}
	json_decref(root);
	if (ret)
		return ret;

	ret = urdma_pcie_attach(s->pcie, &host_ops, s);
	if (ret)
		return refuse(s, ret, "function cannot be attached");
	s->negotiated = true;
	log_line(s, URDMA_VFIO_USER_INFO, "client speaks version %u.%u", version.major,
		 version.minor);
	reply(s, &answer, sizeof(answer.version) + text_len);
	return 0;
}

static int do_dma_map(struct urdma_vfio_user_server *s)
{
	const char *why = "";
	struct vu_dma_map m;
	int ret;

	if (payload_len(s) != sizeof(m))
		return refuse(s, -EINVAL, "payload of %zu bytes", payload_len(s));
	memcpy(&m, payload(s), sizeof(m));
	if (m.argsz < sizeof(m))
		return refuse(s, -EINVAL, "argsz %u", m.argsz);
	if (m.flags & ~(VU_DMA_MAP_READ | VU_DMA_MAP_WRITE))
		return refuse(s, -EINVAL, "flags 0x%x", m.flags);
	if (s->num_fds > 1)
		return refuse(s, -EINVAL, "%u descriptors", s->num_fds);

	ret = vu_dma_map(&s->dma, m.address, m.size, s->num_fds ? take_fd(s, 0) : -1, m.offset,
			 m.flags & VU_DMA_MAP_READ, m.flags & VU_DMA_MAP_WRITE, &why);
	if (ret)
		return refuse(s, ret,
			      "0x%" PRIx64 " bytes at 0x%" PRIx64 ", file offset 0x%" PRIx64 ": %s",
			      m.size, m.address, m.offset, why);
	reply(s, NULL, 0);
	return 0;
}

static int do_dma_unmap(struct urdma_vfio_user_server *s)
{
	const char *why = "";
	struct vu_dma_unmap m;
	int ret;

	if (payload_len(s) != sizeof(m))
		return refuse(s, -EINVAL, "payload of %zu bytes", payload_len(s));
	memcpy(&m, payload(s), sizeof(m));
	if (m.argsz < sizeof(m))
		return refuse(s, -EINVAL, "argsz %u", m.argsz);
	if (m.flags & VU_DMA_UNMAP_GET_DIRTY)
		return refuse(s, -EOPNOTSUPP, "dirty pages are not tracked");
	if (m.flags & ~VU_DMA_UNMAP_ALL)
		return refuse(s, -EINVAL, "flags 0x%x", m.flags);

	if (m.flags & VU_DMA_UNMAP_ALL) {
		if (m.address || m.size)
			return refuse(s, -EINVAL, "unmapping all takes no range");
		vu_dma_clear(&s->dma);
	} else {
		ret = vu_dma_unmap(&s->dma, m.address, m.size, &why);
		if (ret)
			return refuse(s, ret, "0x%" PRIx64 " bytes at 0x%" PRIx64 ": %s", m.size,
				      m.address, why);
	}
	reply(s, &m, sizeof(m));
	return 0;
}

static int do_get_info(struct urdma_vfio_user_server *s)
{
	struct vu_device_info m;

	if (payload_len(s) != sizeof(m))
		return refuse(s, -EINVAL, "payload of %zu bytes", payload_len(s));
	memcpy(&m, payload(s), sizeof(m));
	if (m.argsz < sizeof(m))
		return refuse(s, -EINVAL, "argsz %u", m.argsz);
	if (m.flags || m.num_regions || m.num_irqs)
		return refuse(s, -EINVAL, "a field that must be 0 is not");
	m.argsz = sizeof(m);
	m.flags = VU_DEVICE_FLAG_RESET | VU_DEVICE_FLAG_PCI;
	m.num_regions = VU_REGION_COUNT;
	m.num_irqs = VU_IRQ_COUNT;
	reply(s, &m, sizeof(m));
	return 0;
}

static uint64_t region_size(uint32_t index)
{
	if (index <= VU_REGION_BAR5)
		return urdma_pcie_bar_size(index);
	return index == VU_REGION_CONFIG ? URDMA_CONFIG_SPACE_SIZE : 0;
}

static int do_get_region_info(struct urdma_vfio_user_server *s)
{
	struct vu_region_info m;

	if (payload_len(s) != sizeof(m))
		return refuse(s, -EINVAL, "payload of %zu bytes", payload_len(s));
	memcpy(&m, payload(s), sizeof(m));
	if (m.argsz < sizeof(m))
		return refuse(s, -EINVAL, "argsz %u", m.argsz);
	if (m.index >= VU_REGION_COUNT)
		return refuse(s, -EINVAL, "region %u", m.index);
	if (m.flags || m.cap_offset || m.size || m.offset)
		return refuse(s, -EINVAL, "a field that must be 0 is not");
	m.argsz = sizeof(m);
	m.size = region_size(m.index);
	/* No region can be mapped, so the client sends its writes as messages. */
	m.flags = m.size ? VU_REGION_FLAG_READ | VU_REGION_FLAG_WRITE : 0;
	reply(s, &m, sizeof(m));
	return 0;
}

static int do_get_irq_info(struct urdma_vfio_user_server *s)
{
	struct vu_irq_info m;

	if (payload_len(s) != sizeof(m))
		return refuse(s, -EINVAL, "payload of %zu bytes", payload_len(s));
	memcpy(&m, payload(s), sizeof(m));
	if (m.argsz < sizeof(m))
		return refuse(s, -EINVAL, "argsz %u", m.argsz);
	if (m.index >= VU_IRQ_COUNT)
		return refuse(s, -EINVAL, "interrupt index %u", m.index);
	if (m.flags || m.count)
		return refuse(s, -EINVAL, "a field that must be 0 is not");
	m.argsz = sizeof(m);
	m.count = irq_count(m.index);
	m.flags = m.count ? VU_IRQ_FLAG_EVENTFD : 0;
	if (m.index == VU_IRQ_ERR || m.index == VU_IRQ_REQ)
		m.flags |= VU_IRQ_FLAG_NORESIZE;
	reply(s, &m, sizeof(m));
	return 0;
}

static int set_irq_eventfds(struct urdma_vfio_user_server *s, const struct vu_irq_set *m)
{
	if (s->num_fds && s->num_fds != m->count)
		return refuse(s, -EINVAL, "%u descriptors for %u interrupts", s->num_fds, m->count);
	for (unsigned int i = 0; i < s->num_fds; i++) {
		int flags;

		if (!is_eventfd(s->fds[i]))
			return refuse(s, -EINVAL, "descriptor %u is not an eventfd", i);
		flags = fcntl(s->fds[i], F_GETFL);
		if (flags < 0 || fcntl(s->fds[i], F_SETFL, flags | O_NONBLOCK))
			return refuse(s, -EINVAL, "descriptor %u cannot be made non-blocking", i);
	}
	for (uint32_t i = 0; i < m->count; i++) {
		uint32_t number = m->start + i;

		replace_fd(irq_slot(s, m->index, number), s->num_fds ? take_fd(s, i) : -1);
	}
	urdma_pcie_msix_ready(s->pcie);
	return 0;
}

static int do_set_irqs(struct urdma_vfio_user_server *s)
{
	const uint8_t *bools = (const uint8_t *)payload(s) + sizeof(struct vu_irq_set);
	uint32_t data, action, available;
	struct vu_irq_set m;
	size_t want;
	int ret = 0;

	if (payload_len(s) < sizeof(m))
		return refuse(s, -EINVAL, "payload of %zu bytes", payload_len(s));
	memcpy(&m, payload(s), sizeof(m));
	if (m.index >= VU_IRQ_COUNT)
		return refuse(s, -EINVAL, "interrupt index %u", m.index);
	data = m.flags & VU_IRQ_SET_DATA_FLAGS;
	action = m.flags & VU_IRQ_SET_ACTION_FLAGS;
	if (m.flags & ~(VU_IRQ_SET_DATA_FLAGS | VU_IRQ_SET_ACTION_FLAGS) ||
	    __builtin_popcount(data) != 1 || __builtin_popcount(action) != 1)
		return refuse(s, -EINVAL, "flags 0x%x", m.flags);
	available = irq_count(m.index);
	if (m.start > available || m.count > available - m.start)
		return refuse(s, -EINVAL, "interrupts %u and %u on, of %u", m.start, m.count,
			      available);
	want = sizeof(m) + (data == VU_IRQ_SET_DATA_BOOL ? m.count : 0);
	if (payload_len(s) != want || m.argsz < want)
		return refuse(s, -EINVAL, "payload of %zu bytes, argsz %u, not %zu", payload_len(s),
			      m.argsz, want);
	if (data != VU_IRQ_SET_DATA_EVENTFD && s->num_fds)
		return refuse(s, -EINVAL, "%u descriptors without DATA_EVENTFD", s->num_fds);
	if (!m.count &&
	    (data != VU_IRQ_SET_DATA_NONE || action != VU_IRQ_SET_ACTION_TRIGGER || m.start))
		return refuse(s, -EINVAL, "count is 0");

	if (!m.count)
		clear_irqs(s, m.index);
	else if (action != VU_IRQ_SET_ACTION_TRIGGER)
		ret = refuse(s, -EOPNOTSUPP, "interrupts are not maskable this way");
	else if (data == VU_IRQ_SET_DATA_EVENTFD)
		ret = set_irq_eventfds(s, &m);
	else
		for (uint32_t i = 0; i < m.count; i++)
			if (data == VU_IRQ_SET_DATA_NONE || bools[i])
				trigger_irq(s, m.index, m.start + i);
	if (ret)
		return ret;
	reply(s, NULL, 0);
	return 0;
}

static int check_access(struct urdma_vfio_user_server *s, const struct vu_region_access *a,
			bool write)
{
	uint64_t size = a->region < VU_REGION_COUNT ? region_size(a->region) : 0;
	uint32_t limit = MAX_TRANSFER;

	if (a->region >= VU_REGION_COUNT)
		return refuse(s, -EINVAL, "region %u", a->region);
	/* BARs: one access is one TLP of a CPU, within one 64-byte line. */
	if (a->region <= VU_REGION_BAR5)
		limit = write && a->region == 2 ? 64 : 8;
	if (!a->count || a->count > limit || a->count > size || a->offset > size - a->count ||
	    (limit <= 64 && a->offset % 64 + a->count > 64))
		return refuse(s, -EINVAL,
			      "%u bytes at 0x%" PRIx64 " of region %u, which has 0x%" PRIx64,
			      a->count, a->offset, a->region, size);
	return 0;
}

static int do_region_read(struct urdma_vfio_user_server *s)
{
	struct server_read *read;
	struct vu_region_access a;
	int ret;

	if (payload_len(s) != sizeof(a))
		return refuse(s, -EINVAL, "payload of %zu bytes", payload_len(s));
	memcpy(&a, payload(s), sizeof(a));
	ret = check_access(s, &a, false);
	if (ret)
		return ret;

	if (a.region == VU_REGION_CONFIG) {
		uint8_t data[MAX_TRANSFER];

		ret = access_config(s, a.offset, data, a.count, false);
		if (!ret && !(s->input.header.flags & VU_FLAG_NO_REPLY))
			queue_reply(s, &s->input.header, 0, &a, sizeof(a), data, a.count);
		return ret;
	}

	if (s->num_reads >= MAX_READS)
		return TRY_AGAIN;
	read = calloc(1, sizeof(*read));
	if (!read)
		return refuse(s, -ENOMEM, "out of memory");
	read->server = s;
	read->header = s->input.header;
	read->access = a;
	/* Add it to the list before the call, because the function may answer within the call. */
	read->next = s->reads;
	s->reads = read;
	s->num_reads++;
	ret = urdma_pcie_mmio_read(s->pcie, a.region, a.offset, a.count, read_done, read);
	if (ret) {
		unlink_read(s, read);
		free(read);
		if (ret == -EAGAIN)
			return TRY_AGAIN;
		return refuse(s, ret, "register read at BAR%u + 0x%" PRIx64, a.region, a.offset);
	}
	s->stats.mmio_reads++;
	return REPLY_LATER;
}

/* Does one checked write. May return TRY_AGAIN with nothing done. */
static int write_region(struct urdma_vfio_user_server *s, const struct vu_region_access *a,
			const uint8_t *data)
{
	uint8_t copy[MAX_TRANSFER];
	int ret;

	if (a->region == VU_REGION_CONFIG) {
		memcpy(copy, data, a->count);
		return access_config(s, a->offset, copy, a->count, true);
	}
	ret = urdma_pcie_mmio_write(s->pcie, a->region, a->offset, data, a->count);
	if (ret == -EAGAIN)
		return TRY_AGAIN;
	if (ret)
		return refuse(s, ret, "register write at BAR%u + 0x%" PRIx64, a->region, a->offset);
	s->stats.mmio_writes++;
	return 0;
}

static int do_region_write(struct urdma_vfio_user_server *s)
{
	const uint8_t *data = (const uint8_t *)payload(s) + sizeof(struct vu_region_access);
	struct vu_region_access a;
	int ret;

	if (payload_len(s) < sizeof(a))
		return refuse(s, -EINVAL, "payload of %zu bytes", payload_len(s));
	memcpy(&a, payload(s), sizeof(a));
	ret = check_access(s, &a, true);
	if (ret)
		return ret;
	if (payload_len(s) != sizeof(a) + a.count)
		return refuse(s, -EINVAL, "payload of %zu bytes for %u of data", payload_len(s),
			      a.count);
	ret = write_region(s, &a, data);
	if (ret)
		return ret;
	reply(s, &a, sizeof(a));
	return 0;
}

static int do_write_multi(struct urdma_vfio_user_server *s)
{
	const uint8_t *entries = (const uint8_t *)payload(s) + sizeof(struct vu_write_multi);
	struct vu_write_multi m;
	struct vu_write_one one;
	int ret;

	if (!s->write_multiple)
		return refuse(s, -EOPNOTSUPP, "write_multiple was not negotiated");
	if (payload_len(s) < sizeof(m))
		return refuse(s, -EINVAL, "payload of %zu bytes", payload_len(s));
	memcpy(&m, payload(s), sizeof(m));
	if (m.count > MAX_MESSAGE / sizeof(one) ||
	    payload_len(s) != sizeof(m) + m.count * sizeof(one))
		return refuse(s, -EINVAL, "payload of %zu bytes for %" PRIu64 " writes",
			      payload_len(s), m.count);
	/* Check all writes before the first is done. */
	for (uint64_t i = 0; i < m.count && !s->multi_done; i++) {
		struct vu_region_access a;

		memcpy(&one, entries + i * sizeof(one), sizeof(one));
		a = (struct vu_region_access){ one.offset, one.region, one.count };
		ret = one.count <= sizeof(one.data) ? check_access(s, &a, true) : -EINVAL;
		if (one.count > sizeof(one.data))
			return refuse(s, -EINVAL, "write %" PRIu64 " has %u bytes", i, one.count);
		if (ret)
			return ret;
	}
	for (; s->multi_done < m.count; s->multi_done++) {
		struct vu_region_access a;

		memcpy(&one, entries + s->multi_done * sizeof(one), sizeof(one));
		a = (struct vu_region_access){ one.offset, one.region, one.count };
		ret = write_region(s, &a, one.data);
		if (ret)
			return ret;
	}
	reply(s, &m, sizeof(m));
	return 0;
}

static int do_reset(struct urdma_vfio_user_server *s)
{
	if (payload_len(s))
		return refuse(s, -EINVAL, "payload of %zu bytes", payload_len(s));
	log_line(s, URDMA_VFIO_USER_INFO, "client resets the function");
	reset_function(s);
	reply(s, NULL, 0);
	return 0;
}

static int do_feature(struct urdma_vfio_user_server *s)
{
	struct vu_device_feature m;

	if (payload_len(s) < sizeof(m))
		return refuse(s, -EINVAL, "payload of %zu bytes", payload_len(s));
	memcpy(&m, payload(s), sizeof(m));
	/* The same as the kernel's VFIO for an unsupported feature. */
	return refuse(s, -ENOTTY, "feature 0x%x", m.flags);
}

/* ---- Messages ---- */

static int execute(struct urdma_vfio_user_server *s)
{
	const struct vu_header *h = &s->input.header;

	if (h->flags & ~(VU_FLAG_TYPE_MASK | VU_FLAG_NO_REPLY) ||
	    (h->flags & VU_FLAG_TYPE_MASK) != VU_FLAG_COMMAND)
		return refuse(s, -EINVAL, "message flags 0x%x", h->flags);
	if (s->too_many_fds)
		return refuse(s, -EINVAL, "more than %u descriptors", MAX_FDS);
	if (s->foreign_fd)
		return refuse(s, -EINVAL, "a descriptor is neither a file nor an eventfd");
	if (s->num_fds && h->command != VU_DMA_MAP && h->command != VU_DEVICE_SET_IRQS)
		return refuse(s, -EINVAL, "%u descriptors with a message that takes none",
			      s->num_fds);
	if (!s->negotiated && h->command != VU_VERSION)
		return refuse(s, -EPROTO, "version has not been negotiated");

	switch (h->command) {
	case VU_VERSION:
		return do_version(s);
	case VU_DMA_MAP:
		return do_dma_map(s);
	case VU_DMA_UNMAP:
		return do_dma_unmap(s);
	case VU_DEVICE_GET_INFO:
		return do_get_info(s);
	case VU_DEVICE_GET_REGION_INFO:
		return do_get_region_info(s);
	case VU_DEVICE_GET_IRQ_INFO:
		return do_get_irq_info(s);
	case VU_DEVICE_SET_IRQS:
		return do_set_irqs(s);
	case VU_REGION_READ:
		return do_region_read(s);
	case VU_REGION_WRITE:
		return do_region_write(s);
	case VU_REGION_WRITE_MULTI:
		return do_write_multi(s);
	case VU_DEVICE_RESET:
		return do_reset(s);
	case VU_DEVICE_FEATURE:
		return do_feature(s);
	case VU_DMA_READ:
	case VU_DMA_WRITE:
		return refuse(s, -EINVAL, "only a server sends it");
	case VU_DEVICE_GET_REGION_IO_FDS:
	case VU_DIRTY_PAGES:
	case VU_MIG_DATA_READ:
	case VU_MIG_DATA_WRITE:
		return refuse(s, -EOPNOTSUPP, "not supported");
	default:
		return refuse(s, -ENOSYS, "command %u", h->command);
	}
}

/* Executes the complete message in input. Returns false if it must wait for the function. */
static bool handle_message(struct urdma_vfio_user_server *s)
{
	const struct vu_header *h = &s->input.header;
	int ret;

	if (!s->stalled)
		log_line(s, URDMA_VFIO_USER_DEBUG, "%s id %u, %u bytes, flags 0x%x, %u fds",
			 command_name(h->command), h->id, h->size, h->flags, s->num_fds);

	/*
	 * The server sends no commands, so no reply is due. Answering one could cause an endless
	 * loop.
	 */
	if ((h->flags & VU_FLAG_TYPE_MASK) == VU_FLAG_REPLY) {
		log_line(s, URDMA_VFIO_USER_ERROR, "reply to nothing, id %u, dropped", h->id);
		s->stats.errors++;
	} else {
		ret = execute(s);
		if (ret == TRY_AGAIN) {
			s->stalled = true;
			return false;
		}
		if (ret < 0) {
			s->stats.errors++;
			if (!(h->flags & VU_FLAG_NO_REPLY))
				queue_reply(s, h, (uint32_t)-ret, NULL, 0, NULL, 0);
		}
	}
	s->stats.messages++;
	s->stalled = false;
	s->multi_done = 0;
	s->input_len = 0;
	close_fds(s);
	return true;
}

/*
 * Commands take only files and eventfds. Other descriptors are closed even before the message is
 * complete: a client could send its own end of this connection, and then its hang-up would never be
 * seen.
 */
static bool is_acceptable(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || is_eventfd(fd));
}

static void collect_fds(struct urdma_vfio_user_server *s, struct msghdr *msg)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (!is_acceptable(fd)) {
				close(fd);
				s->foreign_fd = true;
			} else if (s->num_fds < MAX_FDS) {
				s->fds[s->num_fds++] = fd;
			} else {
				close(fd);
				s->too_many_fds = true;
			}
		}
	}
	if (msg->msg_flags & MSG_CTRUNC)
		break_connection(s, "descriptors were lost, this process has too many open");
}

/*
 * Receives until there are want bytes in total. Descriptors come with the first byte of the data
 * they were sent with, and this never reads beyond the message, so they belong to it. Returns true
 * when all bytes are there.
 */
static bool receive(struct urdma_vfio_user_server *s, size_t want)
{
	/* The kernel never passes more than 253 descriptors at once (SCM_MAX_FD). */
	union {
		char bytes[CMSG_SPACE(253 * sizeof(int))];
		struct cmsghdr align;
	} control;

	while (s->input_len < want) {
		struct iovec iov = { s->input.bytes + s->input_len, want - s->input_len };
		struct msghdr msg = {
			.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = &control,
			.msg_controllen = sizeof(control),
		};
		ssize_t n = recvmsg(s->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return false;
		if (n <= 0) {
			if (s->input_len)
				log_line(s, URDMA_VFIO_USER_ERROR,
					 "client gone in the middle of a message, %zu bytes of it "
					 "came",
					 s->input_len);
			else
				log_line(s, URDMA_VFIO_USER_INFO, "client gone%s%s", n ? ": " : "",
					 n ? strerror(errno) : "");
			s->broken = true;
			return false;
		}
		collect_fds(s, &msg);
		if (s->broken)
			return false;
		s->input_len += (size_t)n;
	}
	return true;
}

/* Receives the rest of a message. True when it is complete. */
static bool receive_message(struct urdma_vfio_user_server *s)
{
	const struct vu_header *h = &s->input.header;

	if (!receive(s, sizeof(*h)))
		return false;
	if (h->size < sizeof(*h) || h->size > MAX_MESSAGE) {
		/* The start of the next message is unknown or too far away. */
		log_line(s, URDMA_VFIO_USER_ERROR, "%s refused: message of %u bytes",
			 command_name(h->command), h->size);
		s->stats.errors++;
		s->stats.disconnects++;
		queue_reply(s, h, h->size < sizeof(*h) ? EINVAL : EMSGSIZE, NULL, 0, NULL, 0);
		s->draining = true;
		return false;
	}
	return receive(s, h->size);
}

/* ---- Clients ---- */

static void drop_client(struct urdma_vfio_user_server *s)
{
	int ret;

	/* From here on no reply is queued, because no client waits for one. */
	s->broken = true;
	if (s->negotiated) {
		ret = urdma_pcie_attach(s->pcie, NULL, NULL);
		if (ret)
			log_line(s, URDMA_VFIO_USER_ERROR, "function cannot be detached (%s)",
				 strerror(-ret));
		complete_lost_reads(s);
	}
	close_fds(s);
	for (unsigned int i = 0; i < VU_IRQ_COUNT; i++)
		clear_irqs(s, i);
	vu_dma_clear(&s->dma);
	close(s->fd);
	s->fd = -1;
	s->negotiated = false;
	s->write_multiple = false;
	s->draining = false;
	s->stalled = false;
	s->multi_done = 0;
	s->input_len = 0;
	s->output_len = 0;
	s->output_sent = 0;
	s->broken = false;
}

static void accept_client(struct urdma_vfio_user_server *s)
{
	int fd = urdma_socket_accept(s->listen.fd);

	if (fd < 0) {
		if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR &&
		    errno != ECONNABORTED)
			log_line(s, URDMA_VFIO_USER_ERROR, "accept failed (%s)", strerror(errno));
		return;
	}
	s->fd = fd;
	s->logs = 0;
	s->stats.clients++;
	log_line(s, URDMA_VFIO_USER_INFO, "client connected");
}

static bool may_receive(const struct urdma_vfio_user_server *s)
{
	return !s->broken && !s->draining;
}

/* The end of the stream is normally seen by receiving; check for it while nothing is received. */
static void check_hangup(struct urdma_vfio_user_server *s)
{
	struct pollfd p = { .fd = s->fd };

	if (!s->broken && poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR))) {
		log_line(s, URDMA_VFIO_USER_INFO, "client gone");
		s->broken = true;
	}
}

unsigned int urdma_vfio_user_process(struct urdma_vfio_user_server *s)
{
	unsigned int handled = 0;

	if (s->fd < 0) {
		accept_client(s);
		if (s->fd < 0)
			return 0;
	}

	flush_output(s);
	while (handled < MESSAGES_PER_CALL && may_receive(s)) {
		if (!s->stalled && !receive_message(s))
			break;
		if (!handle_message(s))
			break;
		handled++;
	}
	flush_output(s);
	if (s->stalled)
		check_hangup(s);
	if (s->broken || s->draining)
		drop_client(s);
	return handled;
}

unsigned int urdma_vfio_user_pollfds(const struct urdma_vfio_user_server *s,
				     struct pollfd fds[URDMA_VFIO_USER_MAX_POLLFDS])
{
	short events = POLLIN;

	if (s->fd >= 0) {
		events = 0;
		if (!s->stalled)
			events |= POLLIN;
		/* Retry a stalled message at once: the function may have room by now. */
		if (s->output_len || s->stalled)
			events |= POLLOUT;
	}
	fds[0] = (struct pollfd){ .fd = s->fd >= 0 ? s->fd : s->listen.fd, .events = events };
	return 1;
}

bool urdma_vfio_user_connected(const struct urdma_vfio_user_server *s)
{
	return s->negotiated;
}

const struct urdma_vfio_user_stats *urdma_vfio_user_stats(const struct urdma_vfio_user_server *s)
{
	return &s->stats;
}

int urdma_vfio_user_create(const struct urdma_vfio_user_config *config,
			   struct urdma_vfio_user_server **server)
{
	struct urdma_vfio_user_server *s;
	int ret = -ENOMEM;

	*server = NULL;
	if (!config->pcie || !config->path || !config->path[0])
		return -EINVAL;
	if (strlen(config->path) >= sizeof(s->listen.address.sun_path))
		return -ENAMETOOLONG;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->pcie = config->pcie;
	s->log = config->log;
	s->log_ctx = config->log_ctx;
	s->log_debug = config->log_debug;
	s->listen.fd = -1;
	s->fd = -1;
	s->err_fd = -1;
	s->req_fd = -1;
	for (unsigned int i = 0; i < URDMA_PCIE_MSIX_COUNT; i++)
		s->msix_fd[i] = -1;
	vu_dma_init(&s->dma);
	s->output = malloc(OUTPUT_HIGH);
	if (s->output)
		ret = urdma_socket_open(&s->listen, SOCK_STREAM, config->path);
	if (ret) {
		urdma_vfio_user_destroy(s);
		return ret;
	}
	*server = s;
	return 0;
}

void urdma_vfio_user_destroy(struct urdma_vfio_user_server *s)
{
	if (!s)
		return;
	if (s->fd >= 0)
		drop_client(s);
	urdma_socket_close(&s->listen);
	free(s->output);
	free(s);
}
