/* See command_line.h. */
#include "machine/command_line.h"

#include <string.h>

#include "base/bytes.h"

bool command_line_application(const char *args, size_t len, const char **ret_name, size_t *ret_len)
{
	static const char suffix[] = ".dll";

	for (size_t at = 0; at < len;) {
		size_t arg_len = strnlen(args + at, len - at);
		const char *slash = memrchr(args + at, '/', arg_len);
		const char *base = slash ? slash + 1 : args + at;
		size_t base_len = arg_len - (size_t)(base - (args + at));
		if (base_len >= sizeof(suffix) && memcmp(base + base_len - (sizeof(suffix) - 1),
							  suffix, sizeof(suffix) - 1) == 0) {
			*ret_name = base;
			*ret_len = base_len - (sizeof(suffix) - 1);
			return true;
		}
		at += arg_len + 1;
	}
	return false;
}

/* Where the file's name begins. A title set by a program ("sshd: root@pts/0") is not a path. */
static size_t program_name_begin(const char *program, size_t len)
{
	const char *blank = memchr(program, ' ', len);
	size_t word_len = blank ? (size_t)(blank - program) : len;
	const char *slash = memrchr(program, '/', word_len);

	if (!slash || slash + 1 == program + word_len || memchr(program, ':', word_len))
		return 0;
	return (size_t)(slash + 1 - program);
}

void command_line_shorten(const char *args, size_t len, struct bytes *out)
{
	const char *application = NULL;
	size_t application_len = 0;

	while (len && !args[len - 1])
		len--;
	size_t arg_len = strnlen(args, len);
	size_t begin = program_name_begin(args, arg_len);

	bytes_add(out, args + begin, arg_len - begin);
	size_t at = arg_len + 1;

	if (at < len && arg_len - begin == 6 && memcmp(args + begin, "dotnet", 6) == 0 &&
		command_line_application(args + at, len - at, &application, &application_len)) {
		const char *host_options = args + at;
		at = (size_t)(application - args);
		if (memchr(host_options, 0, (size_t)(application - host_options)))
			bytes_text(out, " \xe2\x80\xa6");
	}
	for (; at < len; at += arg_len + 1) {
		arg_len = strnlen(args + at, len - at);
		bytes_u8(out, ' ');
		bytes_add(out, args + at, arg_len);
	}
}
