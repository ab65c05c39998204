/* See session_pass.h. */
#include "lib/pipe/session_pass.h"

#include "lib/pipe/pipe.h"
#include "lib/pipe/pipe_session.h"
#include "lib/pipe/session_state.h"

uint64_t sessions_pass(void)
{
	struct session *sessions[SESSIONS_MAX];
	struct pipe_pass pass;
	uint32_t count = 0;
	uint64_t sleep_ns = UINT64_MAX;

	for (uint32_t slot = 0; slot < SESSIONS_MAX; slot++)
		if (session_active[slot])
			sessions[count++] = session_active[slot];
	if (!count && !sessions_quarantined())
		return UINT64_MAX;

	pipe_pass(sessions_quarantined(), &pass);
	sessions_release_slots(&pass);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t due = session_turn(sessions[i], &pass);
		if (due < sleep_ns)
			sleep_ns = due;
	}
	return pipe_next_pass_ns(&pass, sleep_ns);
}
