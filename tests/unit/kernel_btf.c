/* SPDX-License-Identifier: MIT */
/*
 * kernel_btf.c - tracepoints are compared with prototypes as C would, in types made by hand: no
 * kernel is asked
 */
#ifdef PEM_TEST_LIBBPF
#include <bpf/btf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "libpem/sources/kernel/kernel.h"

static char folder[] = "/tmp/pem-test-btf-XXXXXX";
static struct pem_kernel_btf *kernel;

static void write_types(const struct btf *btf, const char *name)
{
	char path[64];
	const void *bytes;
	__u32 count;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	bytes = btf__raw_data(btf, &count);
	assert_int_equal(fwrite(bytes, 1, count, f), count);
	fclose(f);
}

/* typedef void (*btf_trace_NAME)(void *, types...) */
static void add_tracepoint(struct btf *btf, const char *name, const int *types, size_t count)
{
	char text[64];
	int proto = btf__add_func_proto(btf, 0);
	size_t i;

	assert_int_equal(btf__add_func_param(btf, "", 1), 0); /* type 1 is void * */
	for (i = 0; i < count; i++)
		assert_int_equal(btf__add_func_param(btf, "", types[i]), 0);
	snprintf(text, sizeof(text), "btf_trace_%s", name);
	assert_true(btf__add_typedef(btf, text, btf__add_ptr(btf, proto)) > 0);
}

static int make_kernel(void **state)
{
	struct btf *btf = btf__new_empty(), *module;
	int u32, s32, u64, boolean, task, tasks, state_enum, pid, gfp, name, function;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(btf__add_ptr(btf, 0), 1);
	u32 = btf__add_int(btf, "unsigned int", 4, 0);
	s32 = btf__add_int(btf, "int", 4, BTF_INT_SIGNED);
	u64 = btf__add_int(btf, "unsigned long", 8, 0);
	boolean = btf__add_typedef(btf, "bool", btf__add_int(btf, "_Bool", 1, BTF_INT_BOOL));
	task = btf__add_struct(btf, "task_struct", 8);
	assert_int_equal(btf__add_field(btf, "rcu_read_lock_nesting", s32, 0, 0), 0);
	tasks = btf__add_ptr(btf, task);
	state_enum = btf__add_enum(btf, "zone", 4);
	assert_int_equal(btf__add_enum_value(btf, "ZONE_DMA", 0), 0);
	pid = btf__add_typedef(btf, "pid_t", s32);
	gfp = btf__add_typedef(btf, "gfp_t", u32);
	name = btf__add_ptr(btf, btf__add_const(btf, btf__add_int(btf, "char", 1, BTF_INT_SIGNED)));
	function = btf__add_typedef(btf, "work_func_t",
				    btf__add_ptr(btf, btf__add_func_proto(btf, 0)));
	add_tracepoint(btf, "switch", (int[]){boolean, tasks, btf__add_const(btf, tasks), u32}, 4);
	add_tracepoint(btf, "alloc", (int[]){u64, gfp, pid, state_enum}, 4);
	add_tracepoint(btf, "work", (int[]){name, function}, 2);
	add_tracepoint(btf, "none", NULL, 0);
	add_tracepoint(btf, "sched_set_need_resched_tp", (int[]){tasks, s32, s32}, 3);
	write_types(btf, "vmlinux");
	module = btf__new_empty_split(btf);
	add_tracepoint(module, "of_module",
		       (int[]){tasks, btf__add_ptr(module, btf__add_struct(module, "own", 8))}, 2);
	write_types(module, "module");
	kernel = pem_kernel_btf__open(folder);
	assert_non_null(kernel);
	btf__free(module);
	btf__free(btf);
	return 0;
}

static int remove_kernel(void **state)
{
	char path[64];

	(void)state;
	pem_kernel_btf__close(kernel);
	snprintf(path, sizeof(path), "%s/vmlinux", folder);
	unlink(path);
	snprintf(path, sizeof(path), "%s/module", folder);
	unlink(path);
	rmdir(folder);
	return 0;
}

static enum pem_kernel_match match(const char *tracepoint, const char *prototype)
{
	return pem_kernel_btf__match(kernel, tracepoint, prototype);
}

