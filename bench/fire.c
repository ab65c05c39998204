/*
 * libspoor's side of bench/run lib. Prints "NAME VALUE" lines.
 *
 *   fire machine                                 clock read, counter read, core-to-core round trip
 *   fire disabled                                a disabled event, over the empty loop
 *   fire cost CLOCK SESSIONS KIND THREADS        an event: firing thread; CLOCK counter or clock, KIND file memory rings
 *   fire sessions CLOCK KIND COUNT               an event that one session enabled and one that COUNT sessions enabled, in turns
 *   fire threads CLOCK KIND                      one thread that fires and two, in turns
 *   fire rate KIND THREADS MILLION SECONDS RING  MILLION events a second in total, for SECONDS,
 *   with rings of RING MiB: how many were lost
 *   fire first                                   an event of a new thread after its first thousand, until its ring is full
 *   fire logger NAME                             an event that a tool of this logger enables; waits for the tool
 *   fire accuracy                                how far converted counter stamps are off
 */
#include <spoor/logger.h>

SPOOR_PROVIDER(bench, "Bench")
SPOOR_EVENT(bench, four, 1, SPOOR_INFO, 0x1, (u32, number), (u64, bytes), (f64, price),
	(text, name))
/* Every session enables this event; only the first session enables the other one. */
SPOOR_EVENT(bench, all, 2, SPOOR_INFO, 0x2, (u32, number), (u64, bytes), (f64, price), (text, name))

#define FIRE(i, text) bench_four((i), (uint64_t)(i)*3, (i)*0.5, (text))
#define FIRE_REST()   rest()
static void rest(void);
#include "fire.h"

#include <semaphore.h>
#include <unistd.h>

static const char *folder = "/tmp";
static bool pauses;                   /* FIRE_REST() sleeps for 2 ms */
static struct spoor_session *resting; /* FIRE_REST() waits until it has received all events */

/* Waits until the sink has all fired events. On a busy machine this may take seconds. */
static void rest(void)
{
	if (resting)
		(void)spoor_session_flush(resting, 10000);
	if (pauses)
		nanosleep(&(struct timespec){ 0, 2000000 }, NULL);
}

/* Events lost before the sink. (A full memory session overwrites its oldest events; these are not lost.) */
static uint64_t lost_on_the_way;

static void note(const struct spoor_notice *notice, void *context)
{
	(void)context;
	if (notice->kind == SPOOR_NOTICE_LOST)
		lost_on_the_way += notice->count;
}

static struct spoor_session *session_start(const char *kind, unsigned index, uint64_t keywords)
{
	struct spoor_want want = {
		.size = sizeof(want), .name = "Bench", .keywords = keywords, .level = SPOOR_VERBOSE
	};
	struct spoor_session_options options = { .size = sizeof(options),
		.wants = &want,
		.want_count = 1,
		.buffer_bytes = 64 << 20,
		.notice = note };
	struct spoor_session *session = NULL;
	char path[256];
	struct spoor_file_options file = { .size = sizeof(file), .path = path };
	int r;

	snprintf(path, sizeof(path), "%s/fire%u.nettrace", folder, index);
	if (strcmp(kind, "file") == 0) {
		r = spoor_session_start_file(&options, &file, &session);
	} else if (strcmp(kind, "memory") == 0) {
		options.policy = SPOOR_OVERWRITE_OLDEST;
		file.path = NULL;
		r = spoor_session_start_file(&options, &file, &session);
	} else {
		r = spoor_session_start_rings(&options, &session);
	}
	if (r) {
		fprintf(stderr, "fire: cannot start a session: %s\n", strerror(-r));
		exit(1);
	}
	return session;
}

static void library_start(const char *clock, size_t ring_bytes)
{
	struct spoor_options options = { .size = sizeof(options),
		.flags = SPOOR_START_NO_SERVER,
		.ring_bytes = ring_bytes,
		.clock = strcmp(clock, "clock") == 0 ? SPOOR_CLOCK_MONOTONIC : SPOOR_CLOCK_AUTO };
	int r = spoor_start(&options);

	if (r || spoor_provider_register(&bench)) {
		fprintf(stderr, "fire: cannot start the library\n");
		exit(1);
	}
}

