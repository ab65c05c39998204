/*
 * See file_writers.h. Spoor's recorders hold a lock on their file (output_file.c). Of other writers
 * the kernel knows: it grants a read lease only on a file that no process has open for writing.
 */
#include "machine/file_writers.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>

bool file_has_writers(int fd)
{
	if (flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return true;
	(void)flock(fd, LOCK_UN); /* it ends with the descriptor at the latest */
	/* A writer that opens the file now would send SIGIO, which ends a program. */
	if (fcntl(fd, F_SETSIG, SIGURG) < 0)
		return false;
	if (fcntl(fd, F_SETLEASE, F_RDLCK) < 0)
		return errno == EAGAIN;
	(void)fcntl(fd, F_SETLEASE, F_UNLCK); /* it ends with the descriptor at the latest */
	return false;
}
