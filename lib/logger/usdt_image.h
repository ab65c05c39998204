/*
 * Images: ELF files in memory with the probes of events. A tool finds such a file in the process's
 * memory map, reads the notes (section .note.stapsdt), and puts an uprobe on a probe's code; the
 * kernel counts the tools in the probe's semaphore.
 */
#ifndef SPOOR_LIB_LOGGER_USDT_IMAGE_H
#define SPOOR_LIB_LOGGER_USDT_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct usdt_image_probe {
	/*
	 * Executes the probe. Its arguments are in memory, as usdt_operand() says. Firing path.
	 */
	void (*hit)(const uint64_t *arguments);
	const uint16_t *semaphore; /* number of tools; the kernel changes it */
};

/*
 * Makes the first image. -ENOTSUP: not on this processor; -EPERM, -EACCES: the system forbids such
 * memory, or the folder of SPOOR_USDT_FOLDER does.
 */
int usdt_images_open(void);
/* Tools find the probes no more. They stay mapped, because threads may be executing them. */
void usdt_images_close(void);

/*
 * Adds a probe to the newest image, or makes an image. `arguments` is their text, with at most
 * USDT_ARGUMENTS_MAX bytes. One call at a time. The memory of the probe is valid until the process ends. 0 or a
 * negative errno.
 */
#define USDT_NAME_MAX      255u
#define USDT_ARGUMENTS_MAX 2000u
int usdt_probe_make(const char *provider, const char *name, const char *arguments,
	struct usdt_image_probe *ret_probe);

/* In the child of fork(), which has the parent's images: forgets them. */
void usdt_images_child(void);

/* Writes where argument `index` is: "-4@16(%rdi)". `size` is negative for a signed number. */
int usdt_operand(char *out, size_t room, int size, unsigned index);

#endif
