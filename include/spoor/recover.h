/*
 * The last events of a program that crashed, hangs, or was killed, out of its rings. The program has to have started the library with
 * SPOOR_START_RECOVERABLE; a session says what is fired into the rings (spoor_session_start_rings() is the cheapest).
 *
 * Where the rings are:
 * - in spoor_options.recover_path, a file that outlives the process (on /dev/shm it costs no disk);
 * - else in a memfd, as long as the process exists: the /proc/PID/fd/N that points to "/memfd:spoor-rings" (a core_pattern handler still sees it).
 *
 * This part needs no started library and looks at foreign bytes only: whatever they are, it ends with an error or a whole nettrace file.
 */
#ifndef SPOOR_RECOVER_H
#define SPOOR_RECOVER_H

#include <spoor/spoor.h>

#ifdef __cplusplus
extern "C" {
#endif

struct spoor_recovered {
	size_t size;          /* sizeof(struct spoor_recovered) */
	uint64_t process_id;
	uint64_t events;      /* written */
	uint64_t broken;      /* records that could not be read, or whose kind is not known */
	uint64_t rings;       /* one a thread, and one for its signal handlers */
	uint64_t first_ns, last_ns; /* CLOCK_MONOTONIC of the program's machine and boot */
	char command_line[1024];
};

/*
 * Reads the rings behind `fd` (left open, position not used) and writes a nettrace file. -EBADMSG: these are no rings. -ENODATA: rings without an event.
 * A ring that was another thread's before has all its events under its last thread's id.
 */
SPOOR_API int spoor_recover(int fd, const char *out_path, struct spoor_recovered *ret_recovered);

#ifdef __cplusplus
}
#endif

#endif
