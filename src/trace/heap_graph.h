/*
 * The objects of a managed heap and their references, from one snapshot.
 *
 *   heap_graph_init(&graph);
 *   heap_graph_add_node(), heap_graph_add_edge(), heap_graph_add_root(), ...     in the order of the stream
 *   heap_graph_resolve(&graph);                                                  addresses become node numbers
 *
 * Made for tens of millions of objects: 14 bytes a node (address, size and first reference 4 each,
 * type 2) and 4 a reference once it is resolved (8 before). Nodes keep the order of the stream,
 * nearly that of their addresses: a block is a run of nodes with consecutive numbers and rising
 * addresses, each within 16 GiB of the first, so that an address takes four bytes. Nodes without an
 * address, of foreign files, belong to no block. Node n owns the references from edge_at[n] to
 * edge_at[n + 1].
 *
 * Node 0 is "none". After the objects come the roots as additional nodes, without address and size;
 * HEAP_ROOT is the parent of all of them.
 */
#ifndef SPOOR_TRACE_HEAP_GRAPH_H
#define SPOOR_TRACE_HEAP_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/strtab.h"
#include "base/vec.h"

#define HEAP_BLOCK_NODES 4096u /* at most; keeps the search within a block short */

struct heap_type {
	uint64_t id; /* the runtime's; 0 for types that Spoor has added */
	uint64_t module_id;
	uint32_t name;       /* strtab; 0: no event named it */
	uint32_t module;     /* strtab: path of its file; filled by heap_graph_resolve() */
	uint32_t flags;      /* enum heap_type_flag */
	uint32_t first_size; /* of its first object */
	uint64_t count;
	uint64_t size_bytes; /* of all its objects */
};

enum heap_type_flag {
	HEAP_TYPE_DELEGATE = 1,
	HEAP_TYPE_FINALIZABLE = 2,
	HEAP_TYPE_COM = 4,
	HEAP_TYPE_ARRAY = 8,
	HEAP_TYPE_ROOT = 1u << 31, /* ours: a root, not an object */
};

struct heap_block {
	uint64_t base;  /* address of its first node */
	uint64_t last;  /* of its last */
	uint32_t first; /* node */
	uint32_t count;
};

enum heap_root_kind {
	HEAP_ROOT_STACK,
	HEAP_ROOT_FINALIZER,
	HEAP_ROOT_HANDLE,
	HEAP_ROOT_OLDER,
	HEAP_ROOT_SIZED,
	HEAP_ROOT_OVERFLOW
};

enum heap_root_flag {
	HEAP_ROOT_PINNING = 1,
	HEAP_ROOT_WEAK = 2, /* keeps nothing alive: not taken */
	HEAP_ROOT_INTERIOR = 4,
	HEAP_ROOT_REFCOUNTED = 8,
};

/* A root as its event describes it: kept until heap_graph_resolve(). */
struct heap_root {
	uint64_t object;
	/* of a conditional weak table: this object refers to `object`; else 0 */
	uint64_t key;
	uint32_t name; /* strtab: the field, of a static variable; else 0 */
	/* of the static variable, whose name may come in a later event; 0 unknown */
	uint32_t type;
	uint8_t kind; /* enum heap_root_kind */
	bool is_static;
	bool thread_static;
	bool dependent;
	uint32_t flags;
};

struct heap_graph {
	struct strtab strings;
	VEC(struct heap_type) types;   /* item 0 unused */
	VEC(struct heap_block) blocks; /* in order of their nodes */
	VEC(uint32_t) by_base;         /* blocks in order of address; after heap_graph_resolve() */
	VEC(struct heap_root) roots;
	/* Columns of nodes, item 0 unused; node_count includes it. */
	/* from the block's base, in units of 4 bytes; 0 for roots */
	VEC(uint32_t) address;
	VEC(uint16_t) type_low; /* heap_graph_node_type() */
	/* the bits above 16; shorter than type_low, because types beyond 65,535 are rare */
	VEC(uint8_t) type_high;
	VEC(uint32_t) size;           /* bytes; HEAP_SIZE_LARGE: in large_sizes */
	VEC(uint32_t) edge_at;        /* one more than nodes after heap_graph_resolve() */
	VEC(uint64_t) reported_edges; /* addresses, before heap_graph_resolve() */
	VEC(uint32_t) read_edges;     /* of a file, before heap_graph_end_resolved() */
	/* node numbers, 0 for an address that is no object's; after heap_graph_resolve() */
	uint32_t *edges;
	uint64_t edge_count; /* that nodes claim */
	struct map type_by_id;
	struct map module_by_id; /* -> strtab */
	struct map large_sizes;  /* node -> index + 1 in large */
	VEC(uint64_t) large;
	uint32_t object_count;
	uint64_t size_bytes;
	uint32_t root;           /* HEAP_ROOT's node; 0 before heap_graph_resolve() */
	uint64_t dangling_edges; /* that led nowhere */
	uint64_t nameless_bytes; /* of objects whose type has no name */
};

#define HEAP_SIZE_LARGE UINT32_MAX

int heap_graph_init(struct heap_graph *graph);
void heap_graph_done(struct heap_graph *graph);

/* The type with the runtime's id, made when it is new; 0 when there is no memory. */
uint32_t heap_graph_type(struct heap_graph *graph, uint64_t type_id);

/* -ENOMEM, or -EOVERFLOW beyond 2^31 nodes or references. */
int heap_graph_add_node(struct heap_graph *graph, uint64_t address, uint64_t size_bytes,
	uint32_t type, uint64_t edge_count);
int heap_graph_add_edge(struct heap_graph *graph, uint64_t address);
int heap_graph_add_root(struct heap_graph *graph, const struct heap_root *root);
int heap_graph_add_module(struct heap_graph *graph, uint64_t module_id, const char *path,
	size_t len);

/*
 * Turns addresses into node numbers, roots into nodes, and values of conditional weak tables into
 * references of their keys. Missing edges are 0. Once; nothing may be added afterwards.
 */
int heap_graph_resolve(struct heap_graph *graph);

/*
 * For a graph from a file, where references are node numbers already: each node, then its edges;
 * heap_graph_end_resolved() ends it and names the root. Types are pushed into `types` before; nodes
 * of one with HEAP_TYPE_ROOT are no objects.
 */
int heap_graph_add_resolved(struct heap_graph *graph, uint64_t address, uint64_t size_bytes,
	uint32_t type);
int heap_graph_add_resolved_edge(struct heap_graph *graph, uint32_t node);
int heap_graph_end_resolved(struct heap_graph *graph, uint32_t root);

/* The node at an address; 0 none. After heap_graph_resolve(). */
uint32_t heap_graph_find(const struct heap_graph *graph, uint64_t address);

uint64_t heap_graph_address(const struct heap_graph *graph, uint32_t node);
uint64_t heap_graph_size(const struct heap_graph *graph, uint32_t node);

uint32_t heap_graph_node_type(const struct heap_graph *graph, uint32_t node);

/* Objects, roots, and the unused node 0. */
uint32_t heap_graph_node_count(const struct heap_graph *graph);

/* The nodes that a node refers to, in the order of its fields; 0: not an object's address. */
const uint32_t *heap_graph_edges(const struct heap_graph *graph, uint32_t node,
	uint32_t *ret_count);

/* "Shop.Order[]", readable; "UNKNOWN 0x7f.." for one without a name. */
const char *heap_graph_type_name(const struct heap_graph *graph, uint32_t type, char *room,
	size_t room_size);

#endif
