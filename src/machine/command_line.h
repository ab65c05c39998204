/* The arguments of a process, as /proc/PID/cmdline has them: each ends with a NUL. */
#ifndef SPOOR_MACHINE_COMMAND_LINE_H
#define SPOOR_MACHINE_COMMAND_LINE_H

#include <stdbool.h>
#include <stddef.h>

struct bytes;

/*
 * The application that a .NET host runs: "Shop" for `dotnet /app/Shop.dll`; points into `args`.
 * False: none is an assembly.
 */
bool command_line_application(const char *args, size_t len, const char **ret_name, size_t *ret_len);

/*
 * The arguments as one line of a table. Folders of the program, and of the application of a .NET
 * host, are dropped, and options between the two become an ellipsis: "dotnet Shop.dll --urls URL".
 */
void command_line_shorten(const char *args, size_t len, struct bytes *out);

#endif
