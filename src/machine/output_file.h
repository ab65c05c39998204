/*
 * A file that the user named to be written: a recording, a picture.
 *
 *   output_file_open(&out, path, &diag);       out.fd is written to
 *   output_file_keep(&out, &diag);             now the file is at its path; an earlier file there is PATH.old
 *   output_file_close(&out);                   always; a file that was not kept is gone, and the path is untouched
 *
 * A file that another process makes, at a place that this one chooses:
 *
 *   output_file_reserve(&out, folder, path, its_user, &diag);   out.temporary is the name to be made
 *   output_file_keep(&out, &diag), output_file_close(&out)       as above
 *
 * A new file has mode 0600 and, under sudo, belongs to the user who called sudo. It has no name
 * until output_file_keep(). Without O_TMPFILE it is `.spoor-RANDOM.part`, locked while its writer
 * lives; the next output_file_open() there removes those that no process locks. A link at the path
 * is refused. A pipe or a device is written directly, if it belongs to the user or root. The user's
 * own rights apply.
 */
#ifndef SPOOR_MACHINE_OUTPUT_FILE_H
#define SPOOR_MACHINE_OUTPUT_FILE_H

#include <stdbool.h>
#include <stdint.h>

struct diag;
struct stat;

#define OUTPUT_NAME_ROOM 256u

struct output_file {
	int fd;     /* -1: not open */
	int folder; /* O_PATH; -1: a pipe, a device or the like */
	/* O_PATH: the earlier PATH.old, whose blocks output_file_close() frees; -1: none */
	int dropped;
	bool kept;
	bool replaced;               /* an earlier file at the path is now PATH.old */
	bool unnamed;                /* O_TMPFILE: the file has no name yet */
	char name[OUTPUT_NAME_ROOM]; /* in the folder */
	char temporary[64];          /* its temporary name, or "" */
};

/* The message names `path`. -ELOOP: the path is a link. */
int output_file_open(struct output_file *out, const char *path, struct diag *diag);

/*
 * The same for a file that this program names, in a folder of the user's choice. -EEXIST: a pipe, a
 * device or the like, which could keep us waiting.
 */
int output_file_open_regular(struct output_file *out, const char *path, struct diag *diag);

/*
 * Takes ownership of `folder` (O_PATH), also on failure. The last component of `path` must be free
 * there, or a regular file of the caller or of `also_uid`. No file is created: out->fd stays -1.
 * -ELOOP: a link. -EEXIST: a pipe, a device or the like. -EPERM: another user's file.
 */
int output_file_reserve(struct output_file *out, int folder, const char *path, uint32_t also_uid,
	struct diag *diag);

int output_file_keep(struct output_file *out, struct diag *diag);

/*
 * Instead of output_file_keep(): takes the place of the file with the status `old`, in one step,
 * with its mode and owner; no PATH.old remains. -ESTALE: another file is at the path.
 */
int output_file_replace(struct output_file *out, const struct stat *old, struct diag *diag);

/*
 * -EEXIST and a remedy if writing `path` (not "-") would remove the file with the status `input`:
 * it is that file, or the PATH.old that would be replaced.
 */
int output_file_spares(const char *path, const struct stat *input, struct diag *diag);

/*
 * Creates a folder (0700, of sudo's caller) unless it exists. With `own` an existing one must be no
 * link and belong to the user or root, because only that user may read its content.
 */
int output_folder_make(const char *path, bool own, struct diag *diag);

void output_file_close(struct output_file *out);

/*
 * Removes all temporary names. Async-signal-safe, so an open struct output_file must not be moved.
 */
void output_file_abandon(void);

/* The time, in UTC, for the name of a file: "20261126_214500". */
#define OUTPUT_STAMP_ROOM 32u
void output_file_stamp(char stamp[OUTPUT_STAMP_ROOM]);

#endif
