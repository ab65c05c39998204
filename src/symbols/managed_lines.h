/*
 * Lines of managed code, from the IL offsets that a recording has and a portable PDB of this
 * machine: inside the assembly, or beside it. Called after line_names_find().
 *
 * A PDB is used only if it has the GUID that the runtime reported for the assembly.
 */
#ifndef SPOOR_SYMBOLS_MANAGED_LINES_H
#define SPOOR_SYMBOLS_MANAGED_LINES_H

struct line_names;

/* Answers the addresses of line_names.missing that are in managed code. 0, or -ENOMEM. */
int managed_lines_find(struct line_names *lines);

#endif
