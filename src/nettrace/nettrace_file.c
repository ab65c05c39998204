/* See nettrace_file.h. */
#include "nettrace/nettrace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/diag.h"

int nettrace_file_error(const struct nettrace_file *f, int error, struct diag *diag)
{
	diag_set(diag, error, "cannot write '%s': %m", f->name);
	if (error == -EFBIG)
		diag_remedy(diag,
			"ulimit -f unlimited lifts the limit of file sizes; what was written up to then can be read");
	if (error == -ENOSPC || error == -EDQUOT)
		diag_remedy(diag, "make room on the disk, or write to another one with -o");
	return error;
}

/* All of the data, or an error. *ret_done: how much went out before it. */
static int write_out(struct nettrace_file *f, const uint8_t *data, size_t size, uint64_t offset,
	size_t *ret_done)
{
	*ret_done = 0;
	while (*ret_done < size) {
		const uint8_t *from = data + *ret_done;
		size_t left = size - *ret_done;
		ssize_t n = f->in_place
				    ? f->write_at(f->fd, from, left, (off_t)(offset + *ret_done))
				    : write(f->fd, from, left);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		*ret_done += (size_t)n;
	}
	return 0;
}

/*
 * First the bytes after the first word, with a new zero word at the end; then the first word, over
 * the old zero word. Its offset is a multiple of 4, so no page boundary splits it.
 */
static int put_in_place(struct nettrace_file *f, struct bytes *out)
{
	size_t size = out->len;
	size_t done;

	if (!bytes_reserve(out, 4))
		return -ENOMEM;
	memset(out->data + size, 0, 4); /* the next zero word; not counted in len */
	int r = write_out(f, out->data + 4, size, f->offset + 4, &done);

	if (r == 0)
		r = write_out(f, out->data, 4, f->offset, &done);
	/* The file is valid with or without the bytes after the zero word. */
	if (r < 0 && ftruncate(f->fd, (off_t)f->offset + 4) < 0)
		errno = 0;
	return r;
}

/* Where nothing is rewritten. */
static int put_behind(struct nettrace_file *f, const struct bytes *out)
{
	size_t done;
	int r = write_out(f, out->data, out->len, 0, &done);

	if (r < 0 && done &&
		(!f->regular || ftruncate(f->fd, (off_t)(f->append_start + f->offset)) < 0))
		f->dead = r;
	return r;
}

int nettrace_file_put(struct nettrace_file *f, struct bytes *out, struct diag *diag)
{
	int r = 0;

	if (f->packed) {
		struct bytes *plain = out;
		if (plain->len)
			r = packed_file_add(f->packed, plain->data, plain->len);
		if (r < 0) {
			f->dead = r;
			return nettrace_file_error(f, r, diag);
		}
		bytes_reset(plain); /* the packer has it now */
		out = packed_file_pending(f->packed);
	}
	size_t size = out->len;

	if (!size)
		return 0;
	if (f->packed && f->in_place)
		r = packed_file_put(f->packed, f->fd, f->write_at);
	else if (f->in_place)
		r = put_in_place(f, out);
	else
		r = put_behind(f, out);
	if (r < 0)
		return nettrace_file_error(f, r, diag);
	f->offset = f->packed && f->in_place ? packed_file_size(f->packed) : f->offset + size;
	bytes_reset(out);
	return 0;
}

int nettrace_file_begin(struct nettrace_file *f, bool packed, struct bytes *head, struct diag *diag)
{
	struct stat status;
	int flags = fcntl(f->fd, F_GETFL);

	if (flags < 0 || fstat(f->fd, &status) < 0)
		return nettrace_file_error(f, -errno, diag);
	f->regular = S_ISREG(status.st_mode);
	f->append_start = (uint64_t)status.st_size;
	f->in_place = f->regular && !(flags & O_APPEND) && status.st_size == 0 &&
		      lseek(f->fd, 0, SEEK_CUR) == 0;
	if (packed) {
		int r = packed_file_new(&f->packed);
		if (r < 0)
			return r;
	}
	if (!f->in_place || f->packed)
		return nettrace_file_put(f, head, diag);
	/* With its zero word in one write, as a part of the head is no valid file. */
	size_t size = head->len;
	size_t done;

	bytes_u32(head, 0);
	int r = head->failed ? -ENOMEM : write_out(f, head->data, size + 4, 0, &done);
	if (r < 0) {
		if (ftruncate(f->fd, 0) < 0)
			errno = 0;
		return nettrace_file_error(f, r, diag);
	}
	f->offset = size;
	bytes_reset(head);
	return 0;
}

int nettrace_file_end(struct nettrace_file *f, struct bytes *out, struct diag *diag)
{
	if (f->in_place) {
		if (f->packed && packed_file_cut(f->packed, f->fd) < 0)
			errno = 0; /* the file is valid with the room after the frame, too */
		/*
		 * For a process that writes next through the same open file, as in a shell's group.
		 */
		if (lseek(f->fd, (off_t)f->offset + (f->packed ? 0 : 4), SEEK_SET) < 0)
			errno = 0;
		return 0;
	}
	bytes_u32(out, 0);
	if (f->packed) {
		int r = packed_file_add(f->packed, out->data, out->len);
		bytes_reset(out);
		if (r == 0)
			r = packed_file_finish(f->packed);
		if (r < 0)
			return nettrace_file_error(f, r, diag);
	}
	return nettrace_file_put(f, out, diag);
}

void nettrace_file_done(struct nettrace_file *f)
{
	packed_file_free(f->packed);
}
