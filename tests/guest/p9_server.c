// SPDX-License-Identifier: Apache-2.0
/*
 * p9_server ADDRESS DIR: a server of 9P2000.L over RDMA for the kernel's client, which has no
 * counterpart in the kernel. It exports DIR at port 5640, to one connection after the other, until
 * it is killed. It implements the messages that files and directories need, and answers all others
 * with EOPNOTSUPP.
 *
 * Each message is one SEND: size (4 bytes), type, tag (2), and the fields of the type,
 * little-endian (Linux: include/net/9p/9p.h, fs/9p). A connection has as many receives posted as
 * the client may have requests.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define REQUESTS 64
#define MSIZE	 (128u << 10)
#define FIDS	 65536
#define HEADER	 7

/*
 * The exponent of the ACK time-out: 17 s. The client asks for a retry count of 0, so the first
 * time-out ends the connection. The usual 0.5 s is too short: a guest that emulates its RDMA device
 * (rdma_rxe) may wait longer for CPU time.
 */
#define ACK_TIMEOUT 22

enum {
	RLERROR = 7,
	TSTATFS = 8,
	TLOPEN = 12,
	TLCREATE = 14,
	TGETATTR = 24,
	TSETATTR = 26,
	TREADDIR = 40,
	TFSYNC = 50,
	TMKDIR = 72,
	TRENAMEAT = 74,
	TUNLINKAT = 76,
	TVERSION = 100,
	TATTACH = 104,
	TFLUSH = 108,
	TWALK = 110,
	TREAD = 116,
	TWRITE = 118,
	TCLUNK = 120,
};

/* The object of a client's fid: a path, and the open file there. */
struct fid {
	char *path;
	int fd;
	DIR *dir;
};

static struct fid fids[FIDS];
static const char *top;

