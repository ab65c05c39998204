/*
 * gc_decode <FILE: converts "raw NAME HEX" lines to the lines that trace/gc_dynamic makes of them;
 * "broken" if the payload cannot be read completely.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "unit/gc_dynamic_line.h"
#include "trace/gc_dynamic.h"

int main(void)
{
	static char line[200000];
	static uint8_t data[sizeof(line) / 2];

	while (fgets(line, sizeof(line), stdin)) {
		char name[512], *hex;
		int at = 0;
		if (sscanf(line, "raw %511s %n", name, &at) != 1)
			continue;
		size_t size = 0;
		for (hex = line + at; hex[0] > ' ' && hex[1] > ' '; hex += 2)
			data[size++] = (uint8_t)strtoul((char[]){ hex[0], hex[1], 0 }, NULL, 16);
		struct gc_dynamic event;
		struct bytes text = { 0 };
		gc_dynamic_open_named(name, strlen(name), data, size, &event);
		bool whole = gc_dynamic_line(&event, &text) && !event.rest;
		printf("%s %s\n", whole ? "line" : "broken", bytes_z(&text));
		bytes_done(&text);
	}
	return 0;
}
