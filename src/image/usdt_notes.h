/*
 * The USDT probes of an ELF image, from the notes in its section .note.stapsdt.
 *
 *   usdt_notes_read(&elf, &file, &notes);
 *   vec_each(note, &notes.items) ... note->provider, note->offset ...
 *   usdt_notes_done(&notes);
 *
 * A note whose code lies in no executable segment is left out and counted. Texts belong to `notes`.
 */
#ifndef SPOOR_IMAGE_USDT_NOTES_H
#define SPOOR_IMAGE_USDT_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct elf;
struct image_file;

#define USDT_NOTES_MAX      65536u      /* notes of one image that are read */
#define USDT_NOTES_SIZE_MAX (16u << 20) /* bytes of the section */

struct usdt_note {
	const char *provider;
	const char *name;
	const char *arguments;     /* for usdt_arguments_parse(), code/usdt_arguments.h */
	uint64_t vaddr;            /* of the probe's code */
	uint64_t offset;           /* of the probe's code, in the file */
	uint64_t semaphore_offset; /* of the 16-bit count of tools, in the file; 0: there is none */
};

struct usdt_notes {
	VEC(struct usdt_note) items;
	uint8_t *data;    /* of the section: the texts are in it */
	uint32_t skipped; /* notes that were left out */
};

/*
 * Returns 0, also without any note. -EFBIG: the section is too large. -EBADMSG or another negative errno: it
 * cannot be read. On failure *ret_notes is empty.
 */
int usdt_notes_read(const struct elf *elf, const struct image_file *file,
	struct usdt_notes *ret_notes);

/*
 * The address of a variable or function by its name, from .symtab or .dynsym. -ENOENT: the image has no such
 * symbol; other errors as of usdt_notes_read().
 */
int usdt_symbol_find(const struct elf *elf, const struct image_file *file, const char *name,
	size_t name_len, uint64_t *ret_vaddr);

void usdt_notes_done(struct usdt_notes *notes);

#endif
