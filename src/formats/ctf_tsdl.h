/* Parses one declaration of TSDL, the language of CTF's metadata. Used by ctf_metadata.c only. */
#ifndef SPOOR_FORMATS_CTF_TSDL_H
#define SPOOR_FORMATS_CTF_TSDL_H

#include <stddef.h>

struct ctf_metadata;
struct diag;

/* `text` is one declaration with its ';'. -EBADMSG: it cannot be understood; -ENOMEM. */
int ctf_tsdl_declaration(struct ctf_metadata *metadata, const char *text, size_t size,
	struct diag *diag);

#endif