static void die(const char *what)
{
	fprintf(stderr, "p9_server: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- messages ---------------------------------------------------------------------------------
 */
/* A message that is read or written from its start; `bad` when a field does not fit. */
struct message {
	uint8_t *data;
	size_t at, size;
	int bad;
};

static uint64_t get(struct message *m, size_t bytes)
{
	uint64_t v = 0;

	if (m->size - m->at < bytes) {
		m->bad = 1;
		return 0;
	}
	for (size_t i = 0; i < bytes; i++)
		v |= (uint64_t)m->data[m->at++] << 8 * i;
	return v;
}

static void put(struct message *m, uint64_t v, size_t bytes)
{
	if (m->size - m->at < bytes) {
		m->bad = 1;
		return;
	}
	for (size_t i = 0; i < bytes; i++)
		m->data[m->at++] = (uint8_t)(v >> 8 * i);
}

/* A string: its length in 2 bytes, then its characters. The name of a file has no slash. */
static char *get_string(struct message *m, char *s, size_t room)
{
	size_t n = get(m, 2);

	if (m->bad || n >= room || m->size - m->at < n) {
		m->bad = 1;
		n = 0;
	}
	memcpy(s, m->data + m->at, n);
	s[n] = 0;
	m->at += n;
	return s;
}

static void put_string(struct message *m, const char *s)
{
	size_t n = strlen(s);

	put(m, n, 2);
	if (m->bad || m->size - m->at < n) {
		m->bad = 1;
		return;
	}
	memcpy(m->data + m->at, s, n);
	m->at += n;
}

static void put_qid(struct message *m, const struct stat *s)
{
	put(m, S_ISDIR(s->st_mode) ? 0x80 : 0, 1);
	put(m, (uint64_t)s->st_mtim.tv_nsec ^ (uint64_t)s->st_mtim.tv_sec, 4);
	put(m, s->st_ino, 8);
}

/* ---- fids -------------------------------------------------------------------------------------
 */
static struct fid *get_fid(struct message *m)
{
	uint64_t n = get(m, 4);

	if (m->bad || n >= FIDS || !fids[n].path) {
		m->bad = 1;
		return NULL;
	}
	return &fids[n];
}

static void clunk(struct fid *f)
{
	if (f->dir)
		closedir(f->dir);
	else if (f->fd >= 0)
		close(f->fd);
	free(f->path);
	*f = (struct fid){};
}

/* A new fid; NULL when the number is taken or there is no memory. */
static struct fid *new_fid(uint64_t n, const char *path)
{
	if (n >= FIDS || fids[n].path)
		return NULL;
	fids[n] = (struct fid){ .path = strdup(path), .fd = -1 };
	return &fids[n];
}

/* The path of a name in a directory, allocated; NULL when the name leads elsewhere. */
static char *path_of(const char *dir, const char *name)
{
	char *path;

	if (!*name || strchr(name, '/') || !strcmp(name, "."))
		return NULL;
	if (!strcmp(name, "..")) {
		path = strdup(dir);
		if (path && strcmp(dir, top))
			*strrchr(path, '/') = 0;
		return path;
	}
	return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}

/* Reads a directory's fid and a name. */
static char *get_path(struct message *in)
{
	struct fid *f = get_fid(in);
	char name[256], *path;

	get_string(in, name, sizeof(name));
	path = in->bad ? NULL : path_of(f->path, name);
	if (!path)
		in->bad = 1;
	return path;
}

/* ---- requests: each returns 0 or an errno -------------------------------------------------------
 */
static int version(struct message *in, struct message *out)
{
	char name[32];
	uint64_t msize = get(in, 4);

	get_string(in, name, sizeof(name));
	for (size_t i = 0; i < FIDS; i++)
		if (fids[i].path)
			clunk(&fids[i]);
	put(out, msize < MSIZE ? msize : MSIZE, 4);
	put_string(out, strcmp(name, "9P2000.L") ? "unknown" : name);
	return 0;
}

static int attach(struct message *in, struct message *out)
{
	struct stat s;

	if (!new_fid(get(in, 4), top))
		return EBADF;
	if (stat(top, &s))
		return errno;
	put_qid(out, &s);
	return 0;
}

/* Walks from a fid along names. The answer has the names found; a new fid is made only if all
 * exist. */
static int walk(struct message *in, struct message *out)
{
	struct fid *f = get_fid(in);
	uint64_t n = get(in, 4), names = get(in, 2), found = 0;
	size_t count_at = out->at;
	char name[256], *path, *next;
	struct stat s;
	int error = 0;

	if (in->bad)
		return EBADF;
	path = strdup(f->path);
	put(out, 0, 2);
	while (found < names) {
		get_string(in, name, sizeof(name));
		next = in->bad ? NULL : path_of(path, name);
		if (!next || lstat(next, &s)) {
			error = next ? errno : EINVAL;
			free(next);
			break;
		}
		free(path);
		path = next;
		put_qid(out, &s);
		found++;
	}
	out->data[count_at] = (uint8_t)found;
	out->data[count_at + 1] = (uint8_t)(found >> 8);
	if (found == names) {
		if (n < FIDS && f == &fids[n])
			clunk(f);
		if (!new_fid(n, path))
			error = EBADF;
	}
	free(path);
	return found && found < names ? 0 : error;
}

static int opened(struct fid *f, struct message *out)
{
	struct stat s;

	if (f->fd < 0 || fstat(f->fd, &s))
		return errno;
	if (S_ISDIR(s.st_mode)) {
		f->dir = fdopendir(f->fd);
		if (!f->dir)
			return errno;
	}
	put_qid(out, &s);
	put(out, 0, 4);
	return 0;
}

static int lopen(struct message *in, struct message *out)
{
	struct fid *f = get_fid(in);
	uint64_t flags = get(in, 4);

	if (in->bad || f->fd >= 0)
		return EBADF;
	f->fd = open(f->path, (int)flags & (O_ACCMODE | O_TRUNC | O_APPEND | O_DIRECTORY));
	return opened(f, out);
}

static int lcreate(struct message *in, struct message *out)
{
	struct message again = *in;
	char *path = get_path(in);
	struct fid *f = get_fid(&again);
	uint64_t flags = get(in, 4), mode = get(in, 4);

	if (in->bad || f->fd >= 0) {
		free(path);
		return EBADF;
	}
	f->fd = open(path, ((int)flags & (O_ACCMODE | O_TRUNC | O_APPEND | O_EXCL)) | O_CREAT,
		     mode);
	if (f->fd < 0) {
		free(path);
		return errno;
	}
	free(f->path);
	f->path = path;
	return opened(f, out);
}

static int make_dir(struct message *in, struct message *out)
{
	char *path = get_path(in);
	uint64_t mode = get(in, 4);
	struct stat s;
	int error = 0;

	if (in->bad)
		error = EINVAL;
	else if (mkdir(path, mode) || lstat(path, &s))
		error = errno;
	else
		put_qid(out, &s);
	free(path);
	return error;
}

static int remove_at(struct message *in)
{
	char *path = get_path(in);
	int error = 0;

	if (in->bad)
		error = EINVAL;
	else if (remove(path))
		error = errno;
	free(path);
	return error;
}

static int rename_at(struct message *in)
{
	char *from = get_path(in), *to = get_path(in);
	int error = 0;

	if (in->bad)
		error = EINVAL;
	else if (rename(from, to))
		error = errno;
	free(from);
	free(to);
	return error;
}

static int get_attributes(struct message *in, struct message *out)
{
	struct fid *f = get_fid(in);
	struct stat s;

	if (in->bad)
		return EBADF;
	if (f->fd >= 0 ? fstat(f->fd, &s) : lstat(f->path, &s))
		return errno;
	/* All attributes except time of birth, generation and version. */
	put(out, 0x7ff, 8);
	put_qid(out, &s);
	put(out, s.st_mode, 4);
	put(out, s.st_uid, 4);
	put(out, s.st_gid, 4);
	put(out, s.st_nlink, 8);
	put(out, s.st_rdev, 8);
	put(out, (uint64_t)s.st_size, 8);
	put(out, (uint64_t)s.st_blksize, 8);
	put(out, (uint64_t)s.st_blocks, 8);
	put(out, (uint64_t)s.st_atim.tv_sec, 8);
	put(out, (uint64_t)s.st_atim.tv_nsec, 8);
	put(out, (uint64_t)s.st_mtim.tv_sec, 8);
	put(out, (uint64_t)s.st_mtim.tv_nsec, 8);
	put(out, (uint64_t)s.st_ctim.tv_sec, 8);
	put(out, (uint64_t)s.st_ctim.tv_nsec, 8);
	for (int i = 0; i < 4; i++)
		put(out, 0, 8);
	return 0;
}

static int set_attributes(struct message *in)
{
	enum { MODE = 1, SIZE = 8 };
	struct fid *f = get_fid(in);
	uint64_t valid = get(in, 4), mode = get(in, 4), size;

	get(in, 8);
	size = get(in, 8);
	if (in->bad)
		return EBADF;
	if ((valid & MODE && chmod(f->path, mode & 07777)) ||
	    (valid & SIZE && truncate(f->path, (off_t)size)))
		return errno;
	return 0;
}

static int read_dir(struct message *in, struct message *out)
{
	struct fid *f = get_fid(in);
	uint64_t offset = get(in, 8), count = get(in, 4);
	size_t count_at = out->at;
	struct message entries;
	struct dirent *e;

	if (in->bad || !f->dir)
		return EBADF;
	put(out, 0, 4);
	if (offset)
		seekdir(f->dir, (long)offset);
	else
		rewinddir(f->dir);
	if (count > out->size - out->at)
		count = out->size - out->at;
	entries = (struct message){ .data = out->data + out->at, .size = count };
	while ((e = readdir(f->dir))) {
		struct stat s = { .st_ino = e->d_ino,
				  .st_mode = e->d_type == DT_DIR ? S_IFDIR : S_IFREG };
		size_t before = entries.at;

		put_qid(&entries, &s);
		put(&entries, (uint64_t)e->d_off, 8);
		put(&entries, e->d_type, 1);
		put_string(&entries, e->d_name);
		if (entries.bad) {
			entries.at = before;
			break;
		}
	}
	out->at += entries.at;
	for (int i = 0; i < 4; i++)
		out->data[count_at + i] = (uint8_t)(entries.at >> 8 * i);
	return 0;
}

static int read_file(struct message *in, struct message *out)
{
	struct fid *f = get_fid(in);
	uint64_t offset = get(in, 8), count = get(in, 4);
	ssize_t n;

	if (in->bad || f->fd < 0)
		return EBADF;
	if (count > out->size - out->at - 4)
		count = out->size - out->at - 4;
	n = pread(f->fd, out->data + out->at + 4, count, (off_t)offset);
	if (n < 0)
		return errno;
	put(out, (uint64_t)n, 4);
	out->at += (size_t)n;
	return 0;
}

static int write_file(struct message *in, struct message *out)
{
	struct fid *f = get_fid(in);
	uint64_t offset = get(in, 8), count = get(in, 4);
	ssize_t n;

	if (in->bad || f->fd < 0 || count > in->size - in->at)
		return EBADF;
	n = pwrite(f->fd, in->data + in->at, count, (off_t)offset);
	if (n < 0)
		return errno;
	put(out, (uint64_t)n, 4);
	return 0;
}

static int file_system(struct message *in, struct message *out)
{
	struct fid *f = get_fid(in);
	struct statfs s;

	if (in->bad)
		return EBADF;
	if (statfs(f->path, &s))
		return errno;
	put(out, (uint64_t)s.f_type, 4);
	put(out, (uint64_t)s.f_bsize, 4);
	put(out, s.f_blocks, 8);
	put(out, s.f_bfree, 8);
	put(out, s.f_bavail, 8);
	put(out, s.f_files, 8);
	put(out, s.f_ffree, 8);
	put(out, 0, 8);
	put(out, 255, 4);
	return 0;
}

static int sync_file(struct message *in)
{
	struct fid *f = get_fid(in);

	return in->bad || f->fd < 0 ? EBADF : fsync(f->fd) ? errno : 0;
}

static int serve(uint8_t type, struct message *in, struct message *out)
{
	struct fid *f;

	switch (type) {
	case TVERSION:
		return version(in, out);
	case TATTACH:
		return attach(in, out);
	case TWALK:
		return walk(in, out);
	case TLOPEN:
		return lopen(in, out);
	case TLCREATE:
		return lcreate(in, out);
	case TMKDIR:
		return make_dir(in, out);
	case TUNLINKAT:
		return remove_at(in);
	case TRENAMEAT:
		return rename_at(in);
	case TGETATTR:
		return get_attributes(in, out);
	case TSETATTR:
		return set_attributes(in);
	case TREADDIR:
		return read_dir(in, out);
	case TREAD:
		return read_file(in, out);
	case TWRITE:
		return write_file(in, out);
	case TSTATFS:
		return file_system(in, out);
	case TFSYNC:
		return sync_file(in);
	case TFLUSH:
		/* Requests are served in order, so the request to flush has been answered. */
		return 0;
	case TCLUNK:
		f = get_fid(in);
		if (in->bad)
			return EBADF;
		clunk(f);
		return 0;
	default:
		return EOPNOTSUPP;
	}
}

/* Answers a request; returns the answer's length. */
static size_t answer(uint8_t *request, size_t length, uint8_t *room)
{
	struct message in = { .data = request, .size = length };
	struct message out = { .data = room, .size = MSIZE };
	uint64_t size = get(&in, 4), type = get(&in, 1), tag = get(&in, 2);
	int error;

	out.at = HEADER;
	error = in.bad || size != length ? EPROTO : serve((uint8_t)type, &in, &out);
	if (!error && out.bad)
		error = EMSGSIZE;
	if (error) {
		out.at = HEADER;
		out.bad = 0;
		put(&out, (uint64_t)error, 4);
	}
	size = out.at;
	out.at = 0;
	put(&out, size, 4);
	put(&out, error ? RLERROR : type + 1, 1);
	put(&out, tag, 2);
	return size;
}

/* ---- the connection -----------------------------------------------------------------------------
 */
/* When the client leaves, this moves the QP to ERR, which ends the wait for the next request. */
static void *watch(void *arg)
{
	struct rdma_cm_id *id = arg;
	struct rdma_cm_event *event;
	int gone = 0;

	while (!gone && !rdma_get_cm_event(id->channel, &event)) {
		gone = event->event == RDMA_CM_EVENT_DISCONNECTED ||
		       event->event == RDMA_CM_EVENT_DEVICE_REMOVAL;
		rdma_ack_cm_event(event);
	}
	rdma_disconnect(id);
	return NULL;
}

static void connection(struct rdma_cm_id *id)
{
	uint8_t *requests = calloc(REQUESTS + 1, MSIZE), *reply = requests + REQUESTS * MSIZE;
	struct ibv_mr *mr = rdma_reg_msgs(id, requests, (REQUESTS + 1) * (size_t)MSIZE);
	pthread_t watcher;
	uint8_t timeout = ACK_TIMEOUT;
	struct ibv_wc wc;
	uint8_t *r;

	if (!requests || !mr)
		die("memory");
	for (size_t i = 0; i < REQUESTS; i++) {
		r = requests + i * MSIZE;
		if (rdma_post_recv(id, r, r, MSIZE, mr))
			die("receive");
	}
	if (rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
			    sizeof(timeout)))
		die("time-out");
	if (rdma_accept(id, NULL))
		die("accept");
	if (pthread_create(&watcher, NULL, watch, id))
		die("thread");
	while (rdma_get_recv_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS) {
		r = (uint8_t *)(uintptr_t)wc.wr_id;
		size_t length = answer(r, wc.byte_len, reply);

		/* The client may send another request when it has the answer. */
		if (rdma_post_recv(id, r, r, MSIZE, mr) ||
		    rdma_post_send(id, NULL, reply, length, mr, IBV_SEND_SIGNALED) ||
		    rdma_get_send_comp(id, &wc) != 1 || wc.status != IBV_WC_SUCCESS)
			break;
	}
	pthread_join(watcher, NULL);
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
	free(requests);
}

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP },
			     *where;
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1,
			 .max_recv_wr = REQUESTS,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct rdma_cm_id *listener, *id;

	if (argc != 3) {
		fprintf(stderr, "usage: p9_server ADDRESS DIR\n");
		return 2;
	}
	top = argv[2];
	if (rdma_getaddrinfo(argv[1], "5640", &hints, &where) ||
	    rdma_create_ep(&listener, where, NULL, &attr) || rdma_listen(listener, 8))
		die("listen");
	printf("listening\n");
	fflush(stdout);
	while (!rdma_get_request(listener, &id))
		connection(id);
	die("connection");
	return 1;
}