static void equal_types_are_equal_however_they_are_spelt(void **state)
{
	(void)state;
	assert_int_equal(match("sched:switch", "bool preempt, struct task_struct *prev, "
					       "struct task_struct *next, unsigned int state"),
			 PEM_KERNEL_EQUAL);
	assert_int_equal(match("switch", "_Bool, const struct task_struct * prev,"
					 "struct task_struct*next,unsigned state"),
			 PEM_KERNEL_EQUAL);
	assert_int_equal(match("alloc", "unsigned long pfn, gfp_t flags, pid_t pid, enum zone z"),
			 PEM_KERNEL_EQUAL);
	assert_int_equal(
		match("alloc", "unsigned long pfn, unsigned int flags, int pid, enum zone"),
		PEM_KERNEL_EQUAL);
	assert_int_equal(match("work", "const char *name, work_func_t function"), PEM_KERNEL_EQUAL);
	assert_int_equal(match("work", "char __percpu *name, work_func_t function"),
			 PEM_KERNEL_EQUAL);
	assert_int_equal(match("none", "void"), PEM_KERNEL_EQUAL);
	assert_int_equal(match("switch", NULL), PEM_KERNEL_EQUAL);
}

static void what_can_be_read_all_the_same_fits(void **state)
{
	(void)state;
	/* parameters were added behind those that are known */
	assert_int_equal(match("switch", "bool preempt, struct task_struct *prev"),
			 PEM_KERNEL_FITS);
	assert_int_equal(match("switch", "void"), PEM_KERNEL_FITS);
	/* the sign changed, or a number became an enumeration */
	assert_int_equal(match("alloc", "long pfn, gfp_t flags, pid_t pid, enum zone z"),
			 PEM_KERNEL_FITS);
	assert_int_equal(match("alloc", "unsigned long pfn, gfp_t flags, pid_t pid, int z"),
			 PEM_KERNEL_FITS);
	/* an address is an address */
	assert_int_equal(match("of_module", "void *task, struct own *own"), PEM_KERNEL_FITS);
}

static void other_parameters_differ(void **state)
{
	static const char *const wrong[] = {
		"int preempt, struct task_struct *prev",
		"bool preempt, struct task *prev",
		"bool preempt, struct task_struct prev",
		"bool preempt, struct task_struct **prev",
		"bool preempt, union task_struct *prev",
		"bool preempt, unsigned long prev",
		"struct task_struct *prev",
		"bool a, struct task_struct *b, struct task_struct *c, unsigned int d, int e",
		"bool preempt, struct *prev",
		"bool preempt, no_such_t prev",
		"bool preempt, struct task_struct *a b",
		"preempt(",
		",",
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (match("switch", wrong[i]) != PEM_KERNEL_DIFFERS)
			fail_msg("'%s' does not differ", wrong[i]);
	}
	assert_int_equal(match("alloc", "unsigned long pfn, gfp_t flags, pid_t pid, enum node z"),
			 PEM_KERNEL_DIFFERS);
	assert_int_equal(match("no_such", "void"), PEM_KERNEL_ABSENT);
}

static void modules_have_tracepoints_too(void **state)
{
	(void)state;
	assert_int_equal(match("of_module", "struct task_struct *task, struct own *own"),
			 PEM_KERNEL_EQUAL);
	assert_string_equal(pem_kernel_btf__home(kernel, "of_module"), "module");
	assert_string_equal(pem_kernel_btf__home(kernel, "x:alloc"), "vmlinux");
	assert_null(pem_kernel_btf__home(kernel, "no_such"));
}

static void parameters_are_described_as_c(void **state)
{
	char text[128], little[12];

	(void)state;
	pem_kernel_btf__describe(kernel, "switch", text, sizeof(text));
	assert_string_equal(text, "bool, struct task_struct *, struct task_struct *, unsigned int");
	pem_kernel_btf__describe(kernel, "work", text, sizeof(text));
	assert_string_equal(text, "char *, work_func_t");
	pem_kernel_btf__describe(kernel, "work", little, sizeof(little));
	assert_string_equal(little, "char *, wor");
	pem_kernel_btf__describe(kernel, "no_such", text, sizeof(text));
	assert_string_equal(text, "");
}

