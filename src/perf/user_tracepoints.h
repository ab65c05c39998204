/*
 * The tracepoints that programs have registered with the kernel's user_events (Linux 6.4 or later), as tracefs lists
 * them:
 *
 *   user_tracepoints_open(&tracepoints, &diag);
 *   user_tracepoints_list(&tracepoints, on_tracepoint, context);       those registered now
 *   user_tracepoints_read(&tracepoints, group, name, text, room);      the description of one
 *   user_tracepoints_close(&tracepoints);
 */
#ifndef SPOOR_PERF_USER_TRACEPOINTS_H
#define SPOOR_PERF_USER_TRACEPOINTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct diag;

struct user_tracepoints {
	int root; /* of tracefs; -1: not open */
};

/*
 * -ENOSYS: this kernel has no user_events. -EOPNOTSUPP: tracefs is not mounted. -EACCES: this user may not read it. The
 * diag has a sentence and a remedy.
 */
int user_tracepoints_open(struct user_tracepoints *ret_tracepoints, struct diag *diag);

/*
 * Calls `each` with the folder and the entry of each tracepoint, at most USER_TRACEPOINTS_LISTED_MAX. 0, or a negative
 * errno; a folder that does not exist yet has none.
 */
#define USER_TRACEPOINTS_LISTED_MAX 65536u
typedef void user_tracepoint_fn(void *context, const char *group, const char *entry);
int user_tracepoints_list(const struct user_tracepoints *tracepoints, user_tracepoint_fn *each,
	void *context);

/*
 * The description of a tracepoint: at most `room` - 1 bytes and a NUL. Returns the length; -ENOENT: it exists no more;
 * or another negative errno.
 */
ssize_t user_tracepoints_read(const struct user_tracepoints *tracepoints, const char *group,
	const char *entry, char *text, size_t room);

/*
 * The tracepoint's name of an entry, which the kernel extends by a dot and hexadecimal digits in the group
 * user_events_multi. The length of the name.
 */
size_t user_tracepoint_name_len(const char *group, const char *entry);

/*
 * A descriptor of user_events_data, with which programs register tracepoints and write events; the caller closes it.
 * -EACCES: this user may not write it. The diag has a sentence.
 */
int user_tracepoints_open_data(const struct user_tracepoints *tracepoints, struct diag *diag);

/*
 * Registers a tracepoint, "name u8 field; ...", until the descriptor is closed; programs that register the same one
 * share it. The kernel writes `word` while it is enabled, so the word must exist as long as the descriptor. 0 or a
 * negative errno.
 */
int user_tracepoint_register(int data_fd, const char *description, uint32_t *word);

void user_tracepoints_close(struct user_tracepoints *tracepoints);

#endif
