/*
 * See output_file.h. At most three names in one folder: a temporary one, the path's own, and
 * PATH.old.
 *
 * A file at the path is first linked to PATH.old; then the path gets the new file in one step. So
 * the path always names a whole file, and a temporary name may be removed at any time. On file
 * systems without hard links, the path does not exist for an instant.
 */
#include "machine/output_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "base/text.h"
#include "machine/rights.h"

#define FLAGS (O_WRONLY | O_CLOEXEC | O_NOCTTY)
#define TRIES 8
/* Open temporary names that a signal removes; the next start removes those beyond. */
#define OPEN_MAX_COUNT 4
#define SWEEP_ENTRIES  65536u /* the number of folder entries that are examined */
/* a younger file may not be locked yet, or another process writes it (output_file_reserve()) */
#define SWEEP_AGE_S 600

static const char old_suffix[] = ".old";
static const char part_prefix[] = ".spoor-";
static const char part_suffix[] = ".part";

/* For output_file_abandon(): a signal handler reaches only static data. */
static struct output_file *volatile named[OPEN_MAX_COUNT];

static void remember(struct output_file *out)
{
	for (size_t i = 0; i < OPEN_MAX_COUNT; i++)
		if (!named[i]) {
			named[i] = out;
			return;
		}
}

static void forget(const struct output_file *out)
{
	for (size_t i = 0; i < OPEN_MAX_COUNT; i++)
		if (named[i] == out)
			named[i] = NULL;
}

void output_file_abandon(void)
{
	for (size_t i = 0; i < OPEN_MAX_COUNT; i++)
		if (named[i])
			/* on failure the next start removes it */
			(void)unlinkat(named[i]->folder, named[i]->temporary, 0);
}

/* The user who called sudo. The variables are trusted only if root runs us. */
static bool sudo_user(uid_t *ret_uid, gid_t *ret_gid)
{
	const char *uid = getenv("SUDO_UID");
	const char *gid = getenv("SUDO_GID");
	char *end;

	if (getuid() != 0 || geteuid() != 0 || !uid || !gid || *uid < '0' || *uid > '9' ||
		*gid < '0' || *gid > '9')
		return false;
	errno = 0;
	unsigned long u = strtoul(uid, &end, 10);
	if (*end || errno || u >= UINT32_MAX)
		return false;
	unsigned long g = strtoul(gid, &end, 10);
	if (*end || errno || g >= UINT32_MAX)
		return false;
	*ret_uid = (uid_t)u;
	*ret_gid = (gid_t)g;
	return true;
}

static int take_name(struct output_file *out, const char *name)
{
	size_t len = strlen(name);

	if (!len || !strcmp(name, ".") || !strcmp(name, ".."))
		return -EISDIR;
	if (len >= sizeof(out->name))
		return -ENAMETOOLONG;
	memcpy(out->name, name, len + 1);
	return 0;
}

/* Splits "dir/name" into an O_PATH descriptor of dir and the name. */
static int open_folder(struct output_file *out, const char *path)
{
	const char *slash = strrchr(path, '/');
	int result = *path ? take_name(out, slash ? slash + 1 : path) : -ENOENT;

	if (result < 0)
		return result;
	cleanup(freep) char *folder =
		slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	if (!folder)
		return -ENOMEM;
	out->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return out->folder < 0 ? -errno : 0;
}

/*
 * Opens a pipe, a device or the like, through the descriptor that was checked. In a folder that
 * others may write to, another user's pipe could intercept our output, so it must belong to the
 * user or root.
 */
static int open_special(struct output_file *out, int place, const struct stat *st)
{
	char path[40];
	uid_t user = getuid();
	gid_t group;

	(void)sudo_user(&user, &group); /* none: keeps our own ids */
	if (S_ISLNK(st->st_mode))
		return -ELOOP;
	if (S_ISDIR(st->st_mode))
		return -EISDIR;
	if (st->st_uid != 0 && st->st_uid != user && st->st_uid != getuid())
		return -EPERM;
	text_set(path, "/proc/self/fd/%d", place);
	out->fd = open(path, FLAGS);
	return out->fd < 0 ? -errno : 0;
}

static int choose_temporary(struct output_file *out)
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	text_set(out->temporary, "%s%016" PRIx64 "%s", part_prefix, random, part_suffix);
	return 0;
}

static int make_temporary(struct output_file *out)
{
	int result = -EEXIST;

	for (int i = 0; i < TRIES && result == -EEXIST; i++) {
		result = choose_temporary(out);
		if (result < 0)
			break;
		out->fd = openat(out->folder, out->temporary, FLAGS | O_CREAT | O_EXCL | O_NOFOLLOW,
			0600);
		result = out->fd < 0 ? -errno : 0;
	}
	if (result < 0)
		out->temporary[0] = '\0';
	else
		remember(out);
	return result;
}

