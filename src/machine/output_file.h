/*
 * A file that the user named to be written: a recording, a picture.
 *
 *   output_file_open(&out, path, &diag);       out.fd is written to
 *   output_file_keep(&out, &diag);             from here on it stands at its path; what stood there is PATH.old
 *   output_file_close(&out);                   in any case; what was not kept is gone, and what stood at the path is untouched
 *
 * A file that another process makes, at a place that this one chooses:
 *
 *   output_file_reserve(&out, folder, path, its_user, &diag);   out.temporary is the name to be made
 *   output_file_keep(&out, &diag), output_file_close(&out)       as above
 *
 * A new file is 0600 and, when sudo runs us, belongs to the user who called it. It has no name until it is kept, so a killed program leaves nothing. Where the
 * file system has no such files (O_TMPFILE) it is `.spoor-RANDOM.part` and locked while its writer lives; the next output_file_open() in that folder removes
 * those that no process locks. A link at the path is refused. What is no regular file (a pipe, /dev/null) is written as it is, if it belongs to the user or to root.
 * The user's own rights decide (rights_lower()).
 */
#ifndef SPOOR_MACHINE_OUTPUT_FILE_H
#define SPOOR_MACHINE_OUTPUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct stat;

#define OUTPUT_NAME_ROOM 256u

struct output_file {
	int fd;                           /* -1: not open */
	int folder;                       /* O_PATH; -1: not a file of ours */
	bool kept;
	bool replaced;                    /* kept, and an earlier file at the path is now PATH.old */
	bool unnamed;                     /* O_TMPFILE: it has no name yet */
	char name[OUTPUT_NAME_ROOM];      /* in the folder */
	char temporary[64];               /* likewise, while the file has this name; else "" */
};

/* The failure names `path`. -ELOOP: a link stands there. */
int output_file_open(struct output_file *out, const char *path, struct diag *diag);

/*
 * Takes `folder` (O_PATH), also when it fails. The name, the last part of `path`, must be free there, or a regular file of the caller or of
 * `also_uid`. Nothing is made: out->fd stays -1. -ELOOP: a link is at the name. -EEXIST: a pipe, a device or the like. -EPERM: the file is another user's.
 */
int output_file_reserve(struct output_file *out, int folder, const char *path, uint32_t also_uid, struct diag *diag);

int output_file_keep(struct output_file *out, struct diag *diag);

/*
 * Whether writing `path` would take away the file that `input` is the status of: it is that file, under whatever name, or the PATH.old that a file at the
 * path would replace. -EEXIST: it would, and `diag` names a remedy. Standard output ("-") is none.
 */
int output_file_spares(const char *path, const struct stat *input, struct diag *diag);

/*
 * Makes a folder (0700, the sudo caller's) unless it is there. `own`: one that is there must be no link and belong to the user or root, because what is
 * put into it is the user's only.
 */
int output_folder_make(const char *path, bool own, struct diag *diag);

void output_file_close(struct output_file *out);

/* Removes the temporary names of all open files, before a signal ends the program. Async-signal-safe. An open file does not move in memory. */
void output_file_abandon(void);

#endif