static void the_first_equal_alternative_is_taken_else_the_first_that_fits(void **state)
{
	struct pem_kernel_alternative of[] = {
		{.tracepoint = "x:no_such", .arguments = "void"},
		{.tracepoint = "x:switch", .arguments = "bool preempt"},
		{.tracepoint = "x:switch",
		 .arguments = "bool preempt, struct task_struct *prev, struct task_struct *next, "
			      "unsigned int state"},
	};
	struct pem_kernel_event event = {.alternatives = of, .alternative_count = 3};

	(void)state;
	assert_int_equal(pem_kernel__choose_in(kernel, &event, 0, NULL), 2);
	assert_int_equal(pem_kernel__choose_in(kernel, &event, 1u << 2, NULL), 1);
	assert_int_equal(pem_kernel__choose_in(kernel, &event, 3u << 1, NULL), -ENOENT);
	event.alternative_count = 2;
	assert_int_equal(pem_kernel__choose_in(kernel, &event, 0, NULL), 1);
}

static void what_is_missing_is_told_apart_from_what_differs(void **state)
{
	struct pem_kernel_alternative of[] = {
		{.tracepoint = "x:old_name", .arguments = "int a"},
		{.tracepoint = "x:older_name", .arguments = "int a"},
		{.tracepoint = "x:work", .arguments = "long number"},
	};
	struct pem_kernel_event event = {.alternatives = of, .alternative_count = 2};
	struct pem_error reason;

	(void)state;
	assert_int_equal(pem_kernel__choose_in(kernel, &event, 0, &reason), -ENOENT);
	assert_non_null(strstr(reason.text, "no tracepoint x:old_name or x:older_name"));
	event.alternative_count = 3;
	assert_int_equal(pem_kernel__choose_in(kernel, &event, 0, &reason), -ENOENT);
	assert_non_null(strstr(reason.text, "x:work"));
	assert_non_null(strstr(reason.text, "(char *, work_func_t)"));
	assert_non_null(strstr(reason.text, "(long number)"));
}

static void a_tracepoint_that_programs_call_themselves_is_left_alone(void **state)
{
	struct pem_kernel_alternative of[] = {
		{.tracepoint = "sched:sched_set_need_resched_tp",
		 .arguments = "struct task_struct *task, int cpu, int tif"},
	};
	struct pem_kernel_event event = {.alternatives = of, .alternative_count = 1};
	struct pem_error reason;

	(void)state;
	assert_int_equal(pem_kernel__choose_in(kernel, &event, 0, &reason), -ENOENT);
	assert_non_null(strstr(reason.text, "this kernel would panic: load pem.ko"));
}

/* As struct bpf_link_info is: a member of a structure without a name, in a union without a name. */
static void members_are_found_by_their_path(void **state)
{
	struct btf *btf = btf__new_empty();
	int number, inner, choice, outer;

	(void)state;
	number = btf__add_int(btf, "unsigned int", 4, 0);
	inner = btf__add_struct(btf, "", 8);
	assert_int_equal(btf__add_field(btf, "address", number, 0, 0), 0);
	assert_int_equal(btf__add_field(btf, "missed", number, 32, 0), 0);
	choice = btf__add_union(btf, "", 8);
	assert_int_equal(btf__add_field(btf, "kprobe", inner, 0, 0), 0);
	outer = btf__add_struct(btf, "", 12);
	assert_int_equal(btf__add_field(btf, "type", number, 0, 0), 0);
	assert_int_equal(btf__add_field(btf, "", choice, 32, 0), 0);
	btf__add_struct(btf, "info", 12);
	assert_int_equal(btf__add_field(btf, "perf_event", outer, 0, 0), 0);
	assert_true(pem_kernel_btf__has_member(btf, "info", "perf_event.kprobe.missed"));
	assert_true(pem_kernel_btf__has_member(btf, "info", "perf_event"));
	assert_false(pem_kernel_btf__has_member(btf, "info", "perf_event.kprobe.miss"));
	assert_false(pem_kernel_btf__has_member(btf, "info", "perf_event.uprobe.missed"));
	assert_false(pem_kernel_btf__has_member(btf, "info", "perf_event.type.missed"));
	assert_false(pem_kernel_btf__has_member(btf, "none", "perf_event"));
	btf__free(btf);
}

