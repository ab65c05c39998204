/*
 * logger_writer LOGGER [churn|activities|exit]: starts a logger and fires every kind of event, declared and made at
 * run time, every 10 ms, until its input ends. Prints "ready", a line for each call of the enable
 * callback, and "round N" after each round that began with the declared events enabled. With "churn" four threads fire, and a signal handler on each of them, and
 * children are forked that fire an event with their process id.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <spoor/activity.h>
#include <spoor/logger.h>

#include "lib/all_types.h"

static void enabled(const struct spoor_enable *what, void *context)
{
	(void)context;
	printf("enable %s %s level %u keywords 0x%llx any %d\n", what->provider->name,
		what->enabled ? "on" : "off", what->level, (unsigned long long)what->keywords,
		what->any_enabled);
	fflush(stdout);
}

SPOOR_PROVIDER_WITH(shop, "Test-Shop", enabled, NULL)
SPOOR_EVENT(shop, order, 1, SPOOR_WARNING, 0x8000000000000001, (u32, id), (text, name))
SPOOR_EVENT(shop, refund, 2, SPOOR_VERBOSE, 0x2, (i64, amount))
SPOOR_EVENT(shop, child, 3, SPOOR_WARNING, 0x1, (i32, pid))

static void at_run_time(struct spoor_event_source *source)
{
	struct spoor_writer w;

	if (spoor_source_begin(source, "Made", SPOOR_ERROR, 0x4, &w)) {
		spoor_write_u32(&w, "Number", 4711);
		spoor_write_text(&w, "Text", "made at run time");
		(void)spoor_source_end(&w);
	}
}

static bool is_enabled(void)
{
	return shop_order_enabled() && types_plain_enabled() && types_nested_enabled() &&
	       types_nothing_enabled();
}

static void print_round(bool counts)
{
	static unsigned rounds;

	if (!counts)
		return;
	printf("round %u\n", ++rounds);
	fflush(stdout);
}

/* ---- Activities and long texts ---- */

static bool is_refund_enabled(void)
{
	for (int i = 0; i < 3000 && !shop_refund_enabled(); i++)
		usleep(10000);
	return shop_refund_enabled();
}

static int activities(void)
{
	struct spoor_activity outer, inner;
	char text[6001];

	if (!is_refund_enabled())
		return 1;
	shop_refund(1);
	if (spoor_activity_start(&outer, "outer", NULL))
		return 1;
	shop_refund(2);
	(void)spoor_activity_start(&inner, "inner", NULL);
	shop_refund(3);
	spoor_activity_stop(&inner);
	spoor_activity_stop(&outer);
	shop_refund(4);
	memset(text, 'x', sizeof(text));
	text[2000] = '\0';
	shop_order(1, text);
	text[2000] = 'x';
	text[6000] = '\0';
	shop_order(2, text);
	spoor_stop();
	return 0;
}

/* ---- Churn ---- */

static bool ends;
static struct spoor_options options = { .size = sizeof(options), .flags = SPOOR_START_NO_SERVER };

static void handler(int number)
{
	(void)number;
	shop_order(8, "handler");
}

static void *thread(void *context)
{
	sigset_t set;

	(void)context;
	spoor_logger_prepare_thread();
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	while (!__atomic_load_n(&ends, __ATOMIC_RELAXED)) {
		types_fire_all();
		free(malloc(1000));
		usleep(100);
	}
	return NULL;
}

static int child(enum spoor_logger which)
{
	if (spoor_start(&options) || spoor_logger_start(which))
		return 1;
	for (int i = 0; i < 200 && !shop_child_enabled(); i++)
		usleep(10000);
	shop_child((int32_t)getpid());
	spoor_stop();
	return 0;
}

static int churn(enum spoor_logger which)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };
	struct itimerval interval = { { 0, 500 }, { 0, 500 } };
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
	pthread_t threads[4];
	sigset_t set;
	int status;

	sigaction(SIGALRM, &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	setitimer(ITIMER_REAL, &interval, NULL);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, thread, NULL);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (poll(&input, 1, 100) == 0) {
		print_round(types_nested_enabled());
		pid_t pid = fork();
		if (pid == 0)
			_exit(child(which));
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
			fprintf(stderr, "logger_writer: a child failed\n");
			return 1;
		}
	}
	__atomic_store_n(&ends, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	spoor_stop();
	return 0;
}

/* ---- The end of the process ---- */

/* Fires after the library has ended, as code of other objects may. */
__attribute__((destructor)) static void fire_at_the_end(void)
{
	types_fire_all();
}

/* exit() while four threads and their signal handlers fire. */
static int end_while_firing(void)
{
	struct itimerval interval = { { 0, 200 }, { 0, 200 } };
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
	pthread_t made;

	sigaction(SIGALRM, &action, NULL);
	for (int i = 0; i < 4; i++)
		pthread_create(&made, NULL, thread, NULL);
	setitimer(ITIMER_REAL, &interval, NULL);
	for (int i = 0; i < 3000 && !types_nested_enabled(); i++)
		usleep(1000);
	usleep(20000);
	printf("%s\n", types_nested_enabled() ? "enabled" : "not enabled");
	fflush(stdout);
	exit(0);
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "usdt", "lttng", "user-events" };
	struct pollfd input = { .fd = 0, .events = POLLIN };
	enum spoor_logger which = SPOOR_LOGGER_USDT;
	int r = -1;

	if (spoor_start(&options) || spoor_provider_register(&types))
		return 1;
	for (unsigned i = 0; argc > 1 && i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(argv[1], names[i]) == 0) {
			which = (enum spoor_logger)i;
			r = spoor_logger_start(which);
		}
	if (r) {
		fprintf(stderr, "logger_writer: %s\n", strerror(-r));
		return 1;
	}
	/* One provider before the logger was started, the others after it. */
	if (spoor_provider_register(&shop))
		return 1;
	if (argc > 2 && strcmp(argv[2], "churn") == 0)
		return churn(which);
	if (argc > 2 && strcmp(argv[2], "activities") == 0)
		return activities();
	if (argc > 2 && strcmp(argv[2], "exit") == 0)
		return end_while_firing();
	struct spoor_event_source *source = spoor_source_new("Run-Time");
	at_run_time(source);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (poll(&input, 1, 10) == 0) {
		bool counts = is_enabled();
		types_fire_all();
		shop_order(7, "tea");
		shop_refund(-5);
		at_run_time(source);
		print_round(counts);
	}
	char byte;
	(void)!read(0, &byte, 1);
	spoor_source_free(source);
	spoor_stop();
	return 0;
}
