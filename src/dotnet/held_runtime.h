/*
 * A runtime that has connected to Spoor's diagnostics port and waits before its first instruction,
 * and the exchange that resumes it.
 *
 *   struct held_runtime held = held_runtime_of(reverse, peer);
 *   held_runtime_resume(&held, now_ns);      when its sessions are open, or cannot be
 *   each turn:  held_runtime_await(&held, &set); poll_set_wait(&set);
 *               held_runtime_advance(&held, now_ns);
 *   held_runtime_done(&held);
 *
 * An object of zeros is a runtime that does not wait. Nothing here blocks.
 */
#ifndef SPOOR_DOTNET_HELD_RUNTIME_H
#define SPOOR_DOTNET_HELD_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>

#include "dotnet/exchange.h"

struct poll_set;
struct reverse;

struct held_runtime {
	struct reverse *reverse; /* NULL: the runtime did not connect to Spoor's port */
	uint32_t peer;
	struct dotnet_endpoint endpoint; /* the connection that it waits at */
	bool waits;
	struct exchange resume;
};

struct held_runtime held_runtime_of(struct reverse *reverse, uint32_t peer);

/* Resumes it if it waits. Called in each turn: it tries again after a lost connection. */
void held_runtime_resume(struct held_runtime *held, uint64_t now_ns);

void held_runtime_advance(struct held_runtime *held, uint64_t now_ns);

/* It is being resumed. */
bool held_runtime_is_resuming(const struct held_runtime *held);

/* Adds what it waits for. */
void held_runtime_await(const struct held_runtime *held, struct poll_set *set);

void held_runtime_done(struct held_runtime *held);

#endif
