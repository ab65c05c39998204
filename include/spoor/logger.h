/*
 * Loggers: tracers of the system that get the program's events without a session.
 *
 *   spoor_start(NULL);
 *   spoor_provider_register(&shop);
 *   spoor_logger_start(SPOOR_LOGGER_USDT);
 *
 * A logger shows each registered event to its tools, with the types of its fields. When a tool
 * enables an event, the thread that fires it passes it to the tool within the call, so that the
 * tool sees that thread, its stack and the time. The library looks every 100 ms which events are
 * enabled. Until then, and for all other events, firing costs the same as without loggers.
 *
 * The environment variable SPOOR_LOGGERS starts loggers in spoor_start(): names separated by
 * commas, "usdt,lttng,user-events,etw,dtrace". It is ignored in programs with rights that their user does not have.
 *
 * An enable callback is called when the first event of its provider is enabled, and when the
 * highest level or the keywords of the enabled events change, with session_id
 * SPOOR_LOGGER_SESSION + the logger.
 */
#ifndef SPOOR_LOGGER_H
#define SPOOR_LOGGER_H

#include <spoor/spoor.h>

#ifdef __cplusplus
extern "C" {
#endif

enum spoor_logger {
	/* probes of user space: bpftrace, perf, SystemTap, BPF programs (x86-64 and arm64) */
	SPOOR_LOGGER_USDT = 0,
	/* LTTng-UST 2.12 or later, whose library is loaded at run time */
	SPOOR_LOGGER_LTTNG = 1,
	/*
	 * user_events of Linux 6.4 or later, in EventHeader format: perf, ftrace, dotnet-trace and
	 * other tools of the kernel's tracepoints; needs rights for user_events_data in tracefs
	 */
	SPOOR_LOGGER_USER_EVENTS = 2,
	/*
	 * ETW of Windows: events describe themselves as those of TraceLogging do. In the library that
	 * scripts/libspoor-direct builds; -ENOTSUP elsewhere
	 */
	SPOOR_LOGGER_ETW = 3,
	/*
	 * DTrace of macOS: a probe for each level, with names and the fields as JSON. In the library
	 * that scripts/libspoor-direct builds; -ENOTSUP elsewhere
	 */
	SPOOR_LOGGER_DTRACE = 4,
};

#define SPOOR_LOGGER_SESSION (UINT64_C(1) << 63)

/*
 * Starts a logger; 0 also if it has been started. -ENOTCONN: the library does not run; -ENOENT:
 * what the logger needs is not installed; -ENOTSUP: not on this system or processor. May take up to
 * 3 s. Not for signal handlers. spoor_stop() stops all loggers, and the child of fork() has none.
 */
SPOOR_API int spoor_logger_start(enum spoor_logger logger);
SPOOR_API void spoor_logger_stop(enum spoor_logger logger);

/*
 * For a thread whose signal handlers fire events: makes what started loggers allocate at the first
 * event of a thread (LTTng's thread-local memory). Without it the first event that LTTng records of
 * this thread must not be fired in a signal handler.
 */
SPOOR_API void spoor_logger_prepare_thread(void);

#ifdef __cplusplus
}
#endif

#endif
