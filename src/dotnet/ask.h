/* One request to one process, with its reply or an explanation. */
#ifndef SPOOR_DOTNET_ASK_H
#define SPOOR_DOTNET_ASK_H

#include <stdint.h>

struct diag;
struct exchange;
struct ipc_request;
struct pollfd;

#define ASK_ANSWER_NS UINT64_C(10000000000)

/*
 * 0: *ret_exchange has the successful reply; the caller ends it with exchange_done(). -EOPNOTSUPP:
 * the runtime does not know the command, and the exchange has ended. Any other failure is negative,
 * with a sentence that names the process: -ETIMEDOUT no reply within `bound_ns`, -EINTR `watched`
 * (may be NULL) became ready, -EACCES the process belongs to another user, -EIO the runtime refused
 * the request (then *ret_exchange has the error reply with its payload, and the caller ends it
 * too), ...
 */
int ask_process(uint32_t pid, const struct ipc_request *request, uint64_t bound_ns,
	struct pollfd *watched, struct exchange *ret_exchange, struct diag *diag);

/* Tries to connect, sends nothing. 0, or negative with a sentence that names the process. */
int ask_may(uint32_t pid, struct diag *diag);

#endif
