/* Small text files that the kernel generates: /proc, /sys. */
#ifndef SPOOR_MACHINE_KERNEL_FILE_H
#define SPOOR_MACHINE_KERNEL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* At most `room` - 1 bytes and a NUL; the length or a negative errno. `folder`: or AT_FDCWD. */
ssize_t kernel_file_read(int folder, const char *path, char *buffer, size_t room);

/* A file that holds one integer. */
bool kernel_file_number(const char *path, int64_t *ret_value);

#endif
