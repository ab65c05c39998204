/* See runtime_info.h. */
#include "target/runtime_info.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/text.h"
#include "dotnet/exchange.h"
#include "dotnet/port.h"
#include "dotnet/reason.h"
#include "machine/proc.h"
#include "target/targets.h"

static const char *keep(struct targets *targets, const char *text)
{
	char *copy = arena_copy(&targets->arena, text, strlen(text) + 1);

	return copy ? copy : "";
}

/* The runtime's names, by ELF's numbers. */
static const char *architecture_of(uint16_t machine)
{
	switch (machine) {
	case 3:
		return "x86";
	case 22:
		return "s390x";
	case 21:
		return "ppc64le";
	case 40:
		return "arm32";
	case 62:
		return "x64";
	case 183:
		return "arm64";
	case 243:
		return "riscv64";
	case 258:
		return "loongarch64";
	default:
		return "";
	}
}

/* ---- asking ---- */

/* The request to each target, and the data that is needed until the reply. */
struct info_question {
	struct dotnet_target port;
	struct target *target;
	enum ipc_command command;
};

static int ask(struct exchange *exchange, struct info_question *question, uint64_t now_ns)
{
	const struct dotnet_endpoint endpoint = dotnet_target_endpoint(&question->port);
	const struct ipc_request request = { .command = question->command };

	return exchange_begin(exchange, &endpoint, &request, now_ns, 0, NULL);
}

/* True when an older version of the request is to be tried. */
static bool take_answer(struct targets *targets, struct exchange *exchange,
	struct info_question *question)
{
	struct target *target = question->target;
	struct ipc_process_info info;

	if (exchange->state == EXCHANGE_FAILED) {
		target->reachable = false;
		target->reach_error = exchange->failure;
		target->reach_reason = REASON_NONE;
		target->reason = keep(targets, exchange->text);
		return false;
	}
	if (exchange->state != EXCHANGE_ANSWERED) {
		target->reachable = false;
		target->reach_error = -ETIMEDOUT;
		target->reason = reason_text(REASON_NO_ANSWER);
		return false;
	}
	if (!exchange->ok) {
		question->command = question->command == IPC_PROCESS_INFO_3 ? IPC_PROCESS_INFO_2
									    : IPC_PROCESS_INFO;
		return exchange->error == IPC_ERROR_UNKNOWN_COMMAND &&
		       exchange->command != IPC_PROCESS_INFO;
	}
	if (ipc_decode_process_info(exchange->command, exchange->payload, exchange->payload_size,
		    &info, NULL) < 0)
		return false;
	info.runtime_version[strcspn(info.runtime_version, "+")] =
		'\0'; /* cuts off the commit hash */
	if (info.runtime_version[0])
		target->runtime_version = keep(targets, info.runtime_version);
	target->architecture = keep(targets, info.architecture);
	ipc_process_info_done(&info);
	return false;
}

static int ask_all(struct targets *targets, struct info_question *questions, size_t count,
	uint64_t bound_ns)
{
	cleanup(freep) struct exchange *exchanges = calloc(count + 1, sizeof(*exchanges));
	uint64_t now_ns = clock_monotonic_ns();
	int result = 0;

	if (!exchanges)
		return -ENOMEM;
	for (size_t i = 0; result == 0 && i < count; i++)
		result = ask(&exchanges[i], &questions[i], now_ns);
	for (bool again = true; result == 0 && again;) {
		again = false;
		(void)exchange_run(exchanges, count, now_ns + bound_ns,
			NULL); /* a process that is late counts as one without an answer */
		for (size_t i = 0; result == 0 && i < count; i++) {
			if (exchanges[i].state == EXCHANGE_NONE)
				continue;
			bool older = take_answer(targets, &exchanges[i], &questions[i]);
			exchange_done(&exchanges[i]);
			if (older)
				result = ask(&exchanges[i], &questions[i], now_ns);
			again |= older;
		}
	}
	for (size_t i = 0; i < count; i++)
		exchange_done(&exchanges[i]);
	return result;
}

/* ---- explaining ---- */

static void explain_no_socket(struct targets *targets, struct target *target)
{
	struct proc_reader proc;
	char text[256];

	if (proc_open(&proc, NULL) == 0) {
		const char *name = dotnet_switched_off_by(&proc, target->pid);
		if (name) {
			text_set(text, "its diagnostics are switched off (%s=0)", name);
			target->reason = keep(targets, text);
			target->reach_reason = REASON_NONE;
		}
		proc_close(&proc);
	}
	if (target->kind == DOTNET_NATIVEAOT &&
		(target->reach_reason == REASON_NO_SOCKET ||
			target->reach_reason == REASON_NO_SOCKET_LONG_PATH))
		target->reason = reason_text(REASON_NO_DIAGNOSTICS);
}

static void explain(struct targets *targets, struct target *target)
{
	char text[256];

	switch (-target->reach_error) {
	case EACCES:
	case EPERM:
		if (geteuid() != 0 && target->uid != geteuid()) {
			/* the user's name is in its own column */
			target->reason = reason_text(REASON_OTHER_USER);
			text_set(text, "sudo spoor ps -p %u", target->pid);
			target->remedy = keep(targets, text);
		}
		break;
	case EBUSY: /* a signal has stopped it */
		text_set(text, "kill -CONT %u", target->pid);
		target->remedy = keep(targets, text);
		break;
	case ENOENT:
	case ENAMETOOLONG:
	case ECONNREFUSED:
		explain_no_socket(targets, target);
		text_set(text, "spoor record -p %u", target->pid);
		target->remedy = keep(targets, text);
		break;
	default:
		break;
	}
}

int runtime_info(struct targets *targets, uint64_t bound_ns)
{
	cleanup(freep) struct info_question *questions =
		calloc(targets->list.count + 1, sizeof(*questions));
	size_t count = 0;

	if (!questions)
		return -ENOMEM;
	vec_each(target, &targets->list) {
		struct info_question *question = &questions[count];

		target->architecture = architecture_of(target->machine);
		if (!target->reachable ||
			dotnet_target_read(target->pid, &question->port, NULL) < 0)
			continue;
		question->port.borrows = true;
		question->target = target;
		question->command = IPC_PROCESS_INFO_3;
		count++;
	}
	int result = ask_all(targets, questions, count, bound_ns);

	vec_each(target, &targets->list)
		if (target->kind != DOTNET_NOT && !target->reachable)
			explain(targets, target);
	return result;
}
