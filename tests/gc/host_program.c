/*
 * host_program COLLECTOR DOTNET FILE: a C program under a standalone collector (gc/host/host.h):
 * graphs, arrays, finalizers, handles and threads, each checked, with the collector's events in
 * FILE. Prints what happened, one "name number" a line; a fault is a line "WRONG: ...", and exit
 * code 1.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <spoor/spoor.h>

#include "gc/host/host.h"

enum {
	NODES = 20000,
	DEAD = 500, /* objects with finalizers */
	THREADS = 3,
	STEPS = 30000,
	GAPS = 300,
	LARGE = 200000, /* bytes: beyond the threshold of large objects */
};

static struct gc_host *host;
static const struct gc_host_type *node_type, *bytes_type, *references_type, *gaps_type, *dying_type;
static atomic_uint finalized;
static atomic_bool is_wrong;

struct node {
	struct gc_object *next;
	struct gc_object *bytes;
	uint64_t number;
};

/* An element of an array of structs, with references apart from one another. */
struct gap {
	uint64_t number;
	struct gc_object *one;
	uint64_t more;
	struct gc_object *two;
};

static void wrong(const char *what)
{
	printf("WRONG: %s\n", what);
	is_wrong = true;
}

static void count_finalized(struct gc_host_thread *thread, struct gc_object **object, void *context)
{
	(void)context;
	/* It still has what it referred to. */
	struct node *dead = gc_host_fields(*object);
	if (gc_host_length(dead->bytes) != dead->number % 50)
		wrong("an object reaches its finalizer without its bytes");
	(void)gc_host_new(thread, bytes_type, 100);
	finalized++;
}

static void make_types(void)
{
	const uint32_t in_node[] = { 0, 8 }, in_array[] = { 0 }, in_gap[] = { 8, 24 };

	bytes_type = gc_host_type_new(host,
		&(struct gc_host_type_info){ .name = "Bytes", .element_size = 1 });
	node_type = gc_host_type_new(host, &(struct gc_host_type_info){ .name = "Node",
						   .size = sizeof(struct node),
						   .references = in_node,
						   .reference_count = 2 });
	references_type = gc_host_type_new(host, &(struct gc_host_type_info){ .name = "References",
							 .element_size = 8,
							 .references = in_array,
							 .reference_count = 1 });
	gaps_type = gc_host_type_new(host, &(struct gc_host_type_info){ .name = "Gaps",
						   .element_size = sizeof(struct gap),
						   .references = in_gap,
						   .reference_count = 2 });
	dying_type = gc_host_type_new(host, &(struct gc_host_type_info){ .name = "Dying",
						    .size = sizeof(struct node),
						    .references = in_node,
						    .reference_count = 2,
						    .finalize = count_finalized });
	if (!bytes_type || !node_type || !references_type || !gaps_type || !dying_type)
		wrong("a type is refused");
	if (gc_host_type_new(host,
		    &(struct gc_host_type_info){
			    .name = "No", .size = 8, .references = in_gap, .reference_count = 2 }))
		wrong("a type with references outside of its fields is accepted");
}

/* A node in front of *head, with bytes of a length that depends on its number. */
static void push(struct gc_host_thread *thread, struct gc_object **head,
	const struct gc_host_type *type, uint64_t number)
{
	struct gc_object **bytes = gc_host_root(thread);
	uint32_t length = (uint32_t)(number % 50);

	*bytes = gc_host_new(thread, bytes_type, length);
	memset(gc_host_fields(*bytes), (int)(number & 0xff), length);
	struct gc_object *object = gc_host_new(thread, type, 0);
	struct node *node = gc_host_fields(object);
	node->number = number;
	gc_host_store(host, &node->next, *head);
	gc_host_store(host, &node->bytes, *bytes);
	*head = object;
	gc_host_unroot(thread, 1);
}

/* A chain whose numbers go down from `from` in steps of `by`. */
static void check_chain(struct gc_object *head, uint64_t from, uint64_t by, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++, from -= by) {
		if (!head || gc_host_type_of(head) != node_type)
			return wrong("a node of a chain is missing");
		struct node *node = gc_host_fields(head);
		uint8_t *bytes = gc_host_fields(node->bytes);
		uint32_t length = gc_host_length(node->bytes);
		if (node->number != from || length != from % 50 ||
			(length && bytes[length - 1] != (uint8_t)from))
			return wrong("a node of a chain has another's content");
		head = node->next;
	}
	if (head)
		wrong("a chain is too long");
}

