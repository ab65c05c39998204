/* The rings of a program that has ended (lib/recover/recover.c). */
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <spoor/recover.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("rings", MFD_CLOEXEC);
	struct spoor_recovered recovered = { .size = sizeof(recovered) };

	if (fd < 0)
		return 0;
	if (write(fd, data, size) == (ssize_t)size)
		(void)spoor_recover(fd, "/dev/null", &recovered);
	close(fd);
	return 0;
}
