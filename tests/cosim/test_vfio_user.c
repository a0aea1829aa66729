// SPDX-License-Identifier: Apache-2.0
/*
 * The vfio-user server with a client that knows the protocol and breaks it: each command good and
 * bad, framing, descriptors, disappearing peers, floods, and a mutation fuzzer. The server serves
 * the fake function of vfio_fake_pcie.h, which asserts that nothing invalid reaches it.
 *
 * A failure means that a guest would misbehave, or that a hostile peer could hurt the process. For
 * each refusal the test checks the errno, the single line in the log, and that the server goes on.
 * Each test ends with a count of the open descriptors.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include <jansson.h>

#include "host/vfio_user.h"
#include "host/vfio_user_proto.h"
#include "socket.h"
#include "vfio_fake_pcie.h"
#include "seed.h"

#define MAX_MESSAGE 8192u
#define MAX_FDS	    16u
#define PAGE	    4096u

static const char qemu_json[] =
	"{\"capabilities\":{\"migration\":{\"pgsize\":4096,\"max_bitmap_size\":268435456},"
	"\"max_msg_fds\":16,\"max_data_xfer_size\":1048576,\"pgsizes\":4096,"
	"\"max_dma_maps\":65535,\"write_multiple\":true}}";

struct fixture {
	char dir[64];
	char path[96];
	struct urdma_pcie *pcie;
	struct urdma_vfio_user_server *server;
	int fd; /* the client's end */
	uint16_t next_id;
	unsigned int error_lines;
	unsigned int limit_lines;
	char last_error[600];
	unsigned int fds_before;
};

static unsigned int open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void log_fn(void *ctx, enum urdma_vfio_user_level level, const char *line)
{
	struct fixture *f = ctx;

	assert_null(strchr(line, '\n'));
	if (level == URDMA_VFIO_USER_ERROR) {
		f->error_lines++;
		snprintf(f->last_error, sizeof(f->last_error), "%s", line);
		if (strstr(line, "not shown"))
			f->limit_lines++;
	}
}

static void pump(struct fixture *f)
{
	for (unsigned int idle = 0; idle < 3;)
		idle = urdma_vfio_user_process(f->server) ? 0 : idle + 1;
}

/* ---- The client ---- */

static int try_connect(struct fixture *f)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	strcpy(a.sun_path, f->path);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a))) {
		close(fd);
		return -1;
	}
	return fd;
}

static void client_open(struct fixture *f)
{
	f->fd = try_connect(f);
	assert_true(f->fd >= 0);
	pump(f);
}

static void client_close(struct fixture *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
	pump(f);
	pump(f);
	assert_false(urdma_vfio_user_connected(f->server));
}