static void graph(struct gc_host_thread *thread)
{
	struct gc_object **head = gc_host_root(thread);

	for (uint64_t i = 1; i <= NODES; i++)
		push(thread, head, node_type, i);
	for (int generation = 0; generation <= 2; generation++) {
		gc_host_collect(host, generation);
		check_chain(*head, NODES, 1, NODES);
	}
	/* Every second node dies; a collection of old objects finds the new references. */
	for (struct gc_object *at = *head; at;) {
		struct node *node = gc_host_fields(at);
		struct node *next = gc_host_fields(node->next);
		at = next->next;
		gc_host_store(host, &node->next, at);
	}
	gc_host_collect(host, 2);
	check_chain(*head, NODES, 2, NODES / 2);
	/* A young object that only an old one refers to. */
	struct gc_object **old = gc_host_root(thread), **young = gc_host_root(thread);
	*old = *head;
	push(thread, young, node_type, 7);
	gc_host_store(host, &((struct node *)gc_host_fields(*old))->next, *young);
	gc_host_unroot(thread, 1);
	for (int i = 0; i < 100; i++)
		(void)gc_host_new(thread, bytes_type, 2000);
	gc_host_collect(host, 0);
	check_chain(((struct node *)gc_host_fields(*old))->next, 7, 1, 1);
	gc_host_unroot(thread, 2);
}

static void arrays(struct gc_host_thread *thread)
{
	struct gc_object **references = gc_host_root(thread), **gaps = gc_host_root(thread),
			 **large = gc_host_root(thread);

	*large = gc_host_new(thread, bytes_type, LARGE);
	memset(gc_host_fields(*large), 0x5a, LARGE);
	*references = gc_host_new(thread, references_type, GAPS);
	*gaps = gc_host_new(thread, gaps_type, GAPS);
	for (uint32_t i = 0; i < GAPS; i++) {
		struct gc_object **made = gc_host_root(thread);
		push(thread, made, node_type, i);
		gc_host_store(host, (struct gc_object **)gc_host_fields(*references) + i, *made);
		*made = NULL;
		push(thread, made, node_type, 1000 + i);
		struct gap *gap = (struct gap *)gc_host_fields(*gaps) + i;
		gap->number = gap->more = i;
		gc_host_store(host, &gap->two, *made);
		*made = NULL;
		push(thread, made, node_type, 2000 + i);
		gap = (struct gap *)gc_host_fields(*gaps) + i;
		gc_host_store(host, &gap->one, *made);
		gc_host_unroot(thread, 1);
	}
	for (int generation = 0; generation <= 2; generation++) {
		gc_host_collect(host, generation);
		for (uint32_t i = 0; i < GAPS; i++) {
			struct gap *gap = (struct gap *)gc_host_fields(*gaps) + i;
			check_chain(((struct gc_object **)gc_host_fields(*references))[i], i, 1, 1);
			check_chain(gap->one, 2000 + i, 1, 1);
			check_chain(gap->two, 1000 + i, 1, 1);
			if (gap->number != i || gap->more != i)
				wrong("a struct of an array has another's number");
		}
	}
	uint8_t *bytes = gc_host_fields(*large);
	if (gc_host_length(*large) != LARGE || bytes[0] != 0x5a || bytes[LARGE - 1] != 0x5a)
		wrong("a large object has changed");
	gc_host_unroot(thread, 3);
}

static void finalizers(struct gc_host_thread *thread)
{
	struct gc_object **kept = gc_host_root(thread), **dropped = gc_host_root(thread);

	push(thread, kept, dying_type, 1);
	for (uint64_t i = 0; i < DEAD; i++) {
		push(thread, dropped, dying_type, i);
		*dropped = NULL;
	}
	gc_host_collect(host, 2);
	gc_host_wait_for_finalizers(thread);
	if (finalized != DEAD)
		wrong("the number of finalized objects");
	gc_host_unroot(thread, 2);
	gc_host_collect(host, 2);
	gc_host_wait_for_finalizers(thread);
	if (finalized != DEAD + 1)
		wrong("an object that was kept alive is not finalized after that");
}