/* The kernel removes it with its last descriptor. It is linked to a name through /proc. */
static bool make_unnamed(struct output_file *out)
{
	if (access("/proc/self/fd", X_OK) < 0)
		return false;
	out->fd = openat(out->folder, ".", FLAGS | O_TMPFILE, 0600);
	out->unnamed = out->fd >= 0;
	return out->unnamed;
}

static bool is_temporary_name(const char *name)
{
	size_t prefix = strlen(part_prefix);

	return strncmp(name, part_prefix, prefix) == 0 &&
	       strspn(name + prefix, "0123456789abcdef") == 16 &&
	       strcmp(name + prefix + 16, part_suffix) == 0;
}

/*
 * Its writer, which would hold its lock, has ended. Locks work across pid namespaces; pids do not.
 */
static bool is_abandoned(int folder, const char *name, uid_t user)
{
	struct stat st;
	cleanup(closep) int fd =
		openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       (st.st_uid == user || st.st_uid == getuid()) &&
	       time(NULL) >= st.st_mtime + SWEEP_AGE_S && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

/* Removes temporary files of killed programs from the folder. */
static void sweep(int folder)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);
	uid_t user = getuid();
	gid_t group;
	const struct dirent *entry;

	if (!entries) {
		closep(&fd);
		return; /* a folder that is writable but not readable */
	}
	(void)sudo_user(&user, &group); /* none: keeps our own ids */
	for (unsigned i = 0; i < SWEEP_ENTRIES && (entry = readdir(entries)); i++)
		if (is_temporary_name(entry->d_name) && is_abandoned(folder, entry->d_name, user))
			(void)unlinkat(folder, entry->d_name, 0); /* on failure it remains */
	(void)closedir(entries);                                  /* read only */
}

static int open_new(struct output_file *out)
{
	uid_t uid;
	gid_t gid;

	sweep(out->folder);
	int result = make_unnamed(out) ? 0 : make_temporary(out);

	if (result < 0)
		return result;
	/* is_abandoned() tests it; on a file system without locks such files remain */
	(void)flock(out->fd, LOCK_EX | LOCK_NB);
	/* The umask may have cleared bits. Other users get no rights. */
	if (fchmod(out->fd, 0600) < 0 && errno != EPERM && errno != EOPNOTSUPP && errno != ENOTSUP)
		return -errno;
	/* On a file system without owners, or as root without CAP_CHOWN, root stays the owner. */
	if (sudo_user(&uid, &gid))
		(void)!fchown(out->fd, uid, gid);
	return 0;
}

