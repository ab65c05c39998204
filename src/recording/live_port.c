/* See live_port.h. */
#include "recording/live_port.h"

#include "base/poll_set.h"
#include "dotnet/reverse.h"
#include "pipeline/reorder_window.h"
#include "recording/managed.h"
#include "recording/process_table.h"
#include "trace/trace.h"

/*
 * The delay after which a connected runtime's process is in the tables. Events of a stream may be
 * older than records that have left the rings.
 */
static uint64_t settling_ns(const struct live_port *port)
{
	return managed_is_streaming(port->table->managed) ? REORDER_WINDOW_NS : LIVE_PORT_SKEW_NS;
}

void live_port_await(const struct live_port *port, struct poll_set *set)
{
	if (port->reverse)
		reverse_await(port->reverse, set);
	vec_each(newcomer, &port->newcomers) {
		held_runtime_await(&newcomer->held, set);
		if (!newcomer->judged)
			poll_set_wake(set, newcomer->came_ns + settling_ns(port));
	}
}

static void take_newcomers(struct live_port *port, uint64_t now_ns)
{
	uint32_t peer;

	reverse_advance(port->reverse);
	while (reverse_next(port->reverse, &peer)) {
		const struct live_newcomer newcomer = { .came_ns = now_ns,
			.held = held_runtime_of(port->reverse, peer) };
		/* without memory: live_port_leave() resumes the runtime */
		(void)vec_add(&port->newcomers, newcomer);
	}
}

/* Returns true if managed_hold() took the runtime over, to open its session before resuming it. */
static bool is_held_for_session(struct live_port *port, const struct live_newcomer *newcomer,
	uint64_t now_ns)
{
	uint32_t pid = reverse_peer(port->reverse, newcomer->held.peer)->pid;
	uint32_t process = pid && !port->table_lags ? process_table_find(port->table, pid) : 0;

	if (pid && !process && !port->table_lags)
		process = process_table_look(port->table, pid); /* its fork record was lost */
	if (!process || !port->table->rows.items[process].wanted ||
		port->table->trace->processes.items[process].ended)
		return false;
	return managed_hold(port->table->managed, process, &newcomer->held, now_ns);
}

bool live_port_take(struct live_port *port, uint64_t until_ns, uint64_t now_ns)
{
	if (!port->reverse)
		return false;
	take_newcomers(port, now_ns);
	for (uint32_t i = 0; i < port->newcomers.count; i++)
		if (!port->newcomers.items[i].judged &&
			port->newcomers.items[i].came_ns <= until_ns)
			return true;
	return false;
}

void live_port_judge(struct live_port *port, uint64_t until_ns, uint64_t now_ns)
{
	uint32_t kept = 0;

	vec_each(newcomer, &port->newcomers) {
		bool waits = !newcomer->judged && newcomer->came_ns > until_ns;
		if (!waits && !newcomer->judged && is_held_for_session(port, newcomer, now_ns))
			continue;
		newcomer->judged = !waits;
		if (newcomer->judged) {
			held_runtime_resume(&newcomer->held, now_ns);
			held_runtime_advance(&newcomer->held, now_ns);
		}
		if (newcomer->held.waits)
			port->newcomers.items[kept++] = *newcomer;
		else
			held_runtime_done(&newcomer->held);
	}
	port->newcomers.count = kept;
}

static void forget_newcomers(struct live_port *port)
{
	for (uint32_t i = 0; i < port->newcomers.count; i++)
		held_runtime_done(&port->newcomers.items[i].held);
	vec_reset(&port->newcomers);
}

void live_port_leave(struct live_port *port)
{
	if (!port->reverse)
		return;
	forget_newcomers(port);
	reverse_leave(port->reverse);
}

void live_port_done(struct live_port *port)
{
	forget_newcomers(port);
	vec_done(&port->newcomers);
}