/* ---- The machine ---- */

static uint64_t ball __attribute__((aligned(64)));

static void *bounce(void *context)
{
	(void)context;
	for (uint64_t i = 1; i < 400001; i += 2) {
		while (__atomic_load_n(&ball, __ATOMIC_ACQUIRE) != i)
			;
		__atomic_store_n(&ball, i + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static void machine(void)
{
	static double costs[2000];
	pthread_t thread;

	for (int k = 0; k < 2; k++) {
		for (unsigned b = 0; b < 2000; b++) {
			uint64_t before = __rdtsc();
			for (int i = 0; i < 100; i++) {
				if (k)
					(void)*(volatile uint64_t *)&(uint64_t){ __rdtsc() };
				else
					(void)fire_now_ns();
			}
			costs[b] = (double)(__rdtsc() - before) / 100;
		}
		printf("%s %.2f\n", k ? "counter_ns" : "clock_ns",
			fire_median(costs, 2000) * fire_ns_per_tick());
	}
	/* The median of several parts, because the other thread may lose its CPU during one of them. */
	pthread_create(&thread, NULL, bounce, NULL);
	for (uint64_t b = 0; b < 2000; b++) {
		uint64_t before = __rdtsc();
		for (uint64_t i = b * 200; i < (b + 1) * 200; i += 2) {
			__atomic_store_n(&ball, i + 1, __ATOMIC_RELEASE);
			while (__atomic_load_n(&ball, __ATOMIC_ACQUIRE) != i + 2)
				;
		}
		costs[b] = (double)(__rdtsc() - before) / 100;
	}
	pthread_join(thread, NULL);
	printf("round_trip_ns %.0f\n", fire_median(costs, 2000) * fire_ns_per_tick());
}

/* ---- Costs ---- */

static void *cost_thread(void *result)
{
	*(double *)result = fire_cost();
	return NULL;
}

/* Ends a session that should have received `fired` events. */
static int session_finish(struct spoor_session *session, uint64_t fired, bool print)
{
	struct spoor_session_counts counts = { .size = sizeof(counts) };
	int bad = 0;

	spoor_session_stop(session);
	spoor_session_count(session, &counts);
	if (print)
		printf("written %llu\nlost %llu\n", (unsigned long long)counts.written,
			(unsigned long long)counts.lost);
	if (counts.written + counts.lost != fired) {
		fprintf(stderr, "fire: %llu written and %llu lost are not %llu fired\n",
			(unsigned long long)counts.written, (unsigned long long)counts.lost,
			(unsigned long long)fired);
		bad = 1;
	}
	spoor_session_free(session);
	return bad;
}

static int finish(struct spoor_session **sessions, unsigned count, uint64_t fired)
{
	int bad = 0;

	for (unsigned i = 0; i < count; i++)
		bad |= session_finish(sessions[i], fired, !i);
	return bad;
}

static int cost(const char *clock, unsigned session_count, const char *kind, unsigned thread_count)
{
	struct spoor_session *sessions[64];
	pthread_t threads[16];
	double results[16];
	double sum = 0;

	library_start(clock, 0);
	for (unsigned i = 0; i < session_count && i < 64; i++)
		resting = sessions[i] = session_start(kind, i, UINT64_MAX);
	(void)fire_ns_per_tick();
	for (unsigned i = 0; i < thread_count && i < 16; i++)
		pthread_create(&threads[i], NULL, cost_thread, &results[i]);
	for (unsigned i = 0; i < thread_count && i < 16; i++) {
		pthread_join(threads[i], NULL);
		sum += results[i];
	}
	printf("event_ns %.2f\n", sum / thread_count);
	return finish(sessions, session_count, (uint64_t)thread_count * BATCH * BURST * ROUNDS);
}

/*
 * ---- Pairs: two costs measured in turns within a millisecond, with the round trip between the cores at that time ----
 */

#define MOMENTS 250u
#define NEAR_NS 150.0 /* round trips are of 50 to 80 ns or of some 300; */
#define FAR_NS  600.0 /* longer ones are of threads that waited for a CPU */

struct moment {
	double one, many;
	double round_trip_ns;
};

/* The second thread: returns the ball for the round trip, or fires a burst when the first one does. */
static struct {
	sem_t go, done;
	bool stop;
	bool fires;
	uint64_t ball __attribute__((aligned(64)));
	double costs[BURST];
} other;

static void burst(double costs[BURST], bool all)
{
	static __thread uint32_t n;

	for (unsigned b = 0; b < BURST; b++) {
		uint64_t before = __rdtsc();
		if (all)
			for (unsigned i = 0; i < BATCH; i++, n++)
				bench_all(n, (uint64_t)n * 3, n * 0.5, fire_texts[n & 3]);
		else
			for (unsigned i = 0; i < BATCH; i++, n++)
				FIRE(n, fire_texts[n & 3]);
		costs[b] = (double)(__rdtsc() - before) / BATCH;
	}
}

#define TRIPS 100u

static void *other_thread(void *context)
{
	(void)context;
	for (;;) {
		sem_wait(&other.go);
		if (other.stop)
			return NULL;
		/* Measure only after both threads have started. */
		while (__atomic_load_n(&other.ball, __ATOMIC_ACQUIRE) != 1)
			;
		__atomic_store_n(&other.ball, 2, __ATOMIC_RELEASE);
		if (other.fires) {
			burst(other.costs, false);
		} else {
			for (uint64_t i = 3; i < 2 * TRIPS + 3; i += 2) {
				while (__atomic_load_n(&other.ball, __ATOMIC_ACQUIRE) != i)
					;
				__atomic_store_n(&other.ball, i + 1, __ATOMIC_RELEASE);
			}
		}
		sem_post(&other.done);
	}
}

static void other_begin(bool fires)
{
	other.fires = fires;
	__atomic_store_n(&other.ball, 1, __ATOMIC_RELEASE);
	sem_post(&other.go);
	while (__atomic_load_n(&other.ball, __ATOMIC_ACQUIRE) != 2)
		;
}

static double round_trip_ns(void)
{
	double costs[TRIPS / 10];

	/* The median of groups of ten, because the other thread may lose its CPU during one of them. */
	other_begin(false);
	for (uint64_t i = 2, k = 0; k < TRIPS / 10; k++) {
		uint64_t before = __rdtsc();
		for (uint64_t end = i + 20; i < end; i += 2) {
			__atomic_store_n(&other.ball, i + 1, __ATOMIC_RELEASE);
			while (__atomic_load_n(&other.ball, __ATOMIC_ACQUIRE) != i + 2)
				;
		}
		costs[k] = (double)(__rdtsc() - before) / 10;
	}
	sem_wait(&other.done);
	return fire_median(costs, TRIPS / 10) * fire_ns_per_tick();
}

/* Medians of the moments whose round trip took between `from` and `to`. */
static void moments_print(const struct moment *moments, const char *name, double from, double to)
{
	static double one[MOMENTS], many[MOMENTS], ratios[MOMENTS], trips[MOMENTS];
	size_t count = 0;

	for (unsigned i = 0; i < MOMENTS; i++) {
		if (moments[i].round_trip_ns < from || moments[i].round_trip_ns >= to)
			continue;
		one[count] = moments[i].one;
		many[count] = moments[i].many;
		trips[count] = moments[i].round_trip_ns;
		ratios[count++] = moments[i].many / moments[i].one;
	}
	printf("%s_moments %zu\n", name, count);
	if (count)
		printf("%s_one_ns %.2f\n%s_many_ns %.2f\n%s_ratio %.3f\n%s_round_trip_ns %.0f\n",
			name, fire_median(one, count), name, fire_median(many, count), name,
			fire_median(ratios, count), name, fire_median(trips, count));
}

static void moments_end(const struct moment *moments, pthread_t thread)
{
	other.stop = true;
	sem_post(&other.go);
	pthread_join(thread, NULL);
	moments_print(moments, "all", 0, 1e12);
	moments_print(moments, "near", 0, NEAR_NS);
	moments_print(moments, "far", NEAR_NS, FAR_NS);
}

static pthread_t moments_begin(void)
{
	pthread_t thread;

	(void)fire_ns_per_tick();
	sem_init(&other.go, 0, 0);
	sem_init(&other.done, 0, 0);
	pthread_create(&thread, NULL, other_thread, NULL);
	return thread;
}

static int sessions(const char *clock, const char *kind, unsigned count)
{
	static struct moment moments[MOMENTS];
	struct spoor_session *started[64];
	double costs[2][BURST];
	int bad = 0;

	library_start(clock, 0);
	count = count > 64 ? 64 : count;
	for (unsigned i = 0; i < count; i++)
		resting = started[i] = session_start(kind, i, i ? 0x2 : 0x3);
	pthread_t thread = moments_begin();
	for (unsigned i = 0; i < MOMENTS; i++) {
		moments[i].round_trip_ns = round_trip_ns();
		rest();
		for (unsigned k = 0; k < 2; k++) {
			bool all = k != i % 2;
			burst(costs[all], all);
			rest();
		}
		moments[i].one = fire_median(costs[0], BURST) * fire_ns_per_tick();
		moments[i].many = fire_median(costs[1], BURST) * fire_ns_per_tick();
	}
	moments_end(moments, thread);
	for (unsigned i = 0; i < count; i++)
		bad |= session_finish(started[i], (uint64_t)(i ? 1 : 2) * MOMENTS * BURST * BATCH,
			!i);
	return bad;
}

static int threads(const char *clock, const char *kind)
{
	static struct moment moments[MOMENTS];
	struct spoor_session *session;
	double alone[BURST], both[2 * BURST];

	library_start(clock, 0);
	resting = session = session_start(kind, 0, UINT64_MAX);
	pthread_t thread = moments_begin();
	for (unsigned i = 0; i < MOMENTS; i++) {
		moments[i].round_trip_ns = round_trip_ns();
		rest();
		for (unsigned k = 0; k < 2; k++) {
			if (k == i % 2) {
				burst(alone, false);
			} else {
				other_begin(true);
				burst(both, false);
				sem_wait(&other.done);
				memcpy(both + BURST, other.costs, sizeof(other.costs));
			}
			rest();
		}
		moments[i].one = fire_median(alone, BURST) * fire_ns_per_tick();
		moments[i].many = fire_median(both, 2 * BURST) * fire_ns_per_tick();
	}
	moments_end(moments, thread);
	return session_finish(session, (uint64_t)3 * MOMENTS * BURST * BATCH, true);
}

/* ---- Rates ---- */

struct pace {
	double per_second;
	double seconds;
	size_t ring_bytes;
	uint64_t fired; /* at the given rate */
	uint64_t first; /* before the rate starts */
	uint64_t cpu_ns;
};

static uint64_t cpu_now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * Fires batches at fixed times and sleeps between them, because the library's thread needs a CPU as
 * well. After a late batch the next one follows without sleep.
 */
static void *pace_thread(void *context)
{
	struct pace *pace = context;
	uint32_t n = 0;

	/*
	 * Fill the ring once, slowly: its memory is new, and the cost of its first use is not part
	 * of the result.
	 */
	while (pace->first < pace->ring_bytes / 48) {
		for (unsigned i = 0; i < 1000; i++, n++)
			FIRE(n, fire_texts[n & 3]);
		pace->first += 1000;
		nanosleep(&(struct timespec){ 0, 200000 }, NULL);
	}
	uint64_t begin = fire_now_ns();
	for (;;) {
		uint64_t now = fire_now_ns();
		if ((double)(now - begin) > pace->seconds * 1e9)
			break;
		double due = (double)(now - begin) * 1e-9 * pace->per_second;
		while ((double)pace->fired < due) {
			for (unsigned i = 0; i < 100; i++, n++)
				FIRE(n, fire_texts[n & 3]);
			pace->fired += 100;
		}
		nanosleep(&(struct timespec){ 0, 50000 }, NULL);
	}
	pace->cpu_ns = cpu_now_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

static int rate(const char *kind, unsigned thread_count, double millions, double seconds,
	size_t ring_mib)
{
	struct spoor_session *session;
	pthread_t threads[16];
	struct pace paces[16];
	uint64_t fired = 0;
	uint64_t first = 0;

	library_start("counter", ring_mib << 20);
	lost_on_the_way = 0;
	session = session_start(kind, 0, UINT64_MAX);
	uint64_t reader_ns = cpu_now_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (unsigned i = 0; i < thread_count && i < 16; i++) {
		paces[i] = (struct pace){ millions * 1e6 / thread_count, seconds, ring_mib << 20, 0,
			0, 0 };
		pthread_create(&threads[i], NULL, pace_thread, &paces[i]);
	}
	for (unsigned i = 0; i < thread_count && i < 16; i++) {
		pthread_join(threads[i], NULL);
		fired += paces[i].fired;
		first += paces[i].first;
		reader_ns += paces[i].cpu_ns;
	}
	(void)spoor_session_flush(session, 10000);
	reader_ns = cpu_now_ns(CLOCK_PROCESS_CPUTIME_ID) - reader_ns;
	printf("fired %llu\nmillions_per_second %.2f\n", (unsigned long long)fired,
		(double)fired / seconds * 1e-6);
	int bad = finish(&session, 1, fired + first);
	printf("lost_on_the_way %llu\n", (unsigned long long)lost_on_the_way);
	/* CPU time of the library's thread for each received event. */
	printf("reader_ns %.1f\n", (double)reader_ns / (double)(fired + first - lost_on_the_way));
	return bad;
}

/* ---- Accuracy: the time stamp of an event lies between two reads of the clock around it ---- */

static int accuracy(void)
{
	struct spoor_want want = { .size = sizeof(want),
		.name = "Bench",
		.keywords = UINT64_MAX,
		.level = SPOOR_VERBOSE };
	struct spoor_session_options options = {
		.size = sizeof(options), .wants = &want, .want_count = 1
	};
	struct spoor_session *session = NULL;
	struct spoor_event_view view = { .size = sizeof(view) };
	static uint64_t before[20000], after[20000];
	static double errors[20000];
	size_t count = 0;

	library_start("counter", 0);
	if (spoor_session_start_listener(&options, &session))
		return 1;
	for (unsigned i = 0; i < 20000; i++) {
		before[i] = fire_now_ns();
		FIRE(i, fire_texts[i & 3]);
		after[i] = fire_now_ns();
		if (i % 20 == 0)
			usleep(100);
	}
	spoor_session_stop(session);
	for (unsigned i = 0; i < 20000 && spoor_listener_read(session, &view, 0) == 1; i++) {
		double error = view.time_ns < before[i]  ? (double)(before[i] - view.time_ns)
			       : view.time_ns > after[i] ? (double)(view.time_ns - after[i])
							 : 0;
		errors[count++] = error;
	}
	qsort(errors, count, sizeof(*errors), fire_compare);
	printf("events %zu\noutside_median_ns %.0f\noutside_p99_ns %.0f\noutside_most_ns %.0f\n",
		count, errors[count / 2], errors[count * 99 / 100], errors[count - 1]);
	spoor_session_free(session);
	return 0;
}

/* ---- The first events of a thread ---- */

#define FIRST_THREADS 15
#define FIRST_EVENTS  45000u /* fill 3 of the 4 MiB of a ring */

static pthread_barrier_t first_barrier;

/* The median over batches: each batch uses as many new pages as the others. */
static void *first_thread(void *result)
{
	double costs[FIRST_EVENTS / BATCH - 1];

	for (uint32_t i = 0; i < BATCH; i++)
		FIRE(i, fire_texts[i & 3]);
	for (uint32_t k = 0; k < FIRST_EVENTS / BATCH - 1; k++) {
		uint64_t before = __rdtsc();
		for (uint32_t i = 0; i < BATCH; i++)
			FIRE(i, fire_texts[i & 3]);
		costs[k] = (double)(__rdtsc() - before) / BATCH;
	}
	*(double *)result = fire_median(costs, FIRST_EVENTS / BATCH - 1);
	pthread_barrier_wait(&first_barrier); /* so that each thread has a new ring */
	return NULL;
}

static int first(void)
{
	double costs[FIRST_THREADS];
	pthread_t threads[FIRST_THREADS];

	library_start("counter", 0);
	struct spoor_session *session = session_start("rings", 0, 0x1);
	pthread_barrier_init(&first_barrier, NULL, FIRST_THREADS + 1);
	for (int i = 0; i < FIRST_THREADS; i++) {
		pthread_create(&threads[i], NULL, first_thread, &costs[i]);
		usleep(20000);
	}
	pthread_barrier_wait(&first_barrier);
	for (int i = 0; i < FIRST_THREADS; i++)
		pthread_join(threads[i], NULL);
	spoor_session_stop(session);
	spoor_session_free(session);
	printf("event_ns %.2f\n", fire_median(costs, FIRST_THREADS) * fire_ns_per_tick());
	return 0;
}

static int logger(const char *name)
{
	enum spoor_logger which = strcmp(name, "lttng") == 0         ? SPOOR_LOGGER_LTTNG
				  : strcmp(name, "user-events") == 0 ? SPOOR_LOGGER_USER_EVENTS
								     : SPOOR_LOGGER_USDT;

	library_start("counter", 0);
	int r = spoor_logger_start(which);
	if (r) {
		fprintf(stderr, "fire: cannot start the logger %s: %s\n", name, strerror(-r));
		return 1;
	}
	while (!bench_four_enabled())
		usleep(1000);
	/* A tool of USDT raises the semaphore before its probe is complete. */
	if (which == SPOOR_LOGGER_USDT)
		sleep(1);
	/* LTTng's daemon takes the full sub-buffers in the pauses, as in fire_lttng.c. */
	pauses = which == SPOOR_LOGGER_LTTNG;
	printf("event_ns %.2f\n", fire_cost());
	spoor_stop();
	return 0;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";

	if (getenv("FIRE_FOLDER"))
		folder = getenv("FIRE_FOLDER");
	if (strcmp(verb, "machine") == 0) {
		machine();
		return 0;
	}
	if (strcmp(verb, "disabled") == 0) {
		library_start("counter", 0);
		printf("event_ns %.3f\n", fire_disabled());
		return 0;
	}
	if (strcmp(verb, "cost") == 0 && argc == 6)
		return cost(argv[2], (unsigned)atoi(argv[3]), argv[4], (unsigned)atoi(argv[5]));
	if (strcmp(verb, "sessions") == 0 && argc == 5)
		return sessions(argv[2], argv[3], (unsigned)atoi(argv[4]));
	if (strcmp(verb, "threads") == 0 && argc == 4)
		return threads(argv[2], argv[3]);
	if (strcmp(verb, "rate") == 0 && argc == 7)
		return rate(argv[2], (unsigned)atoi(argv[3]), atof(argv[4]), atof(argv[5]),
			(size_t)atoi(argv[6]));
	if (strcmp(verb, "logger") == 0 && argc == 3)
		return logger(argv[2]);
	if (strcmp(verb, "accuracy") == 0)
		return accuracy();
	if (strcmp(verb, "first") == 0)
		return first();
	fprintf(stderr,
		"fire machine | disabled | cost CLOCK SESSIONS KIND THREADS | sessions CLOCK KIND COUNT | threads CLOCK KIND | rate KIND THREADS MILLION SECONDS RING | logger NAME | accuracy | first\n");
	return 2;
}