static void members_have_types_or_bits(void **state)
{
	struct btf *btf = btf__new_empty();
	const struct btf_type *type;
	struct pem_btf_member member;
	int number, name, inner, outer, named;

	(void)state;
	number = btf__add_int(btf, "int", 4, BTF_INT_SIGNED);
	name = btf__add_typedef(btf, "pid_t", btf__add_const(btf, number));
	inner = btf__add_struct(btf, "", 4);
	assert_int_equal(btf__add_field(btf, "flag", number, 0, 1), 0);
	inner = btf__add_const(btf, inner);
	outer = btf__add_struct(btf, "task", 8);
	assert_int_equal(btf__add_field(btf, "pid", name, 0, 0), 0);
	assert_int_equal(btf__add_field(btf, "", inner, 32, 0), 0);
	named = btf__add_typedef(btf, "task_t", outer);
	type = pem_btf__plain(btf, (uint32_t)named);
	assert_true(pem_btf__find_member(btf, type, "pid", &member));
	assert_int_equal(member.type, name);
	assert_false(member.is_bitfield);
	type = pem_btf__plain(btf, member.type);
	assert_true(pem_btf__is_number(type) && pem_btf__is_signed(type));
	assert_false(pem_btf__find_member(btf, type, "pid", &member));
	type = pem_btf__plain(btf, (uint32_t)named);
	assert_true(pem_btf__find_member(btf, type, "flag", &member));
	assert_true(member.is_bitfield);
	assert_false(pem_btf__find_member(btf, type, "fla", &member));
	assert_false(pem_btf__is_number(type) || pem_btf__is_number(NULL));
	assert_false(pem_btf__find_member(btf, NULL, "pid", &member));
	assert_null(pem_btf__plain(btf, 1000));
	number = btf__add_enum(btf, "zone", 4);
	assert_int_equal(btf__add_enum_value(btf, "ZONE_DMA", 0), 0);
	type = btf__type_by_id(btf, (uint32_t)number);
	assert_false(pem_btf__find_member(btf, type, "ZONE_DMA", &member));
	btf__free(btf);
}

/* No compiler makes one. What follows its members would come twice as often at each level. */
static void a_structure_within_itself_has_an_end(void **state)
{
	struct btf *btf = btf__new_empty();
	int id = btf__add_struct(btf, "loop", 8);

	(void)state;
	assert_int_equal(btf__add_field(btf, "", id, 0, 0), 0);
	assert_int_equal(btf__add_field(btf, "", id, 32, 0), 0);
	assert_false(pem_kernel_btf__has_member(btf, "loop", "x"));
	id = btf__add_typedef(btf, "itself", btf__type_cnt(btf));
	assert_null(pem_btf__plain(btf, (uint32_t)id));
	btf__free(btf);
}

static void tracepoints_have_functions(void **state)
{
	const struct btf *btf;
	const char *part;
	uint32_t proto;

	(void)state;
	btf = pem_kernel_btf__tracepoint(kernel, "x:work", &proto);
	assert_ptr_equal(btf, pem_kernel_btf__part(kernel, 0, &part));
	assert_int_equal(btf_vlen(btf__type_by_id(btf, proto)), 3);
	btf = pem_kernel_btf__tracepoint(kernel, "of_module", &proto);
	assert_ptr_equal(btf, pem_kernel_btf__part(kernel, 1, &part));
	assert_string_equal(part, "module");
	assert_true(proto >= pem_kernel_btf__first_type(kernel, 1));
	assert_null(pem_kernel_btf__tracepoint(kernel, "wor", &proto));
	assert_null(pem_kernel_btf__part(kernel, 2, &part));
}

static void what_is_no_btf_is_refused(void **state)
{
	(void)state;
	assert_null(pem_kernel_btf__open("/dev/null"));
	assert_null(pem_kernel_btf__open("/none/at/all"));
	assert_int_equal(errno, ENOENT);
	assert_null(pem_kernel_btf__open("/tmp"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_types_are_equal_however_they_are_spelt),
		cmocka_unit_test(what_can_be_read_all_the_same_fits),
		cmocka_unit_test(other_parameters_differ),
		cmocka_unit_test(modules_have_tracepoints_too),
		cmocka_unit_test(parameters_are_described_as_c),
		cmocka_unit_test(the_first_equal_alternative_is_taken_else_the_first_that_fits),
		cmocka_unit_test(what_is_missing_is_told_apart_from_what_differs),
		cmocka_unit_test(a_tracepoint_that_programs_call_themselves_is_left_alone),
		cmocka_unit_test(members_are_found_by_their_path),
		cmocka_unit_test(members_have_types_or_bits),
		cmocka_unit_test(a_structure_within_itself_has_an_end),
		cmocka_unit_test(tracepoints_have_functions),
		cmocka_unit_test(what_is_no_btf_is_refused),
	};

	return cmocka_run_group_tests(tests, make_kernel, remove_kernel);
}
#else
#include <stdio.h>

int main(void)
{
	printf("1..0 # SKIP the kernel source was not built: clang or libbpf is missing\n");
	return 0;
}
#endif
