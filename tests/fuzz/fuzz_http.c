/*
 * Requests to the port of the metrics page. An answer is complete, with its header and as many
 * bytes as it announces, or there is none.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "counters/counting_http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void page(void *context, struct bytes *out)
{
	(void)context;
	bytes_text(out, "x 1\n");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes out = { 0 };

	if (size > COUNTING_HTTP_REQUEST - 1)
		size = COUNTING_HTTP_REQUEST - 1;
	if (!counting_http_answer((const char *)data, size, page, NULL, &out)) {
		if (out.len || size == COUNTING_HTTP_REQUEST - 1)
			abort();
		return 0;
	}
	const char *text = bytes_z(&out);
	const char *body = strstr(text, "\r\n\r\n");
	const char *length = strstr(text, "\r\nContent-Length: ");

	if (strncmp(text, "HTTP/1.1 ", 9) != 0 || !body || !length || length > body)
		abort();
	size_t body_size = strlen(body + 4);
	if (body_size && body_size != strtoul(length + 18, NULL, 10))
		abort();
	bytes_done(&out);
	return 0;
}
