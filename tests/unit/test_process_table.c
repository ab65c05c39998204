/*
 * process_table.c: processes that fork, execute and end, and reused pids, as reported by records of
 * the kernel and by a fake /proc.
 */
#include "unit/test.h"

#include "trace/spoor_payload.h"
#include "unit/live_fixture.h"

static const struct live_options whole_machine = { .machine = true };

static int open_machine(void **state)
{
	(void)state;
	fixture_open(&whole_machine, false);
	return 0;
}

/* Only processes of these pids, whose records come from rings of the whole machine. */
static int open_filtered(void **state)
{
	static const uint32_t pids[] = { 100 };
	static const struct live_options options = { .pids = pids, .pid_count = 1 };

	(void)state;
	fixture_open(&options, true);
	fixture.live->writer.begin_ns = 1000000;
	return 0;
}

static int close_fixture(void **state)
{
	(void)state;
	fixture_close();
	return 0;
}

/* ---- the fake /proc ---- */

static void put_file(const char *folder, const char *name, const char *text)
{
	char path[256];

	(void)mkdir(folder, 0700); /* it may exist */
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* A process that runs, with one mapping. `start_us` becomes its start time. */
static void put_process(uint32_t pid, uint32_t parent, const char *comm, uint64_t start_us)
{
	char folder[128], text[512];

	snprintf(folder, sizeof(folder), "%s/%u", fixture.folder, pid);
	snprintf(text, sizeof(text),
		"%u (%s) S %u 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 %llu 4096 10\n", pid, comm,
		parent, (unsigned long long)start_us);
	put_file(folder, "stat", text);
	snprintf(text, sizeof(text),
		"Name:\t%s\nUid:\t7\t8\t8\t8\nGid:\t9\t9\t9\t9\nNSpid:\t%u\t1\n", comm, pid);
	put_file(folder, "status", text);
	put_file(folder, "maps", "00400000-00500000 r-xp 00001000 08:01 42    /usr/bin/shop\n");
}

/* ---- the written events ---- */

static unsigned count_written(enum known_event known)
{
	unsigned count = 0;

	for (uint32_t i = 0; i < fixture.written.count; i++)
		count += fixture.written.items[i].known == known;
	return count;
}

static const struct written *last_written(enum known_event known)
{
	for (uint32_t i = fixture.written.count; i-- > 0;)
		if (fixture.written.items[i].known == known)
			return &fixture.written.items[i];
	fail_msg("no such event was written");
	return NULL;
}

static struct process *row(uint32_t index)
{
	return &fixture.live->trace.processes.items[index];
}

static const char *name_of(uint32_t index)
{
	return trace_text(&fixture.live->trace, row(index)->name);
}

static uint32_t text(const char *value)
{
	return strtab_add(&fixture.live->trace.strings, value, strlen(value));
}

static void fork_at(uint64_t time_ns, uint32_t parent, uint32_t pid)
{
	process_table_fork(&fixture.live->table,
		&(struct pending){ .time_ns = time_ns,
			.pid = pid,
			.tid = pid,
			.value = (uint64_t)parent << 32 | parent });
}

static void comm_at(uint64_t time_ns, uint32_t pid, uint32_t tid, const char *name, bool exec)
{
	process_table_comm(&fixture.live->table, &(struct pending){ .time_ns = time_ns,
							 .pid = pid,
							 .tid = tid,
							 .value = text(name),
							 .flag = exec });
}

static void exit_at(uint64_t time_ns, uint32_t pid, uint32_t tid)
{
	process_table_exit(&fixture.live->table,
		&(struct pending){ .time_ns = time_ns, .pid = pid, .tid = tid });
}

static void map_at(uint64_t time_ns, uint32_t process, uint64_t begin, const char *path)
{
	const struct pending_mapping mapping = {
		.begin = begin, .end = begin + 0x1000, .path = text(path)
	};

	process_table_add_mapping(&fixture.live->table, process, &mapping, time_ns);
}

static const struct mapping *mapping_of(uint32_t process, uint32_t number)
{
	assert_true(number < row(process)->mappings.count);
	return &fixture.live->trace.mappings.items[row(process)->mappings.items[number]];
}

static void test_scan_reads_what_runs(void **state)
{
	struct live_parts *live = fixture.live;

	(void)state;
	put_process(100, 1, "shop", 5000);
	put_process(101, 100, "worker", 6000);
	process_table_scan(&live->table);
	uint32_t shop = process_table_find(&live->table, 100);
	uint32_t worker = process_table_find(&live->table, 101);
	assert_true(shop && worker && shop != worker);
	assert_int_equal(process_table_find(&live->table, 102), 0);
	assert_string_equal(name_of(shop), "shop");
	assert_int_equal(row(worker)->parent_pid, 100);
	assert_int_equal(row(shop)->uid, 8);
	assert_int_equal(row(shop)->inner_pid, 1);
	assert_int_equal(row(shop)->begin_ns, 5000000);
	assert_true(row(shop)->existed);
	assert_int_equal(row(shop)->mappings.count, 1);
	assert_int_equal(mapping_of(shop, 0)->begin, 0x400000);
	assert_int_equal(mapping_of(shop, 0)->file_offset, 0x1000);
	assert_int_equal(mapping_of(shop, 0)->inode, 42);

	/* Records from before the reading of /proc are already contained in it. */
	comm_at(1, 100, 100, "old", true);
	fork_at(1, 7, 100);
	assert_string_equal(name_of(shop), "shop");
	assert_int_equal(process_table_find(&live->table, 100), shop);
	assert_int_equal(row(shop)->mappings.count, 1);
}

static void test_mapping_is_added_once(void **state)
{
	uint32_t process = process_table_process(&fixture.live->table, 100);

	(void)state;
	map_at(10, process, 0x1000, "/lib/a");
	map_at(20, process, 0x1000, "/lib/a");
	assert_int_equal(row(process)->mappings.count, 1);
	assert_int_equal(mapping_of(process, 0)->from_ns, 10);
	/* Another file replaced it, and then the first one again. */
	map_at(30, process, 0x1000, "/lib/b");
	map_at(40, process, 0x1000, "/lib/a");
	assert_int_equal(row(process)->mappings.count, 3);
	assert_int_equal(mapping_of(process, 2)->from_ns, 40);
	/* The memory limit is reached: no more names are stored. */
	fixture.live->symbolizer.full = true;
	map_at(50, process, 0x9000, "/lib/c");
	assert_int_equal(row(process)->mappings.count, 3);
}

static void test_forked_process_shares_mappings_until_it_is_sampled(void **state)
{
	struct live_parts *live = fixture.live;
	uint32_t parent = process_table_process(&live->table, 100);

	(void)state;
	row(parent)->name = text("shop");
	map_at(10, parent, 0x1000, "/lib/a");
	fork_at(20, 100, 101);
	map_at(30, parent, 0x2000, "/lib/b");
	fork_at(40, 101, 102); /* it shares the mappings of its grandparent */
	uint32_t child = process_table_find(&live->table, 101);
	uint32_t grandchild = process_table_find(&live->table, 102);
	assert_string_equal(name_of(child), "shop");
	assert_int_equal(row(child)->parent_pid, 100);
	assert_int_equal(row(child)->begin_ns, 20);
	assert_int_equal(row(child)->mappings.count, 0);
	process_table_adopt_mappings(&live->table, child);
	process_table_adopt_mappings(&live->table, child); /* once */
	assert_int_equal(row(child)->mappings.count, 1);
	assert_int_equal(mapping_of(child, 0)->begin, 0x1000);
	assert_int_equal(mapping_of(child, 0)->from_ns, 10);
	/* The parent's exec frees its mappings; processes that share them copy them first. */
	comm_at(50, 100, 100, "other", true);
	assert_int_equal(row(parent)->mappings.count, 0);
	assert_string_equal(name_of(parent), "other");
	assert_int_equal(row(grandchild)->mappings.count, 1);
	assert_int_equal(mapping_of(grandchild, 0)->begin, 0x1000);
	/* Freed slots are used again. */
	uint32_t slots = live->trace.mappings.count;
	map_at(60, parent, 0x5000, "/lib/c");
	assert_int_equal(live->trace.mappings.count, slots);
	assert_int_equal(mapping_of(parent, 0)->begin, 0x5000);
	assert_int_equal(mapping_of(parent, 0)->process, parent);
	map_at(70, parent, 0x6000, "/lib/d"); /* the second and last one */
	assert_int_equal(live->trace.mappings.count, slots);
	map_at(80, parent, 0x7000, "/lib/e");
	assert_int_equal(live->trace.mappings.count, slots + 1);
	assert_int_equal(mapping_of(parent, 0)->begin, 0x5000);
	assert_int_equal(mapping_of(parent, 1)->begin, 0x6000);
}

static void test_new_thread_is_no_process(void **state)
{
	(void)state;
	uint32_t process = process_table_process(&fixture.live->table, 100);
	uint32_t count = fixture.live->trace.processes.count;

	process_table_fork(&fixture.live->table,
		&(struct pending){
			.time_ns = 10, .pid = 100, .tid = 105, .value = 100ull << 32 | 100 });
	assert_int_equal(fixture.live->trace.processes.count, count);
	assert_int_equal(process_table_find(&fixture.live->table, 100), process);
}

static void test_exec_of_a_process_with_samples_begins_another(void **state)
{
	struct live_parts *live = fixture.live;
	uint32_t before = process_table_process(&live->table, 100);

	(void)state;
	row(before)->name = text("sh");
	row(before)->parent_pid = 7;
	map_at(10, before, 0x1000, "/bin/sh");
	process_table_announce(&live->table, before);
	assert_int_equal(count_written(SYSTEM_PROCESS_CREATE), 1);
	comm_at(50, 100, 100, "shop", true);
	uint32_t after = process_table_find(&live->table, 100);
	assert_int_not_equal(after, before);
	assert_true(row(before)->ended);
	assert_int_equal(row(before)->end_ns, 50);
	assert_int_equal(row(before)->mappings.count, 1); /* its samples still need names */
	assert_false(row(after)->ended);
	assert_int_equal(row(after)->begin_ns, 50);
	assert_int_equal(row(after)->parent_pid, 7);
	assert_string_equal(name_of(after), "shop");
	assert_int_equal(row(after)->mappings.count, 0);
	assert_int_not_equal(row(after)->main_thread, row(before)->main_thread);
	/* In the file, one process was created, none ended, and the second one exists. */
	process_table_announce(&live->table, after);
	assert_int_equal(count_written(SYSTEM_PROCESS_CREATE), 1);
	assert_int_equal(count_written(SYSTEM_EXISTING_PROCESS), 1);
	assert_int_equal(count_written(SYSTEM_PROCESS_EXIT), 0);
	exit_at(60, 100, 100);
	assert_int_equal(count_written(SYSTEM_PROCESS_EXIT), 1);
	assert_int_equal(last_written(SYSTEM_PROCESS_EXIT)->thread, row(after)->main_thread);
}

static void test_names(void **state)
{
	struct live_parts *live = fixture.live;
	uint32_t process = process_table_process(&live->table, 100);
	uint32_t thread = process_table_thread(&live->table, process, 100, 105);

	(void)state;
	comm_at(10, 100, 100, "main", false);
	comm_at(10, 100, 105, "pool", false);
	assert_string_equal(name_of(process), "main");
	assert_string_equal(trace_text(&live->trace, live->trace.threads.items[thread].name),
		"pool");
	/* A known name is not read again. The main thread has no separate row. */
	assert_int_equal(process_table_thread(&live->table, process, 100, 105), thread);
	assert_int_equal(process_table_thread(&live->table, process, 100, 100),
		row(process)->main_thread);
	assert_int_equal(count_written(SPOOR_THREAD_NAME), 0);
}

/* A name that changes after the process's first events is written again, once. */
static void test_renamed(void **state)
{
	struct live_parts *live = fixture.live;
	struct payload_thread_name name;
	uint32_t process = process_table_process(&live->table, 100);

	(void)state;
	comm_at(10, 100, 100, "first", false);
	assert_int_equal(count_written(SPOOR_THREAD_NAME), 0);
	process_table_announce(&live->table, process);
	comm_at(20, 100, 100, "second", false);
	comm_at(30, 100, 100, "second", false);
	assert_int_equal(count_written(SPOOR_THREAD_NAME), 1);
	const struct written *written = last_written(SPOOR_THREAD_NAME);
	assert_int_equal(written->thread, row(process)->main_thread);
	assert_int_equal(payload_read_thread_name(written->payload.data, written->payload.len,
				 &live->trace.strings, &name),
		0);
	assert_string_equal(name.name, "second");
}

static void test_thread_name_from_proc(void **state)
{
	struct live_parts *live = fixture.live;
	struct payload_thread_name name;
	char folder[128];

	(void)state;
	put_process(100, 1, "shop", 5000);
	process_table_scan(&live->table);
	uint32_t process = process_table_find(&live->table, 100);
	snprintf(folder, sizeof(folder), "%s/100/task", fixture.folder);
	assert_int_equal(mkdir(folder, 0700), 0);
	snprintf(folder, sizeof(folder), "%s/100/task/105", fixture.folder);
	put_file(folder, "status", "Name:\tpool\nNSpid:\t105\t6\n");
	uint32_t thread = process_table_thread(&live->table, process, 100, 105);
	const struct written *written = last_written(SPOOR_THREAD_NAME);
	assert_int_equal(written->thread, thread);
	assert_int_equal(payload_read_thread_name(written->payload.data, written->payload.len,
				 &live->trace.strings, &name),
		0);
	assert_string_equal(name.name, "pool");
	assert_int_equal(name.inner_tid, 6);
	assert_int_equal(process_table_thread(&live->table, process, 100, 105),
		thread); /* known now */
	assert_int_equal(count_written(SPOOR_THREAD_NAME), 1);
	/* A thread that has ended gets the name of its process, and no event is written. */
	thread = process_table_thread(&live->table, process, 100, 106);
	assert_string_equal(trace_text(&live->trace, live->trace.threads.items[thread].name),
		"shop");
	assert_int_equal(count_written(SPOOR_THREAD_NAME), 1);
}

static void test_announced_once_with_its_facts(void **state)
{
	struct live_parts *live = fixture.live;
	const char *arguments[PAYLOAD_ARGUMENTS_MAX];
	struct payload_process_facts facts;
	struct payload_process_info info;
	char folder[128];

	(void)state;
	put_process(100, 1, "shop", 5000);
	snprintf(folder, sizeof(folder), "%s/100", fixture.folder);
	put_file(folder, "cmdline", "/usr/bin/shop");
	process_table_scan(&live->table);
	uint32_t process = process_table_find(&live->table, 100);
	process_table_announce(&live->table, process);
	process_table_announce(&live->table, process);
	assert_int_equal(count_written(SYSTEM_EXISTING_PROCESS), 1);
	const struct written *written = last_written(SPOOR_PROCESS_FACTS);
	assert_int_equal(payload_read_process_facts(written->payload.data, written->payload.len,
				 &live->trace.strings, arguments, &facts),
		0);
	assert_int_equal(facts.uid, 8);
	assert_int_equal(facts.gid, 9);
	assert_int_equal(facts.inner_pid, 1);
	assert_int_equal(facts.born_ns, 5000000);
	assert_int_equal(facts.argument_count, 1);
	assert_string_equal(arguments[0], "/usr/bin/shop");
	written = last_written(EVENTPIPE_PROCESS_INFO);
	assert_int_equal(payload_read_process_info(written->payload.data, written->payload.len,
				 &live->trace.strings, &info),
		0);
	assert_string_equal(info.command_line, "/usr/bin/shop");
}

static void test_arguments_are_withheld(void **state)
{
	struct live_parts *live = fixture.live;
	const char *arguments[PAYLOAD_ARGUMENTS_MAX];
	struct payload_process_facts facts;
	struct payload_process_info info;
	char folder[128];

	(void)state;
	live->options.no_arguments = true;
	put_process(100, 1, "dotnet", 5000);
	snprintf(folder, sizeof(folder), "%s/100", fixture.folder);
	put_file(folder, "cmdline", "/srv/secret");
	process_table_announce(&live->table, process_table_process(&live->table, 100));
	const struct written *written = last_written(SPOOR_PROCESS_FACTS);
	assert_int_equal(payload_read_process_facts(written->payload.data, written->payload.len,
				 &live->trace.strings, arguments, &facts),
		0);
	assert_int_equal(facts.argument_count, 0);
	written = last_written(EVENTPIPE_PROCESS_INFO);
	assert_int_equal(payload_read_process_info(written->payload.data, written->payload.len,
				 &live->trace.strings, &info),
		0);
	assert_null(strstr(info.command_line, "secret"));
}

static void test_slots_are_reused_after_the_end(void **state)
{
	struct live_parts *live = fixture.live;

	(void)state;
	process_table_process(&live->table, 99);
	fork_at(10, 99, 100);
	uint32_t ended = process_table_find(&live->table, 100);
	uint32_t main_thread = row(ended)->main_thread;
	map_at(10, ended, 0x1000, "/lib/a");
	uint32_t mapping = row(ended)->mappings.items[0];
	exit_at(20, 100, 100);
	exit_at(30, 100, 100); /* once */
	assert_int_equal(row(ended)->end_ns, 20);
	assert_int_equal(count_written(SYSTEM_PROCESS_EXIT), 0);
	process_table_bury(&live->table);
	assert_int_equal(fixture.forgotten.count, 1);
	assert_int_equal(fixture.forgotten.items[0], main_thread);
	assert_int_equal(process_table_find(&live->table, 100), 0);
	/* The next process gets the slot, without data of the previous one. */
	fork_at(40, 99, 200);
	assert_int_equal(process_table_find(&live->table, 200), ended);
	assert_int_equal(process_table_find(&live->table, 100), 0);
	assert_false(row(ended)->ended);
	assert_int_equal(row(ended)->mappings.count, 0);
	assert_int_equal(row(ended)->main_thread, main_thread);
	assert_int_equal(live->trace.threads.items[main_thread].tid, 200);
	map_at(50, ended, 0x2000, "/lib/b");
	assert_int_equal(row(ended)->mappings.items[0], mapping);
}

/* Announced processes are freed in batches, as every table that refers to them is searched. */
static void test_announced_processes_are_freed_in_batches(void **state)
{
	enum { BATCH = 512 };
	struct live_parts *live = fixture.live;

	(void)state;
	process_table_process(&live->table, 99);
	for (uint32_t pid = 1000; pid < 1000 + BATCH; pid++) {
		if (pid == 1000 + BATCH - 1) {
			process_table_bury(&live->table);
			assert_int_equal(fixture.forgotten.count, 0);
			assert_int_equal(fixture.flushes, 0);
		}
		fork_at(pid, 99, pid);
		process_table_announce(&live->table, process_table_find(&live->table, pid));
		exit_at(pid, pid, pid);
	}
	assert_int_equal(count_written(SYSTEM_PROCESS_EXIT), BATCH);
	/* Processes that the sink could not write are kept. */
	fixture.flush_error = -28;
	process_table_bury(&live->table);
	assert_int_equal(live->writer.error, -28);
	assert_int_equal(fixture.forgotten.count, 0);
	fixture.flush_error = live->writer.error = 0;
	process_table_bury(&live->table);
	assert_int_equal(fixture.flushes, 2);
	assert_int_equal(fixture.forgotten.count, BATCH);
	assert_int_equal(live->table.free_processes.count, BATCH);
	assert_int_equal(live->table.ended.count, 0);
	assert_int_equal(process_table_find(&live->table, 1000), 0);
	assert_true(process_table_find(&live->table, 99) != 0);
}

static void test_ended_threads_are_freed_in_batches(void **state)
{
	enum { BATCH = 512 };
	struct live_parts *live = fixture.live;
	uint32_t process = process_table_process(&live->table, 100);

	(void)state;
	for (uint32_t tid = 1000; tid < 1000 + BATCH; tid++) {
		uint32_t thread = process_table_thread(&live->table, process, 100, tid);
		assert_int_equal(live->trace.threads.items[thread].tid, tid);
		exit_at(tid, 100, tid);
	}
	uint32_t rows = live->trace.threads.count;
	process_table_bury(&live->table);
	assert_int_equal(fixture.forgotten.count, BATCH);
	assert_false(row(process)->ended);
	uint32_t thread = process_table_thread(&live->table, process, 100, 5000);
	assert_true(thread < rows);
	assert_int_equal(live->trace.threads.count, rows);
	assert_int_equal(live->trace.threads.items[thread].tid, 5000);
	assert_int_equal(live->trace.threads.items[thread].process, process);
}

/* ---- with a pid filter ---- */

static void test_unknown_process_is_judged_once(void **state)
{
	struct live_parts *live = fixture.live;

	(void)state;
	put_process(100, 1, "shop", 500);      /* the target, older than the recording */
	put_process(101, 100, "worker", 2000); /* its child, younger */
	put_process(102, 1, "other", 2000);
	process_table_scan(&live->table);
	uint32_t shop = process_table_find(&live->table, 100);
	assert_int_equal(process_table_owner(&live->table, 100), shop);
	assert_int_equal(process_table_find(&live->table, 101), 0);
	uint32_t worker = process_table_owner(&live->table, 101);
	assert_true(worker != 0);
	assert_string_equal(name_of(worker), "worker");
	assert_int_equal(process_table_owner(&live->table, 102), 0);
	assert_true(pid_filter_has(&live->table.filter, 102));
	assert_false(pid_filter_has(&live->table.filter, 101));
	/* It has ended, and is not looked up again. */
	assert_int_equal(process_table_owner(&live->table, 103), 0);
	assert_true(pid_filter_has(&live->table.filter, 103));
	put_process(103, 100, "late", 2000);
	assert_int_equal(process_table_owner(&live->table, 103), 0);
	/* A child that is older than the recording is a target only if it was scanned. */
	put_process(104, 100, "old", 900);
	assert_int_equal(process_table_owner(&live->table, 104), 0);
}

static void test_forks_of_others_are_filtered(void **state)
{
	struct live_parts *live = fixture.live;

	(void)state;
	put_process(100, 1, "shop", 500);
	process_table_scan(&live->table);
	uint64_t later = live->table.rows.items[process_table_find(&live->table, 100)].read_ns + 1;
	fork_at(later, 100, 101);
	uint32_t child = process_table_owner(&live->table, 101);
	assert_true(child != 0);
	fork_at(later, 50, 102);
	assert_int_equal(process_table_find(&live->table, 102), 0);
	assert_true(pid_filter_has(&live->table.filter, 102));
	/* Another program's child gets the pid of a recorded process, which therefore has ended. */
	process_table_announce(&live->table, child);
	fork_at(later + 10, 50, 101);
	assert_true(row(child)->ended);
	assert_int_equal(row(child)->end_ns, later + 10);
	assert_int_equal(process_table_find(&live->table, 101), 0);
	assert_int_equal(process_table_owner(&live->table, 101), 0);
	assert_int_equal(count_written(SYSTEM_PROCESS_EXIT), 1);
}

/* Children without an event are counted for their parent, once; those with one, and older ones, are not. */
static void test_children_without_an_event_are_counted(void **state)
{
	struct live_parts *live = fixture.live;
	uint32_t parent = process_table_process(&live->table, 100);

	(void)state;
	process_table_announce(&live->table, parent);
	fork_at(10, 100, 101);
	exit_at(15, 101, 101);
	fork_at(20, 100, 102);
	process_table_announce(&live->table, process_table_find(&live->table, 102));
	exit_at(90, 102, 102);
	fork_at(30, 100, 103); /* lives until the end */
	fork_at(40, 103, 104); /* its parent has no event */
	exit_at(50, 104, 104);
	process_table_tell_others(&live->table, 100);
	assert_int_equal(count_written(SPOOR_OTHER_CHILDREN), 1);
	const uint8_t written[] = { 2, 75, 0, 0, 0, 0, 0, 0, 0 }; /* 5 + 70 ns */
	const struct written *last = last_written(SPOOR_OTHER_CHILDREN);
	assert_int_equal(last->payload.len, sizeof(written));
	assert_memory_equal(last->payload.data, written, sizeof(written));
}

/* The last sample of a process may come after the record of its end. */
static void test_child_with_a_late_event_is_counted_once(void **state)
{
	struct live_parts *live = fixture.live;

	(void)state;
	process_table_announce(&live->table, process_table_process(&live->table, 100));
	fork_at(10, 100, 101);
	fork_at(20, 100, 102);
	uint32_t late = process_table_find(&live->table, 101);
	exit_at(15, 101, 101);
	exit_at(90, 102, 102);
	process_table_announce(&live->table, late);
	process_table_tell_others(&live->table, 100);
	const uint8_t written[] = { 1, 70, 0, 0, 0, 0, 0, 0, 0 };
	const struct written *last = last_written(SPOOR_OTHER_CHILDREN);
	assert_int_equal(last->payload.len, sizeof(written));
	assert_memory_equal(last->payload.data, written, sizeof(written));
}

#define MACHINE(name)  cmocka_unit_test_setup_teardown(name, open_machine, close_fixture)
#define FILTERED(name) cmocka_unit_test_setup_teardown(name, open_filtered, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MACHINE(test_scan_reads_what_runs),
		MACHINE(test_child_with_a_late_event_is_counted_once),
		MACHINE(test_children_without_an_event_are_counted),
		MACHINE(test_mapping_is_added_once),
		MACHINE(test_forked_process_shares_mappings_until_it_is_sampled),
		MACHINE(test_new_thread_is_no_process),
		MACHINE(test_exec_of_a_process_with_samples_begins_another),
		MACHINE(test_names),
		MACHINE(test_renamed),
		MACHINE(test_thread_name_from_proc),
		MACHINE(test_announced_once_with_its_facts),
		MACHINE(test_arguments_are_withheld),
		MACHINE(test_slots_are_reused_after_the_end),
		MACHINE(test_announced_processes_are_freed_in_batches),
		MACHINE(test_ended_threads_are_freed_in_batches),
		FILTERED(test_unknown_process_is_judged_once),
		FILTERED(test_forks_of_others_are_filtered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