static ssize_t send_raw(struct fixture *f, const void *buf, size_t len, const int *fds, size_t nfds)
{
	union {
		char bytes[CMSG_SPACE(64 * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { (void *)buf, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (nfds) {
		struct cmsghdr *c = &control.align;

		assert_true(nfds <= 64);
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
	}
	return sendmsg(f->fd, &msg, MSG_NOSIGNAL);
}

static size_t make(struct fixture *f, uint8_t *buf, unsigned int command, uint32_t flags,
		   const void *payload, size_t len)
{
	struct vu_header h = { .id = ++f->next_id,
			       .command = (uint16_t)command,
			       .size = (uint32_t)(sizeof(h) + len),
			       .flags = flags };

	assert_true(sizeof(h) + len <= MAX_MESSAGE);
	memcpy(buf, &h, sizeof(h));
	if (len)
		memcpy(buf + sizeof(h), payload, len);
	return sizeof(h) + len;
}

static uint16_t post(struct fixture *f, unsigned int command, uint32_t flags, const void *payload,
		     size_t len, const int *fds, size_t nfds)
{
	uint8_t buf[MAX_MESSAGE];
	size_t n = make(f, buf, command, flags, payload, len);

	assert_int_equal(send_raw(f, buf, n, fds, nfds), n);
	return f->next_id;
}

/* Receives one reply: the header in one read, as QEMU does. Returns false if there is none. */
static bool get_reply(struct fixture *f, struct vu_header *h, void *payload, size_t *len)
{
	ssize_t n = recv(f->fd, h, sizeof(*h), MSG_DONTWAIT);

	if (n <= 0)
		return false;
	assert_int_equal(n, sizeof(*h));
	assert_int_equal(h->flags & ~VU_FLAG_ERROR, VU_FLAG_REPLY);
	assert_true(h->size >= sizeof(*h) && h->size <= MAX_MESSAGE);
	*len = h->size - sizeof(*h);
	if (*len)
		assert_int_equal(recv(f->fd, payload, *len, MSG_DONTWAIT), *len);
	if (h->flags & VU_FLAG_ERROR) {
		assert_int_equal(*len, 0);
		assert_true(h->error > 0);
	} else {
		assert_int_equal(h->error, 0);
	}
	return true;
}

static void expect_silence(struct fixture *f)
{
	char c;

	pump(f);
	assert_int_equal(recv(f->fd, &c, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
}

static void expect_closed(struct fixture *f)
{
	char c;
	ssize_t n;

	pump(f);
	n = recv(f->fd, &c, 1, MSG_DONTWAIT);
	assert_true(n == 0 || (n < 0 && errno == ECONNRESET));
	client_close(f);
}

/* One command and its reply. Returns the errno of the reply, 0 for success. */
static int call_fds(struct fixture *f, unsigned int command, const void *payload, size_t len,
		    const int *fds, size_t nfds, void *answer, size_t *answer_len)
{
	uint8_t scratch[MAX_MESSAGE];
	uint16_t id = post(f, command, 0, payload, len, fds, nfds);
	struct vu_header h;
	size_t n = 0;

	pump(f);
	if (!get_reply(f, &h, scratch, &n))
		fail_msg("no reply to command %u; last error: %s", command, f->last_error);
	assert_int_equal(h.id, id);
	assert_int_equal(h.command, command);
	if (answer)
		memcpy(answer, scratch, n);
	if (answer_len)
		*answer_len = n;
	return (int)h.error;
}

static int call(struct fixture *f, unsigned int command, const void *payload, size_t len,
		void *answer, size_t *answer_len)
{
	return call_fds(f, command, payload, len, NULL, 0, answer, answer_len);
}

static void assert_alive(struct fixture *f)
{
	struct vu_device_info m = { .argsz = sizeof(m) };

	assert_int_equal(call(f, VU_DEVICE_GET_INFO, &m, sizeof(m), &m, NULL), 0);
	assert_int_equal(m.num_regions, 9);
}

/* A refusal: this errno, exactly one line in the log, and the server goes on. */
static void refused_fds(struct fixture *f, int error, unsigned int command, const void *payload,
			size_t len, const int *fds, size_t nfds)
{
	unsigned int lines = f->error_lines;
	int got = call_fds(f, command, payload, len, fds, nfds, NULL, NULL);

	if (got != error)
		fail_msg("command %u: errno %d, not %d; last error: %s", command, got, error,
			 f->last_error);
	assert_int_equal(f->error_lines, lines + 1);
	if (urdma_vfio_user_connected(f->server))
		assert_alive(f);
}

static void refused(struct fixture *f, int error, unsigned int command, const void *payload,
		    size_t len)
{
	refused_fds(f, error, command, payload, len, NULL, 0);
}

static int send_version(struct fixture *f, unsigned int major, unsigned int minor, const char *json,
			size_t json_len, char *answer, size_t *answer_len)
{
	uint8_t m[MAX_MESSAGE];
	struct vu_version v = { (uint16_t)major, (uint16_t)minor };

	memcpy(m, &v, sizeof(v));
	if (json_len)
		memcpy(m + sizeof(v), json, json_len);
	return call(f, VU_VERSION, m, sizeof(v) + json_len, answer, answer_len);
}

static void negotiate(struct fixture *f)
{
	char answer[MAX_MESSAGE];
	size_t len;

	client_open(f);
	assert_int_equal(send_version(f, 0, 0, qemu_json, sizeof(qemu_json), answer, &len), 0);
	assert_true(urdma_vfio_user_connected(f->server));
}

static int setup_idle(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct urdma_vfio_user_config config = { 0 };

	assert_non_null(f);
	f->fds_before = open_fds();
	strcpy(f->dir, "/tmp/test_vfio_user.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/s", f->dir);
	f->fd = -1;
	f->pcie = fake_pcie_create();
	config.path = f->path;
	config.pcie = f->pcie;
	config.log = log_fn;
	config.log_ctx = f;
	config.log_debug = true;
	assert_int_equal(urdma_vfio_user_create(&config, &f->server), 0);
	*state = f;
	return 0;
}

static int setup(void **state)
{
	setup_idle(state);
	negotiate(*state);
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	urdma_vfio_user_destroy(f->server);
	assert_int_equal(f->pcie->attaches, f->pcie->detaches);
	assert_null(f->pcie->ops);
	fake_pcie_destroy(f->pcie);
	if (f->fd >= 0)
		close(f->fd);
	assert_int_equal(access(f->path, F_OK), -1); /* the server removes its socket */
	assert_int_equal(rmdir(f->dir), 0);
	assert_int_equal(open_fds(), f->fds_before);
	free(f);
	return 0;
}

/* ---- Version ---- */

static void test_version(void **state)
{
	struct fixture *f = *state;
	char answer[MAX_MESSAGE];
	struct vu_version v;
	json_t *root, *caps;
	size_t len;

	client_open(f);
	assert_false(urdma_vfio_user_connected(f->server));
	assert_int_equal(send_version(f, 0, 0, qemu_json, sizeof(qemu_json), answer, &len), 0);
	memcpy(&v, answer, sizeof(v));
	assert_int_equal(v.major, 0);
	assert_int_equal(v.minor, 0);
	assert_true(len <= 4 + sizeof(qemu_json));
	assert_int_equal(answer[len - 1], 0);
	root = json_loads(answer + 4, 0, NULL);
	assert_non_null(root);
	caps = json_object_get(root, "capabilities");
	assert_int_equal(json_integer_value(json_object_get(caps, "max_msg_fds")), 16);
	assert_int_equal(json_integer_value(json_object_get(caps, "max_data_xfer_size")), 4096);
	assert_int_equal(json_integer_value(json_object_get(caps, "pgsizes")), 4096);
	assert_true(json_is_true(json_object_get(caps, "write_multiple")));
	assert_null(json_object_get(caps, "migration"));
	json_decref(root);
	assert_int_equal(f->pcie->attaches, 1);
	refused(f, EINVAL, VU_VERSION, answer, len); /* once only */
	client_close(f);
	assert_int_equal(f->pcie->detaches, 1);

	/* A client without JSON gets none; one with a newer minor version gets ours. */
	client_open(f);
	assert_int_equal(send_version(f, 0, 7, NULL, 0, answer, &len), 0);
	assert_int_equal(len, 4);
	memcpy(&v, answer, sizeof(v));
	assert_int_equal(v.minor, 0);
	assert_alive(f);
	client_close(f);

	/* Only proposed capabilities are answered. */
	client_open(f);
	assert_int_equal(send_version(f, 0, 0, "{\"capabilities\":{}}", 20, answer, &len), 0);
	assert_string_equal(answer + 4, "{\"capabilities\":{}}");
	client_close(f);
	client_open(f);
	assert_int_equal(send_version(f, 0, 0, "{}", 3, answer, &len), 0);
	assert_string_equal(answer + 4, "{}");
	client_close(f);
}

static void test_bad_version(void **state)
{
	static const char *const bad[] = {
		"",
		"{",
		"[]",
		"17",
		"{\"capabilities\":3}",
		"{\"capabilities\":[]}",
		"{\"capabilities\":{\"max_msg_fds\":\"16\"}}",
		"{\"capabilities\":{\"max_msg_fds\":-1}}",
		"{\"capabilities\":{\"max_msg_fds\":1.5}}",
		"{\"capabilities\":{\"max_data_xfer_size\":null}}",
		"{\"capabilities\":{\"max_dma_maps\":{}}}",
		"{\"capabilities\":{\"pgsizes\":[]}}",
		"{\"capabilities\":{\"pgsizes\":99999999999999999999999999}}",
		"{\"capabilities\":{\"write_multiple\":1}}",
		"{\"capabilities\":{},\"capabilities\":{}}",
		"{\"capabilities\":{}} x",
		"{\"capabilities\":\"\xff\xfe\"}",
	};
	struct fixture *f = *state;
	char deep[MAX_MESSAGE - 32];
	char answer[MAX_MESSAGE];
	unsigned int lines;
	size_t len;

	client_open(f);
	refused(f, EPROTO, VU_DEVICE_GET_INFO, &(struct vu_device_info){ .argsz = 16 }, 16);
	refused(f, EPROTO, VU_DEVICE_RESET, NULL, 0);
	refused(f, EINVAL, VU_VERSION, "\0\0", 2);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		lines = f->error_lines;
		if (send_version(f, 0, 0, bad[i], strlen(bad[i]) + 1, NULL, NULL) != EINVAL)
			fail_msg("accepted: %s", bad[i]);
		assert_int_equal(f->error_lines, lines + 1);
	}
	assert_int_equal(send_version(f, 0, 0, "{}", 2, NULL, NULL), EINVAL);	  /* no NUL */
	assert_int_equal(send_version(f, 0, 0, "{}\0\0", 4, NULL, NULL), EINVAL); /* two */
	memset(deep, '[', sizeof(deep));
	deep[sizeof(deep) - 1] = '\0';
	assert_int_equal(send_version(f, 0, 0, deep, sizeof(deep), NULL, NULL), EINVAL);
	/* After all this the client may still do it right. */
	assert_int_equal(send_version(f, 0, 0, qemu_json, sizeof(qemu_json), answer, &len), 0);
	assert_alive(f);
	client_close(f);

	client_open(f);
	lines = f->error_lines;
	assert_int_equal(send_version(f, 1, 0, qemu_json, sizeof(qemu_json), NULL, NULL),
			 EOPNOTSUPP);
	assert_int_equal(f->error_lines, lines + 1);
	expect_closed(f);
	negotiate(f);
	assert_alive(f);
}

/* ---- Information ---- */

static void test_info(void **state)
{
	static const uint64_t sizes[9] = { 0x10000, 0, 0x800000, 0, 0x1000, 0, 0, 0x1000, 0 };
	static const uint32_t counts[5] = { 0, 0, 64, 1, 1 };
	struct fixture *f = *state;
	struct vu_device_info d = { .argsz = 100 };
	struct vu_region_info r;
	struct vu_irq_info q;

	assert_int_equal(call(f, VU_DEVICE_GET_INFO, &d, sizeof(d), &d, NULL), 0);
	assert_int_equal(d.argsz, 16);
	assert_int_equal(d.flags, VU_DEVICE_FLAG_RESET | VU_DEVICE_FLAG_PCI);
	assert_int_equal(d.num_regions, 9);
	assert_int_equal(d.num_irqs, 5);
	for (uint32_t i = 0; i < 9; i++) {
		r = (struct vu_region_info){ .argsz = 32, .index = i };
		assert_int_equal(call(f, VU_DEVICE_GET_REGION_INFO, &r, sizeof(r), &r, NULL), 0);
		assert_int_equal(r.index, i);
		assert_int_equal(r.argsz, 32);
		assert_int_equal(r.size, sizes[i]);
		assert_int_equal(r.flags, sizes[i] ? 3 : 0); /* never mappable */
		assert_int_equal(r.cap_offset, 0);
	}
	for (uint32_t i = 0; i < 5; i++) {
		q = (struct vu_irq_info){ .argsz = 16, .index = i };
		assert_int_equal(call(f, VU_DEVICE_GET_IRQ_INFO, &q, sizeof(q), &q, NULL), 0);
		assert_int_equal(q.count, counts[i]);
		assert_int_equal(q.flags & 1, counts[i] ? 1 : 0);
	}
	assert_int_equal(f->error_lines, 0);

	d = (struct vu_device_info){ .argsz = 15 };
	refused(f, EINVAL, VU_DEVICE_GET_INFO, &d, sizeof(d));
	d = (struct vu_device_info){ .argsz = 16, .num_irqs = 1 };
	refused(f, EINVAL, VU_DEVICE_GET_INFO, &d, sizeof(d));
	refused(f, EINVAL, VU_DEVICE_GET_INFO, &d, 4);
	refused(f, EINVAL, VU_DEVICE_GET_INFO, NULL, 0);
	r = (struct vu_region_info){ .argsz = 32, .index = 9 };
	refused(f, EINVAL, VU_DEVICE_GET_REGION_INFO, &r, sizeof(r));
	r.index = UINT32_MAX;
	refused(f, EINVAL, VU_DEVICE_GET_REGION_INFO, &r, sizeof(r));
	r = (struct vu_region_info){ .argsz = 31 };
	refused(f, EINVAL, VU_DEVICE_GET_REGION_INFO, &r, sizeof(r));
	r = (struct vu_region_info){ .argsz = 32, .size = 1 };
	refused(f, EINVAL, VU_DEVICE_GET_REGION_INFO, &r, sizeof(r));
	refused(f, EINVAL, VU_DEVICE_GET_REGION_INFO, &r, sizeof(r) - 1);
	q = (struct vu_irq_info){ .argsz = 16, .index = 5 };
	refused(f, EINVAL, VU_DEVICE_GET_IRQ_INFO, &q, sizeof(q));
	q = (struct vu_irq_info){ .argsz = 16, .flags = 1 };
	refused(f, EINVAL, VU_DEVICE_GET_IRQ_INFO, &q, sizeof(q));
	q = (struct vu_irq_info){ .argsz = 0 };
	refused(f, EINVAL, VU_DEVICE_GET_IRQ_INFO, &q, sizeof(q));
}

static void test_other_commands(void **state)
{
	struct fixture *f = *state;
	uint8_t zeros[64] = { 0 };

	refused(f, ENOTTY, VU_DEVICE_FEATURE, zeros, 8);
	refused(f, EINVAL, VU_DEVICE_FEATURE, zeros, 7);
	refused(f, EOPNOTSUPP, VU_DEVICE_GET_REGION_IO_FDS, zeros, 16);
	refused(f, EOPNOTSUPP, VU_DIRTY_PAGES, zeros, 8);
	refused(f, EOPNOTSUPP, VU_MIG_DATA_READ, zeros, 8);
	refused(f, EOPNOTSUPP, VU_MIG_DATA_WRITE, zeros, 8);
	refused(f, EINVAL, VU_DMA_READ, zeros, 16);
	refused(f, EINVAL, VU_DMA_WRITE, zeros, 16);
	refused(f, ENOSYS, 0, zeros, 8);
	refused(f, ENOSYS, 19, NULL, 0);
	refused(f, ENOSYS, 65535, zeros, 64);
}

/* ---- Regions ---- */

static int region_read(struct fixture *f, uint32_t region, uint64_t offset, uint32_t count,
		       void *data)
{
	struct vu_region_access a = { offset, region, count };
	uint8_t answer[MAX_MESSAGE];
	size_t len;
	int error = call(f, VU_REGION_READ, &a, sizeof(a), answer, &len);

	if (error)
		return error;
	assert_int_equal(len, sizeof(a) + count);
	assert_memory_equal(answer, &a, sizeof(a));
	memcpy(data, answer + sizeof(a), count);
	return 0;
}

static size_t fill_write(uint8_t *m, uint32_t region, uint64_t offset, uint32_t count,
			 const void *data)
{
	struct vu_region_access a = { offset, region, count };

	memcpy(m, &a, sizeof(a));
	memcpy(m + sizeof(a), data, count);
	return sizeof(a) + count;
}

static int region_write(struct fixture *f, uint32_t region, uint64_t offset, uint32_t count,
			const void *data)
{
	uint8_t m[MAX_MESSAGE], answer[MAX_MESSAGE];
	size_t n = fill_write(m, region, offset, count, data), len;
	int error = call(f, VU_REGION_WRITE, m, n, answer, &len);

	if (!error) {
		assert_int_equal(len, 16);
		assert_memory_equal(answer, m, 16);
	}
	return error;
}

static void test_config(void **state)
{
	struct fixture *f = *state;
	uint8_t all[4096], some[16], m[32], two[2] = { 0x06, 0x00 };
	struct vu_header h;
	size_t len;

	assert_int_equal(region_read(f, VU_REGION_CONFIG, 0, 4096, all), 0);
	assert_memory_equal(all, "\x34\x12\x44\x52", 4);
	for (unsigned int at = 0; at < 8; at++)
		for (unsigned int len = 1; len <= 8; len++) {
			assert_int_equal(region_read(f, VU_REGION_CONFIG, at, len, some), 0);
			assert_memory_equal(some, all + at, len);
		}
	assert_int_equal(region_write(f, VU_REGION_CONFIG, 4, 2, two), 0);
	assert_true(urdma_config_space_bus_master_enable(f->pcie->config));
	assert_int_equal(region_write(f, VU_REGION_CONFIG, 0, 16, all), 0);
	assert_int_equal(region_read(f, VU_REGION_CONFIG, 4095, 1, some), 0);
	assert_int_equal(f->error_lines, 0);
	assert_int_equal(region_read(f, VU_REGION_CONFIG, 4095, 2, some), EINVAL);
	assert_int_equal(region_read(f, VU_REGION_CONFIG, 4096, 1, some), EINVAL);
	assert_int_equal(region_read(f, VU_REGION_CONFIG, UINT64_MAX, 1, some), EINVAL);
	assert_int_equal(region_read(f, VU_REGION_CONFIG, UINT64_MAX - 2, 4, some), EINVAL);
	assert_int_equal(region_read(f, VU_REGION_CONFIG, 0, 0, some), EINVAL);
	assert_int_equal(region_read(f, VU_REGION_CONFIG, 0, 4097, all), EINVAL);
	assert_int_equal(region_read(f, VU_REGION_CONFIG, 0, UINT32_MAX, all), EINVAL);
	assert_int_equal(region_write(f, VU_REGION_CONFIG, 4095, 2, two), EINVAL);
	assert_int_equal(f->error_lines, 8);

	/* Function-level reset by the guest, with a register read in flight. */
	post(f, VU_REGION_READ, 0, &(struct vu_region_access){ 0, 0, 8 }, 16, NULL, 0);
	pump(f);
	two[0] = 0;
	two[1] = 0x80;
	post(f, VU_REGION_WRITE, VU_FLAG_NO_REPLY, m,
	     fill_write(m, VU_REGION_CONFIG, URDMA_CONFIG_CAP_PCIE + 8, 2, two), NULL, 0);
	pump(f);
	assert_int_equal(f->pcie->resets, 1);
	assert_true(get_reply(f, &h, all, &len));
	assert_int_equal(len, 24);
	assert_memory_equal(all + 16, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
	assert_alive(f);
}

static void test_bar4(void **state)
{
	struct fixture *f = *state;
	uint8_t entry[16];

	for (uint64_t i = 0; i < 64; i++) {
		assert_int_equal(region_read(f, 4, 16 * i + 8, 8, entry), 0);
		assert_memory_equal(entry, "\0\0\0\0\x01\0\0\0", 8);
	}
	memset(entry, 0xff, sizeof(entry));
	assert_int_equal(region_write(f, 4, 16 * 63, 8, entry), 0);
	assert_int_equal(region_write(f, 4, 16 * 63 + 8, 8, entry), 0);
	assert_int_equal(region_read(f, 4, 16 * 63, 8, entry), 0);
	assert_int_equal(region_read(f, 4, 16 * 63 + 8, 8, entry + 8), 0);
	assert_memory_equal(entry, "\xfc\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\0\0\0",
			    16);
	/* Writes after the table have no effect. */
	for (uint64_t at = 0x400; at < 0x1000; at += 8) {
		memset(entry, 0xff, sizeof(entry));
		assert_int_equal(region_write(f, 4, at, 8, entry), 0);
		assert_int_equal(region_read(f, 4, at, 8, entry), 0);
		assert_memory_equal(entry, "\0\0\0\0\0\0\0\0", 8);
	}
	/* Vectors without an eventfd are shown as pending. */
	fake_pcie_fire(f->pcie, 3);
	fake_pcie_fire(f->pcie, 63);
	assert_int_equal(region_read(f, 4, 0x800, 8, entry), 0);
	assert_memory_equal(entry, "\x08\0\0\0\0\0\0\x80", 8);
	assert_int_equal(region_write(f, 4, 0xfff, 2, entry), EINVAL);
	assert_int_equal(region_read(f, 4, 0, 16, entry), EINVAL);
	assert_int_equal(call(f, VU_DEVICE_RESET, NULL, 0, NULL, NULL), 0);
	assert_int_equal(region_read(f, 4, 0x800, 8, entry), 0);
	assert_memory_equal(entry, "\0\0\0\0\0\0\0\0", 8);
	assert_int_equal(f->pcie->writes, 0);
}

static void test_mmio_reads(void **state)
{
	struct fixture *f = *state;
	struct vu_region_access a = { 0, 0, 8 };
	uint8_t buf[MAX_MESSAGE];
	struct vu_header h;
	uint16_t first;
	size_t len;

	for (unsigned int i = 0; i < 64; i++)
		f->pcie->bar0[0x100 + i] = (uint8_t)(0x80 + i);

	/* The reply comes when the function completes the read. */
	first = post(f, VU_REGION_READ, 0, &a, sizeof(a), NULL, 0);
	expect_silence(f);
	assert_int_equal(fake_pcie_run(f->pcie, 1), 1);
	assert_true(get_reply(f, &h, buf, &len)); /* sent from the callback: a CPU waits */
	assert_int_equal(h.id, first);
	assert_int_equal(len, 24);
	assert_memory_equal(buf + 16, "urdma\0\0\0", 8);

	/* Many in flight, of each width, with other commands in between. */
	first = (uint16_t)(f->next_id + 1);
	for (unsigned int i = 0; i < 32; i++) {
		a = (struct vu_region_access){ 0x100 + i, 0, 1 + i % 8 };
		post(f, VU_REGION_READ, 0, &a, sizeof(a), NULL, 0);
	}
	pump(f);
	assert_int_equal(f->pcie->num_reads, 32);
	assert_alive(f);
	fake_pcie_run(f->pcie, 5);
	pump(f);
	for (unsigned int i = 0; i < 32; i++) {
		if (i == 5) {
			expect_silence(f);
			fake_pcie_run(f->pcie, 100);
			pump(f);
		}
		assert_true(get_reply(f, &h, buf, &len));
		assert_int_equal(h.id, (uint16_t)(first + i));
		assert_int_equal(len, 16 + 1 + i % 8);
		for (unsigned int k = 0; k < 1 + i % 8; k++)
			assert_int_equal(buf[16 + k], 0x80 + i + k);
	}

	/* A function that answers inside of the call. */
	f->pcie->answer_at_once = true;
	assert_int_equal(region_read(f, 0, 0x104, 4, buf), 0);
	assert_memory_equal(buf, "\x84\x85\x86\x87", 4);
	/* UR and CA read as all ones, and are logged. */
	f->pcie->fail_reads = true;
	assert_int_equal(f->error_lines, 0);
	assert_int_equal(region_read(f, 2, 0x1000, 4, buf), 0);
	assert_memory_equal(buf, "\xff\xff\xff\xff", 4);
	assert_int_equal(f->error_lines, 1);
	f->pcie->fail_reads = false;
	/* A read that wants no reply is still made. */
	a = (struct vu_region_access){ 0, 0, 4 };
	post(f, VU_REGION_READ, VU_FLAG_NO_REPLY, &a, sizeof(a), NULL, 0);
	expect_silence(f);

	assert_int_equal(region_read(f, 0, 0, 9, buf), EINVAL);
	assert_int_equal(region_read(f, 0, 0, 0, buf), EINVAL);
	assert_int_equal(region_read(f, 0, 60, 8, buf), EINVAL); /* crosses a line */
	assert_int_equal(region_read(f, 0, 0xfffc, 8, buf), EINVAL);
	assert_int_equal(region_read(f, 0, 0x10000, 1, buf), EINVAL);
	assert_int_equal(region_read(f, 0, UINT64_MAX, 8, buf), EINVAL);
	assert_int_equal(region_read(f, 2, 0x800000, 4, buf), EINVAL);
	assert_int_equal(region_read(f, 1, 0, 4, buf), EINVAL);
	assert_int_equal(region_read(f, VU_REGION_ROM, 0, 4, buf), EINVAL);
	assert_int_equal(region_read(f, VU_REGION_VGA, 0, 4, buf), EINVAL);
	assert_int_equal(region_read(f, 9, 0, 4, buf), EINVAL);
	assert_int_equal(region_read(f, UINT32_MAX, 0, 4, buf), EINVAL);
	refused(f, EINVAL, VU_REGION_READ, &a, sizeof(a) - 1);
	refused(f, EINVAL, VU_REGION_READ, buf, sizeof(a) + 1);
}

/* More reads than may be in flight: the rest waits for its turn, nothing is lost or reordered. */
static void test_mmio_read_flood(void **state)
{
	struct fixture *f = *state;
	struct vu_region_access a = { 8, 0, 8 };
	uint8_t buf[MAX_MESSAGE];
	unsigned int replies = 0;
	struct vu_header h;
	uint16_t first = (uint16_t)(f->next_id + 1);
	struct pollfd p[URDMA_VFIO_USER_MAX_POLLFDS];
	size_t len;

	for (unsigned int i = 0; i < 200; i++)
		post(f, VU_REGION_READ, 0, &a, sizeof(a), NULL, 0);
	pump(f);
	assert_int_equal(f->pcie->num_reads, 64);
	assert_int_equal(urdma_vfio_user_pollfds(f->server, p), 1);
	assert_false(p[0].events & POLLIN);
	for (unsigned int turn = 0; turn < 100 && replies < 200; turn++) {
		fake_pcie_run(f->pcie, 7);
		pump(f);
		assert_true(f->pcie->num_reads <= 64);
		while (get_reply(f, &h, buf, &len))
			assert_int_equal(h.id, (uint16_t)(first + replies++));
	}
	assert_int_equal(replies, 200);
	assert_int_equal(f->error_lines, 0);

	/* A function that is full for a while. */
	f->pcie->full = true;
	post(f, VU_REGION_READ, 0, &a, sizeof(a), NULL, 0);
	post(f, VU_REGION_READ, 0, &a, sizeof(a), NULL, 0);
	expect_silence(f);
	f->pcie->full = false;
	pump(f);
	fake_pcie_run(f->pcie, 2);
	assert_true(get_reply(f, &h, buf, &len) && get_reply(f, &h, buf, &len));
	assert_alive(f);
}

static void test_mmio_writes(void **state)
{
	struct fixture *f = *state;
	uint8_t m[MAX_MESSAGE], data[64];

	for (unsigned int i = 0; i < 64; i++)
		data[i] = (uint8_t)(i + 1);
	for (uint32_t len = 1; len <= 8; len++) {
		post(f, VU_REGION_WRITE, VU_FLAG_NO_REPLY, m,
		     fill_write(m, 2, 0x3000 + len, len, data), NULL, 0);
		expect_silence(f);
		assert_int_equal(f->pcie->last_write_bar, 2);
		assert_int_equal(f->pcie->last_write_offset, 0x3000 + len);
		assert_int_equal(f->pcie->last_write_len, len);
		assert_memory_equal(f->pcie->last_write, data, len);
	}
	assert_int_equal(region_write(f, 0, 0xfff8, 8, data), 0);
	assert_int_equal(region_write(f, 2, 0x7fffc0, 64, data), 0); /* a pushed WQE */
	assert_int_equal(f->pcie->last_write_len, 64);
	assert_int_equal(f->pcie->writes, 10);
	assert_int_equal(f->error_lines, 0);

	assert_int_equal(region_write(f, 0, 0x100, 9, data), EINVAL);
	assert_int_equal(region_write(f, 0, 0x13c, 8, data), EINVAL);
	assert_int_equal(region_write(f, 2, 0x20, 64, data), EINVAL);
	assert_int_equal(region_write(f, 2, 0x7ffffc, 8, data), EINVAL);
	assert_int_equal(region_write(f, 2, UINT64_MAX - 3, 8, data), EINVAL);
	assert_int_equal(region_write(f, 3, 0, 4, data), EINVAL);
	assert_int_equal(region_write(f, VU_REGION_ROM, 0, 4, data), EINVAL);
	/* The count and the length of the message disagree. */
	fill_write(m, 0, 0x100, 8, data);
	refused(f, EINVAL, VU_REGION_WRITE, m, 16);
	refused(f, EINVAL, VU_REGION_WRITE, m, 23);
	refused(f, EINVAL, VU_REGION_WRITE, m, 25);
	refused(f, EINVAL, VU_REGION_WRITE, m, 15);
	assert_int_equal(f->pcie->writes, 10);

	/* A posted write that is refused is only logged. */
	assert_int_equal(f->error_lines, 11);
	post(f, VU_REGION_WRITE, VU_FLAG_NO_REPLY, m, 17, NULL, 0);
	expect_silence(f);
	assert_int_equal(f->error_lines, 12);

	f->pcie->write_error = -EIO;
	assert_int_equal(region_write(f, 0, 0x100, 8, data), EIO);
	f->pcie->write_error = 0;

	/* Order is kept across a function that is full for a while. */
	f->pcie->full = true;
	for (unsigned int i = 0; i < 5; i++) {
		data[0] = (uint8_t)i;
		post(f, VU_REGION_WRITE, VU_FLAG_NO_REPLY, m, fill_write(m, 2, 0x5000, 1, data),
		     NULL, 0);
	}
	expect_silence(f);
	assert_int_equal(f->pcie->writes, 10);
	f->pcie->full = false;
	pump(f);
	assert_int_equal(f->pcie->writes, 15);
	assert_int_equal(f->pcie->bar2[0x5000], 4);

	/*
	 * Messages that arrived together are handled together, before the model runs again. But a
	 * client that floods does not keep the model from running.
	 */
	for (unsigned int i = 0; i < 100; i++)
		post(f, VU_REGION_WRITE, VU_FLAG_NO_REPLY, m, fill_write(m, 2, 0x5000, 1, data),
		     NULL, 0);
	assert_int_equal(urdma_vfio_user_process(f->server), 64);
	assert_int_equal(f->pcie->writes, 79);
	assert_int_equal(urdma_vfio_user_process(f->server), 36);
	assert_int_equal(f->pcie->writes, 115);
}

static size_t fill_multi(uint8_t *m, uint64_t count, const struct vu_write_one *w, size_t n)
{
	struct vu_write_multi head = { count };

	memcpy(m, &head, sizeof(head));
	memcpy(m + sizeof(head), w, n * sizeof(*w));
	return sizeof(head) + n * sizeof(*w);
}

static void test_write_multi(void **state)
{
	struct fixture *f = *state;
	struct vu_write_one w[200];
	uint8_t m[MAX_MESSAGE], answer[64];
	uint64_t done;
	size_t len;

	for (unsigned int i = 0; i < 200; i++)
		w[i] = (struct vu_write_one){ 0x1000 * i, 2, 1 + i % 8, { (uint8_t)i, 1, 2, 3 } };
	assert_int_equal(
		call(f, VU_REGION_WRITE_MULTI, m, fill_multi(m, 200, w, 200), answer, &len), 0);
	assert_int_equal(len, 8);
	memcpy(&done, answer, 8);
	assert_int_equal(done, 200);
	assert_int_equal(f->pcie->writes, 200);
	for (unsigned int i = 0; i < 200; i++)
		assert_int_equal(f->pcie->bar2[0x1000 * i], i);
	assert_int_equal(call(f, VU_REGION_WRITE_MULTI, m, fill_multi(m, 0, w, 0), NULL, NULL), 0);

	/* One bad write among good ones: none is carried out. */
	w[150].count = 9;
	refused(f, EINVAL, VU_REGION_WRITE_MULTI, m, fill_multi(m, 200, w, 200));
	w[150].count = 0;
	refused(f, EINVAL, VU_REGION_WRITE_MULTI, m, fill_multi(m, 200, w, 200));
	w[150].count = 4;
	w[150].offset = UINT64_MAX;
	refused(f, EINVAL, VU_REGION_WRITE_MULTI, m, fill_multi(m, 200, w, 200));
	w[150].offset = 0;
	w[150].region = 77;
	refused(f, EINVAL, VU_REGION_WRITE_MULTI, m, fill_multi(m, 200, w, 200));
	w[150].region = 2;
	refused(f, EINVAL, VU_REGION_WRITE_MULTI, m, fill_multi(m, 201, w, 200));
	refused(f, EINVAL, VU_REGION_WRITE_MULTI, m, fill_multi(m, 199, w, 200));
	refused(f, EINVAL, VU_REGION_WRITE_MULTI, m, fill_multi(m, UINT64_MAX, w, 2));
	refused(f, EINVAL, VU_REGION_WRITE_MULTI, m,
		fill_multi(m, UINT64_C(0x0aaaaaaaaaaaaaab), w, 1)); /* times 24 wraps around */
	refused(f, EINVAL, VU_REGION_WRITE_MULTI, m, 7);
	assert_int_equal(f->pcie->writes, 200);

	f->pcie->full = true;
	post(f, VU_REGION_WRITE_MULTI, VU_FLAG_NO_REPLY, m, fill_multi(m, 200, w, 200), NULL, 0);
	expect_silence(f);
	f->pcie->full = false;
	pump(f);
	assert_int_equal(f->pcie->writes, 400);

	/* Refused for a client that has not asked for it. */
	client_close(f);
	client_open(f);
	assert_int_equal(send_version(f, 0, 0, NULL, 0, (char *)answer, &len), 0);
	refused(f, EOPNOTSUPP, VU_REGION_WRITE_MULTI, m, fill_multi(m, 1, w, 1));
}

/* ---- DMA ---- */

static int make_memfd(size_t size, bool seal)
{
	int fd = memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	if (seal)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	return fd;
}

static int dma_map(struct fixture *f, uint64_t address, uint64_t size, uint32_t flags, int fd,
		   uint64_t offset)
{
	struct vu_dma_map m = { sizeof(m), flags, offset, address, size };

	return call_fds(f, VU_DMA_MAP, &m, sizeof(m), &fd, fd >= 0 ? 1 : 0, NULL, NULL);
}

static int dma_unmap(struct fixture *f, uint64_t address, uint64_t size, uint32_t flags)
{
	struct vu_dma_unmap m = { sizeof(m), flags, address, size }, back;
	size_t len = 0;
	int error = call(f, VU_DMA_UNMAP, &m, sizeof(m), &back, &len);

	if (!error) {
		assert_int_equal(len, sizeof(m));
		assert_memory_equal(&back, &m, sizeof(m));
	}
	return error;
}

static int nic_read(struct fixture *f, uint64_t address, void *buf, size_t len)
{
	return f->pcie->ops->dma_read(f->pcie->ctx, address, buf, len);
}

static int nic_write(struct fixture *f, uint64_t address, const void *buf, size_t len)
{
	return f->pcie->ops->dma_write(f->pcie->ctx, address, buf, len);
}

static void dma_good(struct fixture *f, bool seal)
{
	int fd = make_memfd(16 * PAGE, seal);
	uint8_t *ram = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	uint8_t in[4096], out[4096];

	assert_true(ram != MAP_FAILED);
	for (unsigned int i = 0; i < 16 * PAGE; i++)
		ram[i] = (uint8_t)(i * 7 + i / 256);
	/* Pages 0 to 3 at 1 MB, and after them pages 8 to 11; page 12 far away, read-only. */
	assert_int_equal(dma_map(f, 0x100000, 4 * PAGE, 3, fd, 0), 0);
	assert_int_equal(dma_map(f, 0x104000, 4 * PAGE, 3, fd, 8 * PAGE), 0);
	assert_int_equal(dma_map(f, 0xfffffffffffff000, PAGE, 1, fd, 12 * PAGE), 0);
	assert_int_equal(dma_map(f, 0x200000, PAGE, 3, -1, 0), 0);
	assert_int_equal(f->error_lines, 0);

	for (unsigned int len = 1; len <= 300; len += 13)
		for (unsigned int at = 0; at < 70; at += 7) {
			assert_int_equal(nic_read(f, 0x100000 + at, in, len), 0);
			assert_memory_equal(in, ram + at, len);
			for (unsigned int i = 0; i < len; i++)
				out[i] = (uint8_t)(len + at + i);
			assert_int_equal(nic_write(f, 0x105000 + at, out, len), 0);
			assert_memory_equal(ram + 9 * PAGE + at, out, len);
			assert_int_equal(
				ram[9 * PAGE + at + len],
				(uint8_t)((9 * PAGE + at + len) * 7 + (9 * PAGE + at + len) / 256));
			for (unsigned int i = 0; i < len; i++)
				ram[9 * PAGE + at + i] = (uint8_t)((9 * PAGE + at + i) * 7 +
								   (9 * PAGE + at + i) / 256);
		}
	assert_int_equal(nic_read(f, 0x100000, in, 4096), 0);
	assert_memory_equal(in, ram, 4096);
	/* Across the seam of two mappings. */
	assert_int_equal(nic_read(f, 0x103ff0, in, 32), 0);
	assert_memory_equal(in, ram + 0x3ff0, 16);
	assert_memory_equal(in + 16, ram + 0x8000, 16);
	memset(out, 0xa5, sizeof(out));
	assert_int_equal(nic_write(f, 0x103ff8, out, 16), 0);
	assert_int_equal(ram[0x3ff7] == 0xa5, 0);
	assert_memory_equal(ram + 0x3ff8, out, 8);
	assert_memory_equal(ram + 0x8000, out, 8);
	/* The top of the address space. */
	assert_int_equal(nic_read(f, 0xfffffffffffffff8, in, 8), 0);
	assert_memory_equal(in, ram + 12 * PAGE + 0xff8, 8);
	assert_int_equal(f->error_lines, 0);
	assert_int_equal(nic_read(f, 0xfffffffffffffff8, in, 9), -EFAULT);
	assert_int_equal(nic_write(f, 0xfffffffffffff000, out, 8), -EFAULT); /* read-only */

	/* Not mapped: before, behind, in between, without backing; and then nothing is moved. */
	assert_int_equal(nic_read(f, 0, in, 1), -EFAULT);
	assert_int_equal(nic_read(f, 0xfffff, in, 1), -EFAULT);
	assert_int_equal(nic_read(f, 0x108000, in, 1), -EFAULT);
	assert_int_equal(nic_read(f, 0x107ff8, in, 16), -EFAULT);
	assert_int_equal(nic_read(f, 0xffff8, in, 16), -EFAULT);
	assert_int_equal(nic_read(f, 0x200000, in, 8), -EFAULT);
	assert_int_equal(nic_read(f, 0x100000, in, 0), -EFAULT);
	memcpy(in, ram + 0xbff0, 16);
	assert_int_equal(nic_write(f, 0x107ff0, out, 32), -EFAULT);
	assert_memory_equal(ram + 0xbff0, in, 16);
	assert_int_equal(f->error_lines, 10);
	assert_int_equal(urdma_vfio_user_stats(f->server)->dma_faults, 10);

	/* Unmapping takes effect before the reply. */
	assert_int_equal(dma_unmap(f, 0x100000, 4 * PAGE, 0), 0);
	assert_int_equal(nic_read(f, 0x100000, in, 8), -EFAULT);
	assert_int_equal(nic_read(f, 0x104000, in, 8), 0);
	assert_int_equal(dma_map(f, 0x100000, 4 * PAGE, 2, fd, PAGE), 0); /* write only */
	assert_int_equal(nic_read(f, 0x100000, in, 8), -EFAULT);
	assert_int_equal(nic_write(f, 0x100000, out, 8), 0);
	assert_memory_equal(ram + PAGE, out, 8);
	assert_int_equal(dma_unmap(f, 0, 0, VU_DMA_UNMAP_ALL), 0);
	assert_int_equal(nic_read(f, 0x104000, in, 8), -EFAULT);
	assert_int_equal(dma_map(f, 0x104000, PAGE, 3, fd, 0), 0);
	/* Dropping the client unmaps the rest, and the next one starts with nothing. */
	client_close(f);
	negotiate(f);
	assert_int_equal(nic_read(f, 0x104000, in, 8), -EFAULT);
	munmap(ram, 16 * PAGE);
	close(fd);
}

static void test_dma_sealed(void **state)
{
	dma_good(*state, true);
}

static void test_dma_unsealed(void **state)
{
	dma_good(*state, false);
}

static void test_dma_bad_maps(void **state)
{
	struct fixture *f = *state;
	int fd = make_memfd(16 * PAGE, true), sealed_write = make_memfd(PAGE, true);
	struct vu_dma_map m = { sizeof(m), 3, 0, 0x100000, PAGE };
	struct vu_dma_unmap u = { sizeof(u), 0, 0x100000, 4 * PAGE };
	int fds[2] = { fd, fd }, pipe_fds[2], read_only, event = eventfd(0, EFD_CLOEXEC);
	char path[64];

	assert_int_equal(dma_map(f, 0x100000, 4 * PAGE, 3, fd, 0), 0);
	/* Overlaps, each way. */
	assert_int_equal(dma_map(f, 0x100000, 4 * PAGE, 3, fd, 0), EEXIST);
	assert_int_equal(dma_map(f, 0xff000, 2 * PAGE, 3, fd, 0), EEXIST);
	assert_int_equal(dma_map(f, 0x103000, PAGE, 3, fd, 0), EEXIST);
	assert_int_equal(dma_map(f, 0x103000, 2 * PAGE, 3, -1, 0), EEXIST);
	assert_int_equal(dma_map(f, 0x101000, PAGE, 3, fd, 0), EEXIST);
	assert_int_equal(dma_map(f, 0, 0xfffffffffffff000, 3, -1, 0), EEXIST);
	/* Absurd shapes. */
	assert_int_equal(dma_map(f, 0x200000, 0, 3, fd, 0), EINVAL);
	assert_int_equal(dma_map(f, 0x200000, 0, 3, -1, 0), EINVAL);
	assert_int_equal(dma_map(f, 0xfffffffffffff000, 2 * PAGE, 3, fd, 0), EINVAL);
	assert_int_equal(dma_map(f, 0x200000, 0xffffffffffffffff, 3, fd, 0), EINVAL);
	assert_int_equal(dma_map(f, 0x200000, 0xfffffffffff00000, 3, -1, 0), EINVAL);
	assert_int_equal(dma_map(f, 0x200800, PAGE, 3, fd, 0), EINVAL);
	assert_int_equal(dma_map(f, 0x200000, 100, 3, fd, 0), EINVAL);
	assert_int_equal(dma_map(f, 0x200000, PAGE, 3, fd, 8), EINVAL);
	assert_int_equal(dma_map(f, 0x200000, PAGE, 0, fd, 0), EINVAL);
	assert_int_equal(dma_map(f, 0x200000, PAGE, 7, fd, 0), EINVAL);
	/* Beyond the file. */
	assert_int_equal(dma_map(f, 0x200000, 17 * PAGE, 3, fd, 0), EINVAL);
	assert_int_equal(dma_map(f, 0x200000, PAGE, 3, fd, 16 * PAGE), EINVAL);
	assert_int_equal(dma_map(f, 0x200000, PAGE, 3, fd, 0xfffffffffffff000), EINVAL);
	assert_int_equal(dma_map(f, 0x200000, PAGE, 3, fd, 0x7ffffffffffff000), EINVAL);
	assert_int_equal(dma_map(f, 0x200000, 1ull << 62, 3, fd, 0), EINVAL);
	/* Descriptors that are not files, or that do not allow it. */
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	assert_int_equal(dma_map(f, 0x200000, PAGE, 1, pipe_fds[0], 0), EINVAL);
	assert_int_equal(dma_map(f, 0x200000, PAGE, 3, f->fd, 0), EINVAL);
	assert_int_equal(dma_map(f, 0x200000, PAGE, 3, event, 0), EINVAL);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	read_only = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(read_only >= 0);
	assert_int_equal(dma_map(f, 0x200000, PAGE, 3, read_only, 0), EACCES);
	assert_int_equal(dma_map(f, 0x200000, PAGE, 1, read_only, 0), 0);
	close(read_only);
	read_only = open(path, O_PATH | O_CLOEXEC);
	assert_true(dma_map(f, 0x300000, PAGE, 1, read_only, 0) != 0);
	assert_int_equal(fcntl(sealed_write, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
	assert_int_equal(dma_map(f, 0x300000, PAGE, 3, sealed_write, 0), EACCES);
	assert_int_equal(dma_map(f, 0x300000, PAGE, 1, sealed_write, 0), 0);
	/* The message itself. */
	refused(f, EINVAL, VU_DMA_MAP, &m, sizeof(m) - 1);
	refused(f, EINVAL, VU_DMA_MAP, NULL, 0);
	refused_fds(f, EINVAL, VU_DMA_MAP, &m, sizeof(m), fds, 2);
	m.argsz = 31;
	refused(f, EINVAL, VU_DMA_MAP, &m, sizeof(m));

	assert_int_equal(dma_unmap(f, 0x101000, PAGE, 0), ENOENT);
	assert_int_equal(dma_unmap(f, 0x100000, PAGE, 0), EINVAL);
	assert_int_equal(dma_unmap(f, 0x100000, 5 * PAGE, 0), EINVAL);
	assert_int_equal(dma_unmap(f, 0x100000, 0, 0), EINVAL);
	assert_int_equal(dma_unmap(f, 0xffff000000, PAGE, 0), ENOENT);
	assert_int_equal(dma_unmap(f, 0x100000, 4 * PAGE, VU_DMA_UNMAP_GET_DIRTY), EOPNOTSUPP);
	assert_int_equal(dma_unmap(f, 0x100000, 4 * PAGE, 4), EINVAL);
	assert_int_equal(dma_unmap(f, 0x100000, 4 * PAGE, VU_DMA_UNMAP_ALL), EINVAL);
	refused(f, EINVAL, VU_DMA_UNMAP, &u, sizeof(u) - 1);
	refused_fds(f, EINVAL, VU_DMA_UNMAP, &u, sizeof(u), fds, 1);
	u.argsz = 23;
	refused(f, EINVAL, VU_DMA_UNMAP, &u, sizeof(u));
	u.argsz = 24;
	assert_int_equal(call(f, VU_DMA_UNMAP, &u, sizeof(u), NULL, NULL), 0);
	assert_int_equal(dma_unmap(f, 0x100000, 4 * PAGE, 0), ENOENT);
	assert_alive(f);
	close(fd);
	close(sealed_write);
	close(read_only);
	close(event);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

static void test_dma_many_maps(void **state)
{
	struct fixture *f = *state;
	int fd = make_memfd(PAGE, true), loose = make_memfd(PAGE, false);
	uint8_t b[8] = { 0 };
	unsigned int n;

	/* In an order that is neither ascending nor descending. */
	for (n = 0; n < 4096; n++)
		assert_int_equal(dma_map(f, (uint64_t)(n * 2654435761u) << 12, PAGE, 3, fd, 0), 0);
	assert_int_equal(dma_map(f, UINT64_C(1) << 60, PAGE, 3, fd, 0), ENOSPC);
	for (n = 0; n < 4096; n++)
		assert_int_equal(nic_write(f, ((uint64_t)(n * 2654435761u) << 12) + 8, b, 8), 0);
	for (n = 0; n < 4096; n += 2)
		assert_int_equal(dma_unmap(f, (uint64_t)(n * 2654435761u) << 12, PAGE, 0), 0);
	for (n = 0; n < 4096; n++)
		assert_int_equal(nic_read(f, (uint64_t)(n * 2654435761u) << 12, b, 8),
				 n % 2 ? 0 : -EFAULT);
	assert_int_equal(dma_unmap(f, 0, 0, VU_DMA_UNMAP_ALL), 0);
	/* Files that must be kept open are fewer. */
	for (n = 0; n < 256; n++)
		assert_int_equal(dma_map(f, (uint64_t)n << 12, PAGE, 3, loose, 0), 0);
	assert_int_equal(dma_map(f, (uint64_t)n << 12, PAGE, 3, loose, 0), ENOSPC);
	assert_int_equal(dma_unmap(f, 0, PAGE, 0), 0);
	assert_int_equal(dma_map(f, (uint64_t)n << 12, PAGE, 3, loose, 0), 0);
	close(fd);
	close(loose);
}

/* A file that is truncated after it was mapped: a fault for the NIC, not for this process. */
static void test_dma_truncated(void **state)
{
	struct fixture *f = *state;
	int fd = make_memfd(4 * PAGE, false);
	uint8_t b[64] = { 0 };
	struct stat st;

	assert_int_equal(dma_map(f, 0x100000, 4 * PAGE, 3, fd, 0), 0);
	assert_int_equal(nic_write(f, 0x103000, b, 64), 0);
	assert_int_equal(ftruncate(fd, PAGE), 0);
	assert_int_equal(nic_read(f, 0x100000, b, 64), 0);
	assert_int_equal(nic_read(f, 0x103000, b, 64), -EFAULT);
	assert_int_equal(nic_write(f, 0x103000, b, 64), -EFAULT);
	assert_int_equal(nic_read(f, 0x100fe0, b, 64), -EFAULT);
	assert_int_equal(nic_write(f, 0x100fe0, b, 64), -EFAULT);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, PAGE); /* and it was not extended */
	assert_int_equal(f->error_lines, 4);
	assert_alive(f);
	close(fd);
}

/* ---- Interrupts ---- */

static uint64_t count_of(int fd)
{
	uint64_t n = 0;

	if (read(fd, &n, sizeof(n)) != sizeof(n))
		return 0;
	return n;
}

static size_t fill_irqs(uint8_t *m, uint32_t flags, uint32_t index, uint32_t start, uint32_t count,
			const uint8_t *bools)
{
	struct vu_irq_set s = { (uint32_t)(sizeof(s) + (bools ? count : 0)), flags, index, start,
				count };

	memcpy(m, &s, sizeof(s));
	if (bools)
		memcpy(m + sizeof(s), bools, count);
	return s.argsz;
}

static int set_irqs(struct fixture *f, uint32_t flags, uint32_t index, uint32_t start,
		    uint32_t count, const uint8_t *bools, const int *fds, size_t nfds)
{
	uint8_t m[256];
	size_t n = fill_irqs(m, flags, index, start, count, bools);

	return call_fds(f, VU_DEVICE_SET_IRQS, m, n, fds, nfds, NULL, NULL);
}

#define NONE	 (VU_IRQ_SET_DATA_NONE | VU_IRQ_SET_ACTION_TRIGGER)
#define BOOLS	 (VU_IRQ_SET_DATA_BOOL | VU_IRQ_SET_ACTION_TRIGGER)
#define EVENTFDS (VU_IRQ_SET_DATA_EVENTFD | VU_IRQ_SET_ACTION_TRIGGER)

static void test_irqs(void **state)
{
	static const uint8_t bools[8] = { 1, 0, 0, 1, 0, 0, 0, 255 };
	struct fixture *f = *state;
	int fds[64];

	for (unsigned int i = 0; i < 64; i++) {
		/* Half of them blocking: the server must not rely on the client. */
		fds[i] = eventfd(0, EFD_CLOEXEC | (i % 2 ? EFD_NONBLOCK : 0));
		assert_true(fds[i] >= 0);
	}
	/* A vector that fires before its eventfd is set is not lost. */
	fake_pcie_fire(f->pcie, 20);
	for (uint32_t i = 0; i < 64; i += 16)
		assert_int_equal(set_irqs(f, EVENTFDS, VU_IRQ_MSIX, i, 16, NULL, fds + i, 16), 0);
	for (unsigned int i = 0; i < 64; i++)
		assert_int_equal(count_of(fds[i]), i == 20);
	for (unsigned int i = 0; i < 64; i++)
		for (unsigned int k = 0; k <= i; k++)
			fake_pcie_fire(f->pcie, i);
	for (unsigned int i = 0; i < 64; i++)
		assert_int_equal(count_of(fds[i]), i + 1);

	/* The client triggers them itself. */
	assert_int_equal(set_irqs(f, NONE, VU_IRQ_MSIX, 8, 4, NULL, NULL, 0), 0);
	assert_int_equal(set_irqs(f, BOOLS, VU_IRQ_MSIX, 32, 8, bools, NULL, 0), 0);
	for (unsigned int i = 0; i < 64; i++)
		assert_int_equal(count_of(fds[i]),
				 (i >= 8 && i < 12) || i == 32 || i == 35 || i == 39);

	/* A counter that is full does not block the server. */
	assert_int_equal(write(fds[1], &(uint64_t){ UINT64_MAX - 1 }, 8), 8);
	fake_pcie_fire(f->pcie, 1);
	assert_int_equal(count_of(fds[1]), UINT64_MAX - 1);

	/* Removed for some vectors, by an empty list of descriptors, and then for all. */
	assert_int_equal(set_irqs(f, EVENTFDS, VU_IRQ_MSIX, 4, 2, NULL, NULL, 0), 0);
	fake_pcie_fire(f->pcie, 4);
	fake_pcie_fire(f->pcie, 6);
	assert_int_equal(count_of(fds[4]), 0);
	assert_int_equal(count_of(fds[6]), 1);
	assert_int_equal(set_irqs(f, NONE, VU_IRQ_MSIX, 0, 0, NULL, NULL, 0), 0);
	fake_pcie_fire(f->pcie, 6);
	assert_int_equal(count_of(fds[6]), 0);
	/* One replaced by another. */
	assert_int_equal(set_irqs(f, EVENTFDS, VU_IRQ_MSIX, 63, 1, NULL, fds, 1), 0);
	assert_int_equal(set_irqs(f, EVENTFDS, VU_IRQ_MSIX, 63, 1, NULL, fds + 3, 1), 0);
	fake_pcie_fire(f->pcie, 63);
	assert_int_equal(count_of(fds[3]), 1);
	assert_int_equal(set_irqs(f, NONE, VU_IRQ_INTX, 0, 0, NULL, NULL, 0), 0);
	assert_int_equal(set_irqs(f, NONE, VU_IRQ_MSI, 0, 0, NULL, NULL, 0), 0);
	assert_int_equal(set_irqs(f, EVENTFDS, VU_IRQ_ERR, 0, 1, NULL, fds, 1), 0);
	assert_int_equal(set_irqs(f, EVENTFDS, VU_IRQ_REQ, 0, 1, NULL, fds + 2, 1), 0);
	assert_int_equal(set_irqs(f, NONE, VU_IRQ_REQ, 0, 1, NULL, NULL, 0), 0);
	assert_int_equal(count_of(fds[2]), 1);
	assert_int_equal(set_irqs(f, NONE, VU_IRQ_REQ, 0, 0, NULL, NULL, 0), 0);
	assert_int_equal(set_irqs(f, NONE, VU_IRQ_ERR, 0, 1, NULL, NULL, 0), 0);
	assert_int_equal(f->error_lines, 0);
	for (unsigned int i = 0; i < 64; i++)
		close(fds[i]);
}

static void test_bad_irqs(void **state)
{
	static const uint8_t bools[64] = { 1 };
	struct fixture *f = *state;
	int fds[3] = { eventfd(0, EFD_CLOEXEC), eventfd(0, EFD_CLOEXEC), eventfd(0, EFD_CLOEXEC) };
	int pipe_fds[2], mixed[2];
	uint8_t m[256];

	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	mixed[0] = fds[0];
	mixed[1] = pipe_fds[1];

	assert_int_equal(set_irqs(f, NONE, 5, 0, 0, NULL, NULL, 0), EINVAL);
	assert_int_equal(set_irqs(f, NONE, UINT32_MAX, 0, 0, NULL, NULL, 0), EINVAL);
	assert_int_equal(set_irqs(f, EVENTFDS, VU_IRQ_INTX, 0, 1, NULL, fds, 1), EINVAL);
	assert_int_equal(set_irqs(f, EVENTFDS, VU_IRQ_MSIX, 64, 1, NULL, fds, 1), EINVAL);
	assert_int_equal(set_irqs(f, EVENTFDS, VU_IRQ_MSIX, 63, 2, NULL, fds, 2), EINVAL);
	assert_int_equal(set_irqs(f, EVENTFDS, VU_IRQ_MSIX, 0, 65, NULL, NULL, 0), EINVAL);
	assert_int_equal(set_irqs(f, NONE, VU_IRQ_MSIX, UINT32_MAX, 2, NULL, NULL, 0), EINVAL);
	assert_int_equal(set_irqs(f, NONE, VU_IRQ_MSIX, 1, UINT32_MAX, NULL, NULL, 0), EINVAL);
	assert_int_equal(set_irqs(f, NONE, VU_IRQ_MSIX, 1, 0, NULL, NULL, 0), EINVAL);
	assert_int_equal(set_irqs(f, EVENTFDS, VU_IRQ_MSIX, 0, 0, NULL, NULL, 0), EINVAL);
	assert_int_equal(set_irqs(f, 0, VU_IRQ_MSIX, 0, 1, NULL, NULL, 0), EINVAL);
	assert_int_equal(
		set_irqs(f, NONE | VU_IRQ_SET_DATA_BOOL, VU_IRQ_MSIX, 0, 1, bools, NULL, 0),
		EINVAL);
	assert_int_equal(
		set_irqs(f, NONE | VU_IRQ_SET_ACTION_MASK, VU_IRQ_MSIX, 0, 1, NULL, NULL, 0),
		EINVAL);
	assert_int_equal(set_irqs(f, NONE | 0x40, VU_IRQ_MSIX, 0, 1, NULL, NULL, 0), EINVAL);
	assert_int_equal(set_irqs(f, VU_IRQ_SET_DATA_NONE | VU_IRQ_SET_ACTION_MASK, VU_IRQ_MSIX, 0,
				  1, NULL, NULL, 0),
			 EOPNOTSUPP);
	/* Descriptors: too few, too many, where none belong, not eventfds. */
	assert_int_equal(set_irqs(f, EVENTFDS, VU_IRQ_MSIX, 0, 3, NULL, fds, 2), EINVAL);
	assert_int_equal(set_irqs(f, EVENTFDS, VU_IRQ_MSIX, 0, 1, NULL, fds, 2), EINVAL);
	assert_int_equal(set_irqs(f, NONE, VU_IRQ_MSIX, 0, 1, NULL, fds, 1), EINVAL);
	assert_int_equal(set_irqs(f, EVENTFDS, VU_IRQ_MSIX, 0, 2, NULL, mixed, 2), EINVAL);
	fake_pcie_fire(f->pcie, 0); /* nothing was set partially */
	assert_int_equal(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(count_of(fds[0]), 0);
	assert_int_equal(f->error_lines, 19);

	refused(f, EINVAL, VU_DEVICE_SET_IRQS, m, fill_irqs(m, NONE, 2, 0, 1, NULL) - 1);
	refused(f, EINVAL, VU_DEVICE_SET_IRQS, m, fill_irqs(m, NONE, 2, 0, 1, NULL) + 1);
	refused(f, EINVAL, VU_DEVICE_SET_IRQS, m, fill_irqs(m, BOOLS, 2, 0, 8, bools) - 1);
	fill_irqs(m, NONE, 2, 0, 1, NULL);
	memset(m, 0, 4); /* argsz */
	refused(f, EINVAL, VU_DEVICE_SET_IRQS, m, 20);
	for (unsigned int i = 0; i < 3; i++)
		close(fds[i]);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

/* ---- Reset ---- */

static void reset_with_reads(struct fixture *f)
{
	struct vu_region_access a = { 0, 0, 4 };
	uint8_t buf[MAX_MESSAGE];
	struct vu_header h;
	uint16_t first = (uint16_t)(f->next_id + 1);
	size_t len;

	for (unsigned int i = 0; i < 3; i++)
		post(f, VU_REGION_READ, 0, &a, sizeof(a), NULL, 0);
	post(f, VU_DEVICE_RESET, 0, NULL, 0, NULL, 0);
	pump(f);
	/* No CPU is left waiting: all ones for each read, then the reply to the reset. */
	for (unsigned int i = 0; i < 3; i++) {
		assert_true(get_reply(f, &h, buf, &len));
		assert_in_range((uint16_t)(h.id - first), 0, 2);
		assert_int_equal(len, 20);
		assert_memory_equal(buf + 16, "\xff\xff\xff\xff", 4);
	}
	assert_true(get_reply(f, &h, buf, &len));
	assert_int_equal(h.command, VU_DEVICE_RESET);
	assert_int_equal(len, 0);
	assert_alive(f);
}

static void test_reset(void **state)
{
	struct fixture *f = *state;

	reset_with_reads(f);
	assert_int_equal(f->pcie->resets, 1);
	f->pcie->forget_reads = true;
	reset_with_reads(f);
	refused(f, EINVAL, VU_DEVICE_RESET, "abcd", 4);
	assert_int_equal(f->pcie->resets, 2);

	/* A client that dies with reads in flight, and a server that is destroyed with them. */
	for (unsigned int i = 0; i < 4; i++) {
		f->pcie->forget_reads = i % 2;
		for (unsigned int k = 0; k < 10; k++)
			post(f, VU_REGION_READ, 0, &(struct vu_region_access){ 0, 0, 4 }, 16, NULL,
			     0);
		pump(f);
		assert_int_equal(f->pcie->num_reads, 10);
		client_close(f);
		assert_int_equal(f->pcie->num_reads, 0);
		negotiate(f);
		assert_alive(f);
	}
	post(f, VU_REGION_READ, 0, &(struct vu_region_access){ 0, 0, 4 }, 16, NULL, 0);
	pump(f);
}

/* ---- Framing and descriptors ---- */

static void test_framing(void **state)
{
	static const uint32_t sizes[] = {
		0, 1, 15, MAX_MESSAGE + 1, 0x10000, 0x7fffffff, 0xffffffff
	};
	struct fixture *f = *state;
	uint8_t buf[MAX_MESSAGE] = { 0 };
	struct vu_header h;
	unsigned int lines;
	size_t len;

	/* An impossible length: an error reply, and the connection ends. */
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct vu_header bad = { 77, VU_DEVICE_GET_INFO, sizes[i], 0, 0 };

		lines = f->error_lines;
		assert_int_equal(send_raw(f, &bad, sizeof(bad), NULL, 0), sizeof(bad));
		pump(f);
		assert_true(get_reply(f, &h, buf, &len));
		assert_int_equal(h.id, 77);
		assert_int_equal(h.error, sizes[i] < 16 ? EINVAL : EMSGSIZE);
		assert_int_equal(f->error_lines, lines + 1);
		expect_closed(f);
		negotiate(f);
		assert_alive(f);
	}
	assert_int_equal(urdma_vfio_user_stats(f->server)->disconnects, 7);

	/* Messages whose flags are wrong are refused, replies to nothing are dropped. */
	post(f, VU_DEVICE_GET_INFO, 2, buf, 16, NULL, 0);
	post(f, VU_DEVICE_GET_INFO, VU_FLAG_ERROR, buf, 16, NULL, 0);
	post(f, VU_DEVICE_GET_INFO, 0x80000000, buf, 16, NULL, 0);
	pump(f);
	for (unsigned int i = 0; i < 3; i++) {
		assert_true(get_reply(f, &h, buf, &len));
		assert_int_equal(h.error, EINVAL);
	}
	lines = f->error_lines;
	post(f, VU_DMA_READ, VU_FLAG_REPLY, buf, 16, NULL, 0);
	expect_silence(f);
	assert_int_equal(f->error_lines, lines + 1);
	assert_alive(f);

	/* The largest message there is. */
	refused(f, ENOSYS, 99, buf, MAX_MESSAGE - sizeof(h));

	/* Two messages in one packet, and one in many. */
	{
		struct vu_device_info info = { .argsz = 16 };
		uint8_t two[64];
		size_t n = make(f, two, VU_DEVICE_GET_INFO, 0, &info, sizeof(info));

		n += make(f, two + n, VU_DEVICE_GET_INFO, 0, &info, sizeof(info));
		assert_int_equal(send_raw(f, two, n, NULL, 0), n);
		pump(f);
		assert_true(get_reply(f, &h, buf, &len) && get_reply(f, &h, buf, &len));
		for (size_t i = 0; i < n; i++) {
			assert_int_equal(send_raw(f, two + i, 1, NULL, 0), 1);
			pump(f);
		}
		assert_true(get_reply(f, &h, buf, &len) && get_reply(f, &h, buf, &len));
		assert_int_equal(h.error, 0);
	}
}

static void test_stray_fds(void **state)
{
	struct fixture *f = *state;
	struct vu_device_info info = { .argsz = 16 };
	struct vu_dma_map m = { sizeof(m), 3, 0, 0x100000, PAGE };
	int fd = make_memfd(PAGE, true), many[40], event = eventfd(0, EFD_CLOEXEC);
	unsigned int before;
	uint8_t buf[64];
	struct vu_header h;
	size_t n, len;

	for (unsigned int i = 0; i < 40; i++)
		many[i] = fd;
	before = open_fds();
	refused_fds(f, EINVAL, VU_DEVICE_GET_INFO, &info, sizeof(info), many, 1);
	refused_fds(f, EINVAL, VU_DEVICE_RESET, NULL, 0, many, 16);
	refused_fds(f, EINVAL, 99, NULL, 0, many, 3);
	refused_fds(f, EINVAL, VU_DMA_MAP, &m, sizeof(m), many, 17);
	refused_fds(f, EINVAL, VU_DMA_MAP, &m, sizeof(m), many, 40);
	refused_fds(f, EINVAL, VU_DMA_MAP, &m, sizeof(m), many, 2);
	assert_int_equal(open_fds(), before);
	/* Descriptors with a reply, with a message that wants no answer. */
	post(f, VU_DMA_READ, VU_FLAG_REPLY, buf, 16, many, 5);
	post(f, VU_REGION_WRITE, VU_FLAG_NO_REPLY, buf, 16, many, 5);
	expect_silence(f);
	assert_int_equal(open_fds(), before);
	/* One with the body instead of the header: accepted. One with each: refused. */
	n = make(f, buf, VU_DMA_MAP, 0, &m, sizeof(m));
	assert_int_equal(send_raw(f, buf, 20, NULL, 0), 20);
	pump(f);
	assert_int_equal(send_raw(f, buf + 20, n - 20, &fd, 1), n - 20);
	pump(f);
	assert_true(get_reply(f, &h, buf, &len));
	assert_int_equal(h.error, 0);
	m.address = 0x200000;
	n = make(f, buf, VU_DMA_MAP, 0, &m, sizeof(m));
	assert_int_equal(send_raw(f, buf, 10, &fd, 1), 10);
	assert_int_equal(send_raw(f, buf + 10, 20, &fd, 1), 20);
	assert_int_equal(send_raw(f, buf + 30, n - 30, &event, 1), n - 30);
	pump(f);
	assert_true(get_reply(f, &h, buf, &len));
	assert_int_equal(h.error, EINVAL);
	assert_int_equal(open_fds(), before);
	/* Of two messages sent at once, each keeps its own. */
	m.address = 0x300000;
	post(f, VU_DMA_MAP, 0, &m, sizeof(m), &fd, 1);
	post(f, VU_DEVICE_GET_INFO, 0, &info, sizeof(info), NULL, 0);
	m.address = 0x400000;
	post(f, VU_DMA_MAP, 0, &m, sizeof(m), &fd, 1);
	pump(f);
	for (unsigned int i = 0; i < 3; i++) {
		assert_true(get_reply(f, &h, buf, &len));
		assert_int_equal(h.error, 0);
	}
	close(fd);
	close(event);
}

/* A peer that goes away after each byte of each kind of message, with descriptors under way. */
static void test_disappearing(void **state)
{
	struct fixture *f = *state;
	int fd = make_memfd(PAGE, true),
	    events[2] = { eventfd(0, EFD_CLOEXEC), eventfd(0, EFD_CLOEXEC) };
	unsigned int clients = 0;

	for (unsigned int kind = 0; kind < 7; kind++) {
		uint8_t m[MAX_MESSAGE], p[512];
		size_t n = 0, len = 1;

		for (size_t cut = 0; cut <= len; cut++) {
			const int *fds = NULL;
			size_t nfds = 0;
			unsigned int lines;

			if (kind) {
				negotiate(f);
			} else {
				client_open(f);
			}
			clients++;
			switch (kind) {
			case 0:
				memset(p, 0, 4);
				memcpy(p + 4, qemu_json, sizeof(qemu_json));
				len = make(f, m, VU_VERSION, 0, p, 4 + sizeof(qemu_json));
				break;
			case 1:
				len = make(f, m, VU_DMA_MAP, 0,
					   &(struct vu_dma_map){ 32, 3, 0, 0x100000, PAGE }, 32);
				fds = &fd;
				nfds = 1;
				break;
			case 2:
				n = fill_irqs(p, EVENTFDS, VU_IRQ_MSIX, 0, 2, NULL);
				len = make(f, m, VU_DEVICE_SET_IRQS, 0, p, n);
				fds = events;
				nfds = 2;
				break;
			case 3:
				n = fill_write(p, 0, 0x100, 8, "12345678");
				len = make(f, m, VU_REGION_WRITE, VU_FLAG_NO_REPLY, p, n);
				break;
			case 4:
				len = make(f, m, VU_REGION_READ, 0,
					   &(struct vu_region_access){ 0, 0, 8 }, 16);
				break;
			case 5:
				n = fill_multi(p, 2,
					       (struct vu_write_one[]){ { 0, 2, 8, { 1 } },
									{ 8, 2, 8, { 2 } } },
					       2);
				len = make(f, m, VU_REGION_WRITE_MULTI, 0, p, n);
				break;
			default:
				len = make(f, m, VU_DEVICE_RESET, 0, NULL, 0);
				break;
			}
			lines = f->error_lines;
			if (cut)
				assert_int_equal(send_raw(f, m, cut, fds, nfds), cut);
			if (cut % 2)
				pump(f); /* else the server sees the bytes and the end together */
			client_close(f);
			assert_int_equal(f->error_lines, lines + (cut && cut < len));
			assert_null(f->pcie->ops);
		}
	}
	assert_int_equal(urdma_vfio_user_stats(f->server)->clients, clients);
	negotiate(f);
	assert_alive(f);
	close(fd);
	close(events[0]);
	close(events[1]);
}

/* A client that sends and never reads: memory is bounded, and it is disconnected. */
static void test_slow_reader(void **state)
{
	struct fixture *f = *state;
	struct vu_region_access a = { 0, VU_REGION_CONFIG, 4096 };
	uint8_t m[64], buf[MAX_MESSAGE];
	unsigned int sent = 0, got = 0;
	struct pollfd p[URDMA_VFIO_USER_MAX_POLLFDS];
	struct vu_header h;
	size_t n, len;

	/* One that is slow for a while gets all its replies. */
	for (sent = 0; sent < 60; sent++)
		post(f, VU_REGION_READ, 0, &a, sizeof(a), NULL, 0);
	pump(f);
	urdma_vfio_user_pollfds(f->server, p);
	assert_int_equal(p[0].events, POLLIN | POLLOUT);
	for (; get_reply(f, &h, buf, &len); got++, pump(f))
		assert_int_equal(len, 16 + 4096);
	assert_int_equal(got, sent);
	urdma_vfio_user_pollfds(f->server, p);
	assert_int_equal(p[0].events, POLLIN);
	assert_int_equal(f->error_lines, 0);

	for (sent = 0; sent < 5000 && urdma_vfio_user_connected(f->server); sent++) {
		n = make(f, m, VU_REGION_READ, 0, &a, sizeof(a));
		if (send_raw(f, m, n, NULL, 0) < 0)
			assert_true(errno == EAGAIN || errno == EPIPE);
		pump(f);
	}
	assert_in_range(sent, 64, 400);
	assert_int_equal(f->error_lines, 1);
	assert_int_equal(urdma_vfio_user_stats(f->server)->disconnects, 1);
	client_close(f);
	negotiate(f);
	assert_alive(f);
}

/*
 * A client that passes its own end of the connection to us and dies: without care, nothing would
 * ever report that it has gone.
 */
static void test_self_reference(void **state)
{
	struct fixture *f = *state;
	struct vu_region_access a = { 0, VU_REGION_CONFIG, 4096 };
	uint8_t m[64];
	size_t n = make(f, m, VU_DMA_MAP, 0, &(struct vu_dma_map){ 32, 3, 0, 0, PAGE }, 32);

	assert_int_equal(send_raw(f, m, 20, &f->fd, 1), 20);
	client_close(f);
	negotiate(f);
	refused_fds(f, EINVAL, VU_DMA_MAP, m + 16, n - 16, &f->fd, 1);

	/* And with that message queued after commands whose replies the client will never read. */
	n = make(f, m, VU_REGION_READ, 0, &a, sizeof(a));
	for (unsigned int i = 0; i < 200; i++)
		if (send_raw(f, m, n, i == 150 ? &f->fd : NULL, i == 150) < 0)
			break;
	client_close(f);
	negotiate(f);
	assert_alive(f);
}

static void test_clients(void **state)
{
	struct fixture *f = *state;
	struct urdma_vfio_user_config config = {
		.path = f->path, .pcie = f->pcie, .log = log_fn, .log_ctx = f
	};
	struct urdma_vfio_user_server *other;
	struct vu_device_info info = { .argsz = 16 };
	int first, second, stale;
	char path[200];
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	/* A second client waits until the first has gone. */
	negotiate(f);
	first = f->fd;
	second = try_connect(f);
	assert_true(second >= 0);
	f->fd = second;
	post(f, VU_VERSION, 0, "\0\0\0", 4, NULL, 0);
	expect_silence(f);
	f->fd = first;
	assert_alive(f);
	close(first);
	pump(f);
	pump(f);
	f->fd = second;
	{
		struct vu_header h;
		size_t len;

		assert_true(get_reply(f, &h, &info, &len));
		assert_int_equal(h.error, 0);
	}
	assert_alive(f);
	client_close(f);

	/* A path that is in use is left alone; a stale one is taken; a file is not. */
	assert_int_equal(urdma_vfio_user_create(&config, &other), -EADDRINUSE);
	assert_null(other);
	snprintf(path, sizeof(path), "%s/stale", f->dir);
	stale = socket(AF_UNIX, SOCK_STREAM, 0);
	strcpy(a.sun_path, path);
	assert_int_equal(bind(stale, (struct sockaddr *)&a, sizeof(a)), 0);
	close(stale);
	config.path = path;
	assert_int_equal(urdma_vfio_user_create(&config, &other), 0);
	urdma_vfio_user_destroy(other);
	assert_int_equal(access(path, F_OK), -1);
	stale = open(path, O_CREAT | O_RDWR, 0600);
	close(stale);
	assert_int_equal(urdma_vfio_user_create(&config, &other), -EADDRINUSE);
	assert_int_equal(unlink(path), 0);
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(urdma_vfio_user_create(&config, &other), -ENAMETOOLONG);
	config.path = "";
	assert_int_equal(urdma_vfio_user_create(&config, &other), -EINVAL);
	config.path = "/nonexistent/s";
	assert_int_equal(urdma_vfio_user_create(&config, &other), -ENOENT);
	urdma_vfio_user_destroy(NULL);

	/* Only the owner may connect. */
	{
		struct stat st;

		assert_int_equal(stat(f->path, &st), 0);
		assert_int_equal(st.st_mode & 077, 0);
	}
	negotiate(f);
	assert_alive(f);
}

/* A client that makes only errors cannot fill the log; errors of the next one are logged again. */
static void test_log_limit(void **state)
{
	struct fixture *f = *state;

	for (unsigned int i = 0; i < 1000; i++)
		assert_int_equal(call(f, 99, NULL, 0, NULL, NULL), ENOSYS);
	assert_int_equal(f->error_lines, 201);
	assert_int_equal(f->limit_lines, 1);
	client_close(f);
	negotiate(f);
	assert_int_equal(call(f, 99, NULL, 0, NULL, NULL), ENOSYS);
	assert_int_equal(f->error_lines, 202);
}

/* ---- Fuzzer ---- */

static uint64_t rnd_state;

static uint64_t rnd(void)
{
	return rnd_next(&rnd_state);
}

static size_t valid_message(struct fixture *f, uint8_t *m)
{
	uint8_t p[MAX_MESSAGE] = { 0 };
	size_t n = 0;
	uint32_t flags = rnd() % 4 ? 0 : VU_FLAG_NO_REPLY;
	unsigned int command = 1 + rnd() % 18;

	switch (command) {
	case VU_VERSION:
		memcpy(p + 4, qemu_json, sizeof(qemu_json));
		n = 4 + sizeof(qemu_json);
		break;
	case VU_DMA_MAP:
		memcpy(p,
		       &(struct vu_dma_map){ 32, 1 + rnd() % 3, (rnd() % 4) << 12,
					     (rnd() % 64) << 12, (1 + rnd() % 8) << 12 },
		       n = 32);
		break;
	case VU_DMA_UNMAP:
		memcpy(p,
		       &(struct vu_dma_unmap){ 24, rnd() % 16 ? 0 : 2, (rnd() % 64) << 12,
					       (1 + rnd() % 8) << 12 },
		       n = 24);
		break;
	case VU_DEVICE_GET_INFO:
		memcpy(p, &(struct vu_device_info){ .argsz = 16 }, n = 16);
		break;
	case VU_DEVICE_GET_REGION_INFO:
		memcpy(p, &(struct vu_region_info){ .argsz = 32, .index = rnd() % 10 }, n = 32);
		break;
	case VU_DEVICE_GET_IRQ_INFO:
		memcpy(p, &(struct vu_irq_info){ .argsz = 16, .index = rnd() % 6 }, n = 16);
		break;
	case VU_DEVICE_SET_IRQS:
		n = fill_irqs(p, 1u << rnd() % 3 | 8u << rnd() % 3, 2, rnd() % 64, rnd() % 20,
			      NULL);
		break;
	case VU_REGION_READ:
		memcpy(p, &(struct vu_region_access){ rnd() % 4096, rnd() % 9, 1 + rnd() % 8 },
		       n = 16);
		break;
	case VU_REGION_WRITE:
		n = fill_write(p, rnd() % 9, rnd() % 8192, 1 + rnd() % 8, p + 64);
		break;
	case VU_REGION_WRITE_MULTI:
		n = fill_multi(p, 2,
			       (struct vu_write_one[]){ { rnd() % 8192, rnd() % 9, 8, { 1 } },
							{ rnd() % 8192, 2, 4, { 2 } } },
			       2);
		break;
	case VU_DEVICE_RESET:
		break;
	default:
		n = rnd() % 64;
		break;
	}
	return make(f, m, command, flags, p, n);
}

static void test_fuzz(void **state)
{
	struct fixture *f = *state;
	char *limit = getenv("URDMA_FUZZ_SECONDS");
	double seconds = limit ? atof(limit) : 2.0;
	int memfd = make_memfd(16 * PAGE, true), loose = make_memfd(16 * PAGE, false);
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	uint64_t sent = 0;
	struct timespec start, now;
	unsigned int before;

	clock_gettime(CLOCK_MONOTONIC, &start);
	rnd_state = test_seed(0x5eed);
	client_close(f);
	before = open_fds();
	do {
		uint8_t junk[65536], b[64];
		unsigned int messages = 1 + rnd() % 200;

		if (rnd() % 8)
			negotiate(f);
		else
			client_open(f);
		while (messages--) {
			uint8_t m[MAX_MESSAGE];
			size_t n = valid_message(f, m);
			int fds[20];
			size_t nfds = rnd() % 4 ? 0 : rnd() % 8 ? rnd() % 3 : rnd() % 20;

			for (size_t i = 0; i < nfds; i++)
				fds[i] = (int[]){ memfd, loose, event, f->fd }[rnd() % 4];
			/* Half are left as they are, so that state builds up. */
			switch (rnd() % 8) {
			case 0:
				for (uint64_t k = 1 + rnd() % 4; k; k--) {
					size_t at = rnd() % n;

					/* A wrong length ends the connection: not too often. */
					if (at / 4 != 1 || rnd() % 32 == 0)
						m[at] ^= (uint8_t)(1u << rnd() % 8);
				}
				break;
			case 1:
				m[8 + rnd() % (n - 8)] = (uint8_t)rnd();
				break;
			case 2: { /* a field of the payload becomes extreme */
				static const uint64_t extremes[] = {
					0, 1, UINT64_MAX, INT64_MAX, UINT32_MAX, 0x80000000, 4096
				};
				size_t w = rnd() % 2 ? 4 : 8;

				if (n >= 16 + w) {
					size_t at = 16 + rnd() % ((n - 16) / w) * w;

					memcpy(m + at, &extremes[rnd() % 7], w);
				}
				break;
			}
			case 3: { /* a length that agrees with the one in the header */
				uint32_t size = 16 + (uint32_t)(rnd() % 64);

				memset(m + n, 0, 128);
				memcpy(m + 4, &size, 4);
				n = size;
				break;
			}
			}
			if (send_raw(f, m, n, nfds ? fds : NULL, nfds) < 0 && errno != EAGAIN)
				break;
			sent++;
			if (rnd() % 4 == 0)
				urdma_vfio_user_process(f->server);
			if (rnd() % 4 == 0)
				fake_pcie_run(f->pcie, (unsigned int)(rnd() % 8));
			f->pcie->full = rnd() % 64 == 0;
			if (f->pcie->ops && rnd() % 4 == 0) {
				fake_pcie_fire(f->pcie, (unsigned int)(rnd() % 64));
				f->pcie->ops->dma_read(f->pcie->ctx, rnd() % 0x48000, b,
						       1 + rnd() % 64);
				f->pcie->ops->dma_write(f->pcie->ctx, rnd() % 0x48000, b,
							1 + rnd() % 64);
			}
			if (rnd() % 2)
				while (recv(f->fd, junk, sizeof(junk), MSG_DONTWAIT) > 0)
					;
		}
		f->pcie->full = false;
		f->pcie->forget_reads = rnd() % 2;
		client_close(f);
		assert_int_equal(open_fds(), before);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((double)(now.tv_sec - start.tv_sec) +
			 (double)(now.tv_nsec - start.tv_nsec) * 1e-9 <
		 seconds);
	negotiate(f);
	assert_alive(f);
	printf("%llu messages, %llu clients, %llu refused, %llu connections closed for it\n",
	       (unsigned long long)sent,
	       (unsigned long long)urdma_vfio_user_stats(f->server)->clients,
	       (unsigned long long)urdma_vfio_user_stats(f->server)->errors,
	       (unsigned long long)urdma_vfio_user_stats(f->server)->disconnects);
	close(memfd);
	close(loose);
	close(event);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_version, setup_idle, teardown),
		cmocka_unit_test_setup_teardown(test_bad_version, setup_idle, teardown),
		cmocka_unit_test_setup_teardown(test_info, setup, teardown),
		cmocka_unit_test_setup_teardown(test_other_commands, setup, teardown),
		cmocka_unit_test_setup_teardown(test_config, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bar4, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mmio_reads, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mmio_read_flood, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mmio_writes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_write_multi, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dma_sealed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dma_unsealed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dma_bad_maps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dma_many_maps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dma_truncated, setup, teardown),
		cmocka_unit_test_setup_teardown(test_irqs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_irqs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reset, setup, teardown),
		cmocka_unit_test_setup_teardown(test_framing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stray_fds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_disappearing, setup_idle, teardown),
		cmocka_unit_test_setup_teardown(test_slow_reader, setup, teardown),
		cmocka_unit_test_setup_teardown(test_self_reference, setup, teardown),
		cmocka_unit_test_setup_teardown(test_clients, setup_idle, teardown),
		cmocka_unit_test_setup_teardown(test_log_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fuzz, setup, teardown),
	};

	/* the spare descriptor belongs to the process, not to a server */
	urdma_socket_accept(-1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
