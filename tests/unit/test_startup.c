/* Starts of processes: the steps, what the time between them went into, and what is left out. */
#include "trace/provider_kind.h"
#include "trace/source_event.h"
#include "unit/answers_fixture.h"

static void step(struct fixture *f, uint64_t written_ms, const char *name, uint64_t at_ms)
{
	struct bytes payload = { 0 };

	fixture_utf16(&payload, name);
	bytes_u64(&payload, BEGIN_NS + at_ms * MS);
	fixture_event(f, written_ms,
		&(struct schema){
			.provider_kind = PROVIDER_SPOOR, .event_id = ID_SPOOR_START_STEP },
		NULL, &payload);
}

static void add_method(struct bytes *payload, const char *type, const char *name)
{
	fixture_utf16(payload, type);
	fixture_utf16(payload, name);
	fixture_utf16(payload, "void  ()");
}

static void jitting(struct fixture *f, uint64_t at_ms, uint64_t id, const char *name)
{
	struct bytes payload = { 0 };

	bytes_u64(&payload, id);
	bytes_u64(&payload, 1);
	bytes_u32(&payload, 0x06000001);
	bytes_u32(&payload, 40);
	add_method(&payload, "Shop.Program", name);
	fixture_pass(f, at_ms, CLR_ID_MethodJittingStarted, 1, &payload);
}

static void loaded(struct fixture *f, uint64_t at_ms, uint64_t id, const char *name)
{
	struct bytes payload = { 0 };

	bytes_u64(&payload, id);
	bytes_u64(&payload, 1);
	bytes_u64(&payload, JIT);
	bytes_u32(&payload, 100);
	bytes_u32(&payload, 0x06000001);
	bytes_u32(&payload, 8);
	add_method(&payload, "Shop.Program", name);
	fixture_pass(f, at_ms, CLR_ID_MethodLoadVerbose, 1, &payload);
}

static void assembly(struct fixture *f, uint64_t from_ms, uint64_t to_ms, const char *name)
{
	struct bytes begin = { 0 };
	struct bytes payload = { 0 };

	bytes_u16(&begin, 0);
	fixture_utf16(&begin, name);
	fixture_pass(f, from_ms, CLR_ID_AssemblyLoadStart, 0, &begin);
	for (unsigned i = 0; i < 3; i++)
		bytes_u64(&payload, 0);
	bytes_u32(&payload, 0);
	fixture_utf16(&payload, name);
	fixture_pass(f, to_ms, CLR_ID_AssemblyLoad, 1, &payload);
}

static void hosting(struct fixture *f, uint64_t at_ms, uint32_t id, const char *name)
{
	struct bytes payload = { 0 };

	fixture_event(f, at_ms,
		&(struct schema){ .provider_kind = PROVIDER_OTHER,
			.provider = trace_add_text(&f->trace, PROVIDER_HOSTING_NAME),
			.name = trace_add_text(&f->trace, name),
			.event_id = id },
		NULL, &payload);
}

static void precompiled(struct fixture *f, uint64_t at_ms, const char *name)
{
	struct bytes payload = { 0 };

	bytes_u64(&payload, 7);
	add_method(&payload, "Shop.Program", name);
	fixture_pass(f, at_ms, CLR_ID_R2RGetEntryPoint, 0, &payload);
}

static void runtime_begins(struct fixture *f, uint64_t at_ms)
{
	struct bytes payload = { 0 };

	fixture_pass(f, at_ms, CLR_ID_RuntimeInformationStart, 0, &payload);
}

static void start_server(struct fixture *f)
{
	/* The steps of the host are written after they were taken. */
	step(f, 60, "exec", 20);
	step(f, 60, "hostfxr", 30);
	step(f, 60, "hostpolicy", 45);
	step(f, 60, "coreclr", 55);
	step(f, 60, "nothing known", 1);
	runtime_begins(f, 70);
	assembly(f, 71, 75, "System.Runtime, Version=10.0.0.0");
	precompiled(f, 80, "Parse");
	jitting(f, 90, 5, "Main");
	jitting(f, 92, 6, "Main"); /* of another type, later */
	loaded(f, 93, 6, "Main");
	loaded(f, 95, 5, "Main");
	loaded(f, 96, 9, "Early"); /* its begin is not known */
	hosting(f, 200, SOURCE_ID_HOSTING_SERVER_READY, "ServerReady");
	hosting(f, 300, SOURCE_ID_HOSTING_REQUEST_STOP, "RequestStop"); /* of no request */
	hosting(f, 400, SOURCE_ID_HOSTING_REQUEST_START, "RequestStart");
	jitting(f, 410, 8, "Get");
	loaded(f, 420, 8, "Get");
	hosting(f, 450, SOURCE_ID_HOSTING_REQUEST_STOP, "RequestStop");
	jitting(f, 500, 10, "After");
	loaded(f, 510, 10, "After");
}