static int open_at(struct output_file *out, const char *path, bool regular)
{
	struct stat st;
	int result = open_folder(out, path);

	if (result < 0)
		return result;
	cleanup(closep) int place = openat(out->folder, out->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (place < 0 && errno != ENOENT)
		return -errno;
	if (place >= 0 && fstat(place, &st) < 0)
		return -errno;
	if (place < 0 || S_ISREG(st.st_mode))
		return open_new(out);
	if (regular && !S_ISLNK(st.st_mode) && !S_ISDIR(st.st_mode))
		return -EEXIST;
	closep(&out->folder);
	out->folder = -1;
	return open_special(out, place, &st);
}

static int tell(int error, const char *path, struct diag *diag)
{
	if (error == -ELOOP) {
		diag_set(diag, error,
			"cannot write '%s': it is a link, and nothing is written through one",
			path);
		diag_remedy(diag, "name the file itself, or - for standard output");
	} else if (error == -EPERM) {
		diag_set(diag, error, "cannot write '%s': it is another user's", path);
		diag_remedy(diag, "choose another place with -o FILE");
	} else if (error == -EEXIST) {
		diag_set(diag, error, "cannot write '%s': it is no regular file", path);
		diag_remedy(diag, "choose another place with -o FILE");
	} else {
		diag_set(diag, error, "cannot write '%s': %m", path);
		diag_remedy(diag, "choose another place with -o FILE");
	}
	return error;
}

static int open_explained(struct output_file *out, const char *path, bool regular,
	struct diag *diag)
{
	uint64_t before = rights_lower();

	*out = (struct output_file){ .fd = -1, .folder = -1, .dropped = -1 };
	int result = open_at(out, path, regular);
	if (result < 0)
		output_file_close(out);
	rights_restore(before);
	return result < 0 ? tell(result, path, diag) : 0;
}

int output_file_open(struct output_file *out, const char *path, struct diag *diag)
{
	return open_explained(out, path, false, diag);
}

int output_file_open_regular(struct output_file *out, const char *path, struct diag *diag)
{
	return open_explained(out, path, true, diag);
}

static int check_place(const struct output_file *out, uid_t also)
{
	struct stat st;
	uid_t user = getuid();
	gid_t group;

	(void)sudo_user(&user, &group); /* none: keeps our own ids */
	if (fstatat(out->folder, out->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISLNK(st.st_mode))
		return -ELOOP;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return -EEXIST;
	return st.st_uid == user || st.st_uid == getuid() || st.st_uid == also ? 0 : -EPERM;
}

int output_file_reserve(struct output_file *out, int folder, const char *path, uint32_t also_uid,
	struct diag *diag)
{
	const char *slash = strrchr(path, '/');

	*out = (struct output_file){ .fd = -1, .folder = folder, .dropped = -1 };
	uint64_t before = rights_lower();
	int result = take_name(out, slash ? slash + 1 : path);

	if (result == 0)
		result = check_place(out, also_uid);
	if (result == 0)
		result = choose_temporary(out);
	if (result == 0)
		remember(out);
	rights_restore(before);
	if (result < 0)
		output_file_close(out);
	return result < 0 ? tell(result, path, diag) : 0;
}

/* Links an unnamed file to this name. -EEXIST: the name is taken. */
static int link_unnamed(const struct output_file *out, const char *name)
{
	char path[40];

	text_set(path, "/proc/self/fd/%d", out->fd);
	return linkat(AT_FDCWD, path, out->folder, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

/* The path is free: this takes the name and fails if another file takes it at the same time. */
static int put_in_place(const struct output_file *out)
{
	if (out->unnamed)
		return link_unnamed(out, out->name);
	if (renameat2(out->folder, out->temporary, out->folder, out->name, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	/* The file system does not support this rename. */
	if (linkat(out->folder, out->temporary, out->folder, out->name, 0) == 0)
		return unlinkat(out->folder, out->temporary, 0) < 0 ? -errno : 0;
	if (errno == EEXIST)
		return -EEXIST;
	return renameat(out->folder, out->temporary, out->folder, out->name) < 0 ? -errno : 0;
}

/* Only a file with a name can be exchanged. */
static int name_it(struct output_file *out)
{
	int result = -EEXIST;

	if (!out->unnamed)
		return 0;
	for (int i = 0; i < TRIES && result == -EEXIST; i++) {
		result = choose_temporary(out);
		if (result == 0)
			result = link_unnamed(out, out->temporary);
	}
	if (result < 0) {
		out->temporary[0] = '\0';
		return result;
	}
	remember(out);
	out->unnamed = false;
	return 0;
}

/* Renames the file at the path to PATH.old. */
static int replace(struct output_file *out)
{
	char old[OUTPUT_NAME_ROOM + sizeof(old_suffix)];
	int result = name_it(out);

	if (result < 0)
		return result;
	text_set(old, "%s%s", out->name, old_suffix);
	/*
	 * The last reference to a file frees its blocks, which takes seconds for a large file on a
	 * busy disk with `discard`. A recording runs meanwhile, so its rings would overflow.
	 */
	closep(&out->dropped);
	out->dropped = openat(out->folder, old, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	(void)unlinkat(out->folder, old, 0); /* if an old file remains, the link fails */
	if (linkat(out->folder, out->name, out->folder, old, 0) == 0) {
		/* Not replaced: ext4 would first write the new file to disk. */
		if (renameat2(out->folder, out->temporary, out->folder, out->name,
			    RENAME_EXCHANGE) == 0)
			return unlinkat(out->folder, out->temporary, 0) < 0 ? -errno : 0;
		if (errno != EINVAL && errno != ENOSYS)
			return -errno;
		return renameat(out->folder, out->temporary, out->folder, out->name) < 0 ? -errno
											 : 0;
	}
	if (errno == EEXIST || errno == ENOENT)
		return -errno;
	/* The file system has no hard links, or fs.protected_hardlinks forbids this one. */
	if (renameat(out->folder, out->name, out->folder, old) < 0)
		return -errno;
	return put_in_place(out);
}

static int keep(struct output_file *out)
{
	int result = -EEXIST;

	/* Other processes may create and remove files there meanwhile: limited tries. */
	for (int i = 0; i < TRIES && (result == -EEXIST || result == -ENOENT); i++) {
		struct stat st;
		if (fstatat(out->folder, out->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
			result = errno == ENOENT ? put_in_place(out) : -errno;
		} else if (S_ISREG(st.st_mode)) {
			result = replace(out);
			out->replaced = result == 0;
		} else {
			return S_ISLNK(st.st_mode) ? -ELOOP : -EEXIST;
		}
	}
	return result;
}

/* The file is complete, and has its own name. */
static void set_kept(struct output_file *out)
{
	out->kept = true;
	out->unnamed = false;
	forget(out);
	out->temporary[0] = '\0';
}

int output_file_keep(struct output_file *out, struct diag *diag)
{
	if (out->kept || (!out->unnamed && !out->temporary[0]))
		return 0;
	uint64_t before = rights_lower();
	int result = keep(out);

	rights_restore(before);
	if (result < 0)
		return tell(result, out->name, diag);
	set_kept(out);
	return 0;
}

static bool is_at(const struct output_file *out, const char *name, const struct stat *file)
{
	struct stat st;

	return fstatat(out->folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

static int take_place(struct output_file *out, const struct stat *old)
{
	int result = name_it(out);

	if (result < 0)
		return result;
	if (renameat2(out->folder, out->temporary, out->folder, out->name, RENAME_EXCHANGE) < 0) {
		if (errno != EINVAL && errno != ENOSYS)
			return -errno;
		/* The file system does not support it; the check may be out of date by then. */
		if (!is_at(out, out->name, old))
			return -ESTALE;
		return renameat(out->folder, out->temporary, out->folder, out->name) < 0 ? -errno
											 : 0;
	}
	if (is_at(out, out->temporary, old))
		return unlinkat(out->folder, out->temporary, 0) < 0 ? -errno : 0;
	/* Another file had taken the path: it gets it back. */
	if (renameat2(out->folder, out->temporary, out->folder, out->name, RENAME_EXCHANGE) == 0)
		return -ESTALE;
	result = -errno;
	forget(out); /* it stays under the temporary name */
	out->temporary[0] = '\0';
	return result;
}

int output_file_replace(struct output_file *out, const struct stat *old, struct diag *diag)
{
	uint64_t before = rights_lower();

	/* Without these rights the file stays the caller's, with mode 0600. */
	if (fchown(out->fd, old->st_uid, old->st_gid) == 0)
		(void)!fchmod(out->fd, old->st_mode & 0777);
	int result = take_place(out, old);
	rights_restore(before);
	if (result == -ESTALE)
		return diag_set(diag, result, "'%s' was replaced by another file meanwhile",
			out->name);
	if (result < 0)
		return tell(result, out->name, diag);
	set_kept(out);
	return 0;
}

/* A link is not followed: output_file_open() refuses it. */
static bool is_file(const char *path, const struct stat *file)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_dev == file->st_dev &&
	       st.st_ino == file->st_ino;
}

int output_file_spares(const char *path, const struct stat *input, struct diag *diag)
{
	char old[4096 + sizeof(old_suffix)];
	struct stat st;
	int r = 0;

	if (strcmp(path, "-") == 0 || strlen(path) > 4096)
		return 0;
	text_set(old, "%s%s", path, old_suffix);
	if (is_file(path, input))
		r = diag_set(diag, -EEXIST, "cannot write '%s': it is the file that is read", path);
	else if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) && is_file(old, input))
		r = diag_set(diag, -EEXIST,
			"cannot write '%s': the file there would become '%s', which is the file that is read",
			path, old);
	if (r < 0)
		diag_remedy(diag, "choose another name with -o");
	return r;
}

static int make_folder(const char *path, bool own)
{
	struct stat st;
	uid_t uid = getuid();
	gid_t gid;
	bool made = mkdir(path, 0700) == 0;
	bool sudo = sudo_user(&uid, &gid);

	if (!made && errno != EEXIST)
		return -errno;
	if (!made && !own)
		return 0;
	cleanup(closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	if (made && sudo)
		(void)!fchown(fd, uid, gid); /* as in open_new() */
	if (!made && (fstat(fd, &st) < 0 ||
			     (st.st_uid != 0 && st.st_uid != uid && st.st_uid != getuid())))
		return -EPERM;
	return 0;
}

int output_folder_make(const char *path, bool own, struct diag *diag)
{
	uint64_t before = rights_lower();
	int result = make_folder(path, own);

	rights_restore(before);
	if (result == 0)
		return 0;
	if (result == -EPERM)
		diag_set(diag, result,
			"cannot make the folder '%s': it is there, and another user's", path);
	else
		diag_set(diag, result, "cannot make the folder '%s': %m", path);
	diag_remedy(diag, "choose another place with -d DIR");
	return result;
}

void output_file_close(struct output_file *out)
{
	if (out->temporary[0]) {
		uint64_t before = rights_lower();
		/* on failure it remains, empty or incomplete */
		(void)unlinkat(out->folder, out->temporary, 0);
		rights_restore(before);
	}
	forget(out);
	closep(&out->fd);
	closep(&out->folder);
	closep(&out->dropped);
	*out = (struct output_file){ .fd = -1, .folder = -1, .dropped = -1 };
}

void output_file_stamp(char stamp[OUTPUT_STAMP_ROOM])
{
	time_t now = time(NULL);
	struct tm utc;

	gmtime_r(&now, &utc);
	(void)strftime(stamp, OUTPUT_STAMP_ROOM, "%Y%m%d_%H%M%S", &utc); /* fits */
}
