/*
 * Methods that were read from a process's memory: they wait while its runtime may still report them,
 * and become part of its codemap if it does not. Part of the symbolizer.
 */
#ifndef SPOOR_SYMBOLIZE_SEEN_CODE_H
#define SPOOR_SYMBOLIZE_SEEN_CODE_H

#include <stdbool.h>
#include <stdint.h>

struct code;
struct symbolizer;
struct symbolizer_process;

/*
 * A method that was read at the time `code->stood_ns`, or an exact body (codemap.h). It is used unless
 * the process's runtime reports all its methods. The texts are copied.
 */
int seen_code_add(struct symbolizer *symbolizer, uint32_t process, const struct code *code,
	const char *module_path);

/* A precompiled method of which the runtime reports nothing, whatever else it reports. */
int seen_code_add_bundled(struct symbolizer *symbolizer, uint32_t process, const struct code *code,
	const char *module_path);

/* Called before an address is named. `last`: the runtime will report nothing more. */
void seen_code_settle(struct symbolizer *symbolizer, struct symbolizer_process *process, bool last);

#endif