static void check_phase(const struct startup_process *process, uint32_t i, enum startup_step from,
	uint64_t wall_ms)
{
	assert_true(i < process->phase_count);
	assert_int_equal(process->phases[i].step, from);
	assert_int_equal(process->phases[i].to_ns - process->phases[i].from_ns, wall_ms * MS);
}

static void test_server(void **state)
{
	struct fixture f;

	(void)state;
	fixture_begin(&f, ANSWER_STARTUP);
	start_server(&f);
	fixture_finish(&f);
	const struct startup *startup = &f.answers.startup;
	assert_int_equal(startup->processes.count, 1);
	const struct startup_process *process = &startup->processes.items[0];
	assert_int_equal(process->phase_count, 8);
	static const uint64_t walls[] = { 10, 15, 10, 15, 20, 110, 200, 50 };
	for (uint32_t i = 0; i < 8; i++)
		check_phase(process, i, (enum startup_step)i, walls[i]);
	assert_int_equal(startup_last_step(process), STARTUP_READY);
	const struct startup_phase *to_main = &process->phases[STARTUP_RUNTIME];
	assert_int_equal(to_main->count[STARTUP_ASSEMBLY], 1);
	assert_int_equal(to_main->total_ns[STARTUP_ASSEMBLY], 4 * MS);
	assert_int_equal(to_main->count[STARTUP_R2R], 1);
	const struct startup_phase *in_main = &process->phases[STARTUP_MAIN];
	assert_int_equal(in_main->count[STARTUP_JIT], 2);
	assert_int_equal(in_main->total_ns[STARTUP_JIT], 6 * MS);
	assert_int_equal(process->phases[STARTUP_REQUEST].total_ns[STARTUP_JIT], 10 * MS);
	/* longest first; what follows the answer is no part of the start */
	const struct startup_mark *marks = &startup->marks.items[process->mark_at];
	assert_int_equal(process->mark_count, 5);
	assert_string_equal(strtab_get(&startup->texts, marks[0].text), "Shop.Program.Get");
	assert_string_equal(strtab_get(&startup->texts, marks[process->mark_count - 1].text),
		"System.Runtime");
	fixture_end(&f);
}

/* A program without a host's steps, as in other tools' files, and one that ran before. */
static void test_partial(void **state)
{
	struct fixture f;

	(void)state;
	fixture_begin(&f, ANSWER_STARTUP);
	runtime_begins(&f, 70);
	precompiled(&f, 90, "<Main>$");
	fixture_finish(&f);
	const struct startup_process *process = &f.answers.startup.processes.items[0];
	assert_int_equal(f.answers.startup.processes.count, 1);
	assert_int_equal(process->phase_count, 2);
	check_phase(process, 0, STARTUP_RUNTIME, 20);
	check_phase(process, 1, STARTUP_MAIN, 910); /* to the end of the recording */
	assert_int_equal(process->phases[1].until, STARTUP_STEPS);
	fixture_end(&f);

	fixture_begin(&f, ANSWER_STARTUP);
	f.trace.processes.items[f.trace.threads.items[f.thread].process].existed = true;
	jitting(&f, 90, 5, "Main");
	fixture_finish(&f);
	assert_int_equal(f.answers.startup.processes.count, 0);
	fixture_end(&f);

	/* An exec alone is no start of a .NET process. */
	fixture_begin(&f, ANSWER_STARTUP);
	step(&f, 60, "exec", 20);
	fixture_finish(&f);
	assert_int_equal(f.answers.startup.processes.count, 0);
	fixture_end(&f);
}

static void test_selection(void **state)
{
	struct fixture f;

	(void)state;
	fixture_begin(&f, ANSWER_STARTUP);
	f.profile.filter.from_ns = 30 * MS; /* it began before */
	start_server(&f);
	fixture_finish(&f);
	assert_int_equal(f.answers.startup.processes.count, 0);
	fixture_end(&f);
}

static void test_short_payloads(void **state)
{
	static const uint32_t ids[] = { CLR_ID_MethodJittingStarted, CLR_ID_MethodLoadVerbose,
		CLR_ID_R2RGetEntryPoint, CLR_ID_AssemblyLoadStart, CLR_ID_AssemblyLoad };
	struct fixture f;

	(void)state;
	fixture_begin(&f, ANSWER_STARTUP);
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		struct bytes payload = { 0 };
		bytes_u16(&payload, 7);
		fixture_pass(&f, 10, ids[i], 1, &payload);
	}
	fixture_finish(&f);
	assert_int_equal(f.answers.startup.processes.count, 0);
	assert_int_equal(f.answers.startup.marks.count, 0);
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_server),
		cmocka_unit_test(test_partial),
		cmocka_unit_test(test_selection),
		cmocka_unit_test(test_short_payloads),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
