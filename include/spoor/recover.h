/*
 * Reads the last events of a program that crashed, hangs or was killed from its rings. The program
 * must have started the library with SPOOR_START_RECOVERABLE. A session enables the events that are
 * fired into the rings; spoor_session_start_rings() is the cheapest.
 *
 * Where the rings are:
 * - in spoor_options.recover_path, a file that outlives the process (on /dev/shm it needs no disk);
 * - else in a memfd, as long as the process exists: the /proc/PID/fd/N that points to
 *   "/memfd:spoor-rings" (a core_pattern handler still sees it).
 *
 * Rules. spoor_recover() needs no started library and may be called from any thread, but not in a
 * signal handler. The content of the file is not trusted: the result is an error or a complete
 * nettrace file.
 */
#ifndef SPOOR_RECOVER_H
#define SPOOR_RECOVER_H

#include <spoor/spoor.h>

#ifdef __cplusplus
extern "C" {
#endif

struct spoor_recovered {
	size_t size; /* sizeof(struct spoor_recovered) */
	uint64_t process_id;
	uint64_t events; /* written */
	/* records that could not be read, or whose kind of event is not described */
	uint64_t broken;
	/* two for each thread: one for the thread, one for its signal handlers */
	uint64_t rings;
	uint64_t first_ns, last_ns; /* CLOCK_MONOTONIC of the boot in which the program ran */
	char command_line[1024];
};

/*
 * Reads the rings from `fd` (it stays open and its position is not used) and writes a nettrace file
 * to `out_path`. 0 or a negative errno. -EBADMSG: the file does not contain rings. -ENODATA: the
 * rings contain no event. If several threads used one ring, all its events have the id of the last
 * of them.
 */
SPOOR_API int spoor_recover(int fd, const char *out_path, struct spoor_recovered *ret_recovered);

#ifdef __cplusplus
}
#endif

#endif
