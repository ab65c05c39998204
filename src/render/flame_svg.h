/* A call tree as a flame graph: one SVG file to look at, search, zoom and print. */
#ifndef SPOOR_RENDER_FLAME_SVG_H
#define SPOOR_RENDER_FLAME_SVG_H

struct bytes;
struct call_tree;
struct report;

#define FLAME_WIDTH_DEFAULT 1200u
#define FLAME_WIDTH_MIN     480u
#define FLAME_WIDTH_MAX     20000u

struct flame_options {
	const char *title; /* NULL: made from the processes */
	unsigned width;    /* pixels; 0 = FLAME_WIDTH_DEFAULT */
};

/*
 * The tree gets sorted by name. Frames narrower than a tenth of a pixel are left out, and the
 * picture has a line with their number.
 */
void flame_svg(struct call_tree *tree, const struct report *report,
	const struct flame_options *options, struct bytes *out);

#endif