static void handles(struct gc_host_thread *thread)
{
	struct gc_handle_manager *manager = gc_host_handles(host);
	struct gc_object **root = gc_host_root(thread);

	push(thread, root, node_type, 21);
	struct gc_object **strong =
		manager->table->CreateGlobalHandleOfType(manager, *root, GC_HANDLE_STRONG);
	struct gc_object **weak =
		manager->table->CreateGlobalHandleOfType(manager, *root, GC_HANDLE_WEAK_SHORT);
	struct gc_object **pinned =
		manager->table->CreateGlobalHandleOfType(manager, *root, GC_HANDLE_PINNED);
	struct gc_object *place = *root;
	*root = NULL;
	gc_host_collect(host, 2);
	if (*strong != place || *weak != place || *pinned != place)
		wrong("a pinned object has moved, or is gone");
	manager->table->DestroyHandleOfType(manager, pinned, GC_HANDLE_PINNED);
	gc_host_collect(host, 2);
	check_chain(*strong, 21, 1, 1);
	if (*weak != *strong)
		wrong("a weak handle has lost a live object");
	manager->table->DestroyHandleOfType(manager, strong, GC_HANDLE_STRONG);
	gc_host_collect(host, 2);
	if (*weak)
		wrong("a weak handle keeps a dead object");
	manager->table->DestroyHandleOfType(manager, weak, GC_HANDLE_WEAK_SHORT);
	gc_host_unroot(thread, 1);
}

static void *mutate(void *argument)
{
	struct gc_host_thread *thread = gc_host_attach(host, 32);
	uint64_t base = (uint64_t)(uintptr_t)argument * 1000000;
	struct gc_object **chains[8];

	for (int i = 0; i < 8; i++)
		chains[i] = gc_host_root(thread);
	for (uint32_t step = 0; step < STEPS && !is_wrong; step++) {
		uint32_t at = step % 8, length = step / 8 % 40;
		push(thread, chains[at], node_type, base + length);
		if (length == 39) {
			check_chain(*chains[at], base + 39, 1, 40);
			*chains[at] = NULL;
		}
		if (step % 1000 == 0) {
			gc_host_leave(thread);
			gc_host_enter(thread);
		}
	}
	gc_host_detach(thread);
	return NULL;
}

static void threads(struct gc_host_thread *thread)
{
	pthread_t all[THREADS];

	for (int i = 0; i < THREADS; i++)
		(void)pthread_create(&all[i], NULL, mutate, (void *)(uintptr_t)(i + 1));
	for (int i = 0; i < 50; i++)
		gc_host_collect(host, i % 3);
	gc_host_leave(thread);
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(all[i], NULL);
	gc_host_enter(thread);
}

int main(int argc, char **argv)
{
	const struct gc_host_setting settings[] = { { "GCgen0size", 0x400000 } };
	struct spoor_want wants[] = {
		{ .size = sizeof(*wants),
			.name = "Microsoft-Windows-DotNETRuntime",
			.keywords = 0x3,
			.level = SPOOR_VERBOSE },
		{ .size = sizeof(*wants),
			.name = "Microsoft-Windows-DotNETRuntimePrivate",
			.keywords = 0x1,
			.level = SPOOR_VERBOSE },
	};
	struct spoor_session_options options = {
		.size = sizeof(options), .wants = wants, .want_count = 2
	};
	const struct spoor_file_options file = { .size = sizeof(file),
		.path = argc > 3 ? argv[3] : "" };
	struct spoor_session *session;
	char error[500] = "";

	if (argc != 4)
		return 2;
	spoor_start(NULL);
	if (spoor_session_start_file(&options, &file, &session)) {
		printf("WRONG: no session\n");
		return 1;
	}
	const struct gc_host_options host_options = { .collector = argv[1],
		.dotnet = (uint32_t)atoi(argv[2]),
		.settings = settings,
		.setting_count = 1 };
	int r = gc_host_open(&host_options, &host, error, sizeof(error));
	if (r < 0) {
		printf("WRONG: %d: %s\n", r, error);
		return 1;
	}
	if (gc_host_open(&host_options, &host, error, sizeof(error)) >= 0)
		wrong("a second host is accepted");
	struct gc_host_thread *thread = gc_host_attach(host, 16);
	make_types();
	graph(thread);
	arrays(thread);
	finalizers(thread);
	handles(thread);
	threads(thread);
	struct gc_heap *heap = gc_host_heap(host);
	for (int generation = 0; generation <= 2; generation++)
		printf("collections_%d %d\n", generation,
			heap->table->CollectionCount(heap, generation, 0));
	printf("finalized %u\n", finalized);
	gc_host_detach(thread);
	gc_host_close(host);
	spoor_session_stop(session);
	spoor_session_free(session);
	spoor_stop();
	return is_wrong;
}
