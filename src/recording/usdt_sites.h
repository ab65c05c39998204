/*
 * The sites of USDT probes in a live session: each is one note of an image, with the layout of its events.
 *
 *   for each note of a file: usdt_sites_add(&sites, &elf, &file, &note);
 *   usdt_sites_attach(&sites, fd, &error);                 probes them from now on
 *   usdt_sites_decode(&sites, &raw, &payload, &schema_index, &unreadable);
 *   usdt_sites_done(&sites);
 *
 * An event has the fields arg0, arg1, ... as numbers in the size of the argument, and for each argument that may be
 * the address of a string argN_text, which is empty if there is no text at that address. If the program could not
 * read arguments, a last field `unreadable` names them; their values are 0.
 */
#ifndef SPOOR_RECORDING_USDT_SITES_H
#define SPOOR_RECORDING_USDT_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "perf/usdt_probe.h"
#include "recording/absent_text.h"

struct bytes;
struct elf;
struct image_file;
struct trace;
struct usdt_note;

#define USDT_SITES_MAX 16384u

struct usdt_row {
	uint32_t argument_first; /* in `arguments` */
	uint32_t schema_index;
	uint32_t schema_unreadable; /* with the field `unreadable` */
	uint8_t argument_count;
};

struct usdt_sites {
	/* borrowed; set by the session */
	struct usdt_probe *probe;
	struct trace *trace;
	VEC(struct usdt_row) rows;
	VEC(struct usdt_site) waiting; /* for usdt_sites_attach() */
	VEC(uint8_t) arguments;        /* enum field_type, with USDT_ARGUMENT_TEXT */
	struct map schemas;            /* hash of a layout: index of its schema */
	uint32_t next_event_id;
	struct absent_texts absent;
};

/* The raw data of a sample. */
struct usdt_raw {
	const uint8_t *bytes;
	size_t size;
	uint32_t pid;
	uint64_t time_ns;
};

#define USDT_ARGUMENT_TEXT 0x80u /* the argument has a field argN_text */

void usdt_sites_init(struct usdt_sites *sites, struct usdt_probe *probe, struct trace *trace);

/* -ENOSPC: there are USDT_SITES_MAX. Other errors as of usdt_probe_describe(). */
int usdt_sites_add(struct usdt_sites *sites, const struct elf *elf, const struct image_file *file,
	const struct usdt_note *note);

/* Probes the sites that were added, in the file `fd`. Returns how many were refused, with the last error. */
uint32_t usdt_sites_attach(struct usdt_sites *sites, int fd, int *ret_error);

/*
 * Appends the payload of an event to `payload`. False: the raw data is not of a site. *ret_unreadable: how many
 * arguments, or their texts, could not be read. A text that was not in memory is read from the process.
 */
bool usdt_sites_decode(struct usdt_sites *sites, const struct usdt_raw *raw, struct bytes *payload,
	uint32_t *ret_schema_index, unsigned *ret_unreadable);

void usdt_sites_done(struct usdt_sites *sites);

#endif
