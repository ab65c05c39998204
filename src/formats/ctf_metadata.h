/*
 * Reads the description of a CTF 1.8 trace from the text (TSDL) in its file `metadata`.
 *
 *   ctf_metadata_init(&metadata);
 *   ctf_metadata_add(&metadata, bytes, size, &diag);    as often as the file grows
 *   event = ctf_metadata_event(&metadata, stream_id, event_id);
 *   ctf_metadata_done(&metadata);
 */
#ifndef SPOOR_FORMATS_CTF_METADATA_H
#define SPOOR_FORMATS_CTF_METADATA_H

#include <stddef.h>
#include <stdint.h>

#include "formats/ctf_types.h"

struct diag;

/* Returns 0 or -ENOMEM. */
int ctf_metadata_init(struct ctf_metadata *metadata);

/*
 * The next bytes of the file, whole packets of it if it has packets. Declarations that are not
 * whole yet wait. -EBADMSG: the description cannot be understood; -ENOMEM.
 */
int ctf_metadata_add(struct ctf_metadata *metadata, const uint8_t *data, size_t size,
	struct diag *diag);

/* How many of the file's next bytes are whole packets; all of a file without packets. */
size_t ctf_metadata_whole(const struct ctf_metadata *metadata, const uint8_t *data, size_t size);

void ctf_metadata_done(struct ctf_metadata *metadata);

#endif
