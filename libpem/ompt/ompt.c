// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * ompt.c - libpem-ompt.so: the events of spec/app/openmp.xml, from an OpenMP runtime's tools
 * interface
 *
 * The runtime finds this library in OMP_TOOL_LIBRARIES, and calls ompt_start_tool to ask whether
 * the tool wants callbacks (OpenMP 5.0, chapter 4). GNU's libgomp has no such interface: with it
 * nothing happens. A callback that the runtime does not know costs nothing. An event that no
 * session wants costs a load and a test.
 *
 * Regions and tasks get a number from a counter. The number is kept in the word that the runtime
 * has for tools. The word's highest bit says that a task has run before.
 *
 * Not here: samples of thread states, frames, devices' own traces.
 */
#include <omp-tools.h>

#include "stubs/openmp.h"

#include <stddef.h>
#include <stdint.h>

#define STARTED (UINT64_C(1) << 63)

_Static_assert(PEM_OPENMP_WORK_SCOPE == ompt_work_scope, "ompt_work_t");
_Static_assert(PEM_OPENMP_SYNC_TEAMS_BARRIER == ompt_sync_region_barrier_teams, "sync_region_t");
_Static_assert(PEM_OPENMP_MUTEX_ORDERED == ompt_mutex_ordered, "ompt_mutex_t");
_Static_assert(PEM_OPENMP_TASK_STATUS_SWITCH == ompt_task_switch, "ompt_task_status_t");
_Static_assert(PEM_OPENMP_TASK_FLAGS_MERGED == (uint32_t)ompt_task_merged, "ompt_task_flag_t");

static uint64_t next_number(void)
{
	static uint64_t last;

	return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

static uint64_t number_of(const ompt_data_t *data)
{
	return data ? data->value & ~STARTED : 0;
}

static uint64_t address_of(const void *code)
{
	return (uintptr_t)code;
}

/* --- threads, regions, tasks --- */

static void on_thread_begin(ompt_thread_t kind, ompt_data_t *thread)
{
	(void)thread;
	pem_notify_omp_thread_begin((uint8_t)kind);
}

static void on_thread_end(ompt_data_t *thread)
{
	(void)thread;
	pem_notify_omp_thread_end();
}

static void on_parallel_begin(ompt_data_t *task, const ompt_frame_t *frame, ompt_data_t *region,
			      unsigned int requested, int flags, const void *code)
{
	(void)task, (void)frame, (void)flags;
	region->value = next_number();
	pem_notify_omp_parallel_begin(region->value, address_of(code), requested);
}

static void on_parallel_end(ompt_data_t *region, ompt_data_t *task, int flags, const void *code)
{
	(void)task, (void)flags;
	pem_notify_omp_parallel_end(number_of(region), address_of(code));
}

static void on_implicit_task(ompt_scope_endpoint_t endpoint, ompt_data_t *region, ompt_data_t *task,
			     unsigned int team_size, unsigned int index, int flags)
{
	(void)flags;
	if (endpoint == ompt_scope_begin) {
		task->value = next_number() | STARTED;
		pem_notify_omp_implicit_task_begin(number_of(region), team_size, index);
	} else {
		pem_notify_omp_implicit_task_end(index);
	}
}

static void on_task_create(ompt_data_t *parent, const ompt_frame_t *frame, ompt_data_t *task,
			   int flags, int has_dependences, const void *code)
{
	(void)frame;
	task->value = next_number();
	if (flags & ompt_task_initial) {
		task->value |= STARTED;
		return;
	}
	pem_notify_omp_task_create(number_of(task), number_of(parent), address_of(code),
				   (uint32_t)flags, has_dependences != 0);
}

static void on_task_schedule(ompt_data_t *previous, ompt_task_status_t status, ompt_data_t *next)
{
	pem_notify_omp_task_schedule(number_of(previous), number_of(next), (uint8_t)status);
	if (!next || next->value & STARTED)
		return;
	next->value |= STARTED;
	pem_notify_omp_task_start(number_of(next));
}

static void on_task_dependence(ompt_data_t *before, ompt_data_t *after)
{
	pem_notify_omp_task_dependence(number_of(before), number_of(after));
}

/* --- work and waiting --- */

static void on_work(ompt_work_t kind, ompt_scope_endpoint_t endpoint, ompt_data_t *region,
		    ompt_data_t *task, uint64_t count, const void *code)
{
	(void)task;
	if (endpoint == ompt_scope_begin)
		pem_notify_omp_work_begin((uint8_t)kind, number_of(region), count,
					  address_of(code));
	else
		pem_notify_omp_work_end((uint8_t)kind);
}

static void on_masked(ompt_scope_endpoint_t endpoint, ompt_data_t *region, ompt_data_t *task,
		      const void *code)
{
	(void)task;
	if (endpoint == ompt_scope_begin)
		pem_notify_omp_masked_begin(number_of(region), address_of(code));
	else
		pem_notify_omp_masked_end();
}

static void on_sync(ompt_sync_region_t kind, ompt_scope_endpoint_t endpoint, ompt_data_t *region,
		    ompt_data_t *task, const void *code)
{
	(void)task;
	if (endpoint == ompt_scope_begin)
		pem_notify_omp_sync_begin((uint8_t)kind, number_of(region), address_of(code));
	else
		pem_notify_omp_sync_end((uint8_t)kind);
}

static void on_sync_wait(ompt_sync_region_t kind, ompt_scope_endpoint_t endpoint,
			 ompt_data_t *region, ompt_data_t *task, const void *code)
{
	(void)region, (void)task, (void)code;
	if (endpoint == ompt_scope_begin)
		pem_notify_omp_sync_wait_begin((uint8_t)kind);
	else
		pem_notify_omp_sync_wait_end((uint8_t)kind);
}

static void on_reduction(ompt_sync_region_t kind, ompt_scope_endpoint_t endpoint,
			 ompt_data_t *region, ompt_data_t *task, const void *code)
{
	(void)kind, (void)task, (void)code;
	if (endpoint == ompt_scope_begin)
		pem_notify_omp_reduction_begin(number_of(region));
	else
		pem_notify_omp_reduction_end(number_of(region));
}

/* --- locks --- */

static void on_mutex_acquire(ompt_mutex_t kind, unsigned int hint, unsigned int impl,
			     ompt_wait_id_t mutex, const void *code)
{
	(void)hint, (void)impl;
	pem_notify_omp_mutex_wait_begin(mutex, address_of(code), (uint8_t)kind);
}

static void on_mutex_acquired(ompt_mutex_t kind, ompt_wait_id_t mutex, const void *code)
{
	(void)code;
	pem_notify_omp_mutex_wait_end(mutex, (uint8_t)kind);
}

static void on_mutex_released(ompt_mutex_t kind, ompt_wait_id_t mutex, const void *code)
{
	(void)code;
	pem_notify_omp_mutex_release(mutex, (uint8_t)kind);
}

static void on_lock_init(ompt_mutex_t kind, unsigned int hint, unsigned int impl,
			 ompt_wait_id_t mutex, const void *code)
{
	(void)hint, (void)impl;
	pem_notify_omp_lock_create(mutex, address_of(code), (uint8_t)kind);
}

static void on_lock_destroy(ompt_mutex_t kind, ompt_wait_id_t mutex, const void *code)
{
	(void)code;
	pem_notify_omp_lock_destroy(mutex, (uint8_t)kind);
}

static void on_nest_lock(ompt_scope_endpoint_t endpoint, ompt_wait_id_t mutex, const void *code)
{
	(void)code;
	if (endpoint == ompt_scope_begin)
		pem_notify_omp_nest_lock_begin(mutex);
	else
		pem_notify_omp_nest_lock_end(mutex);
}

static void on_flush(ompt_data_t *thread, const void *code)
{
	(void)thread;
	pem_notify_omp_flush(address_of(code));
}

static void on_cancel(ompt_data_t *task, int flags, const void *code)
{
	pem_notify_omp_cancel(number_of(task), address_of(code), (uint32_t)flags);
}

/* --- devices --- */

static void on_target(ompt_target_t kind, ompt_scope_endpoint_t endpoint, int device,
		      ompt_data_t *task, ompt_id_t target, const void *code)
{
	(void)task, (void)target;
	if (endpoint == ompt_scope_begin)
		pem_notify_omp_target_begin(address_of(code), device, (uint8_t)kind);
	else
		pem_notify_omp_target_end(device, (uint8_t)kind);
}

/* Asynchronous operations have numbers that are 16 higher. */
static void on_target_data(ompt_id_t target, ompt_id_t number, ompt_target_data_op_t operation,
			   void *from, int from_device, void *to, int to_device, size_t bytes,
			   const void *code)
{
	(void)target, (void)number, (void)from_device, (void)to_device, (void)code;
	pem_notify_omp_target_data((uintptr_t)from, (uintptr_t)to, bytes,
				   (uint8_t)((unsigned)operation & 15u));
}

static void on_target_submit(ompt_id_t target, ompt_id_t number, unsigned int teams)
{
	(void)target, (void)number;
	pem_notify_omp_target_submit(teams);
}

static void on_device_start(int device, const char *kind, ompt_device_t *handle,
			    ompt_function_lookup_t lookup, const char *documentation)
{
	(void)handle, (void)lookup, (void)documentation;
	pem_notify_omp_device_start(device, kind);
}

static void on_device_stop(int device)
{
	pem_notify_omp_device_stop(device);
}

/* --- beginning --- */

#define ROW(name, type, function)                                                                  \
	{                                                                                          \
		ompt_callback_##name, (ompt_callback_t)(type)(function)                            \
	}

static const struct {
	ompt_callbacks_t event;
	ompt_callback_t function;
} callbacks[] = {
	ROW(thread_begin, ompt_callback_thread_begin_t, on_thread_begin),
	ROW(thread_end, ompt_callback_thread_end_t, on_thread_end),
	ROW(parallel_begin, ompt_callback_parallel_begin_t, on_parallel_begin),
	ROW(parallel_end, ompt_callback_parallel_end_t, on_parallel_end),
	ROW(implicit_task, ompt_callback_implicit_task_t, on_implicit_task),
	ROW(task_create, ompt_callback_task_create_t, on_task_create),
	ROW(task_schedule, ompt_callback_task_schedule_t, on_task_schedule),
	ROW(task_dependence, ompt_callback_task_dependence_t, on_task_dependence),
	ROW(work, ompt_callback_work_t, on_work),
	ROW(masked, ompt_callback_masked_t, on_masked),
	ROW(sync_region, ompt_callback_sync_region_t, on_sync),
	ROW(sync_region_wait, ompt_callback_sync_region_t, on_sync_wait),
	ROW(reduction, ompt_callback_sync_region_t, on_reduction),
	ROW(mutex_acquire, ompt_callback_mutex_acquire_t, on_mutex_acquire),
	ROW(mutex_acquired, ompt_callback_mutex_t, on_mutex_acquired),
	ROW(mutex_released, ompt_callback_mutex_t, on_mutex_released),
	ROW(lock_init, ompt_callback_mutex_acquire_t, on_lock_init),
	ROW(lock_destroy, ompt_callback_mutex_t, on_lock_destroy),
	ROW(nest_lock, ompt_callback_nest_lock_t, on_nest_lock),
	ROW(flush, ompt_callback_flush_t, on_flush),
	ROW(cancel, ompt_callback_cancel_t, on_cancel),
	ROW(target, ompt_callback_target_t, on_target),
	ROW(target_data_op, ompt_callback_target_data_op_t, on_target_data),
	ROW(target_submit, ompt_callback_target_submit_t, on_target_submit),
	ROW(device_initialize, ompt_callback_device_initialize_t, on_device_start),
	ROW(device_finalize, ompt_callback_device_finalize_t, on_device_stop),
};

static int initialize(ompt_function_lookup_t lookup, int initial_device, ompt_data_t *tool)
{
	ompt_set_callback_t set = (ompt_set_callback_t)lookup("ompt_set_callback");
	size_t i;

	(void)initial_device, (void)tool;
	for (i = 0; set && i < sizeof(callbacks) / sizeof(callbacks[0]); i++)
		set(callbacks[i].event, callbacks[i].function);
	return set != NULL; /* 0: the tool wants no callbacks */
}

static void finalize(ompt_data_t *tool)
{
	(void)tool;
}

/*
 * The runtime calls this once, before its first region. Without libpem in the process the tool
 * wants no callbacks.
 */
__attribute__((visibility("default"))) ompt_start_tool_result_t *
ompt_start_tool(unsigned int omp_version, const char *runtime_version);

ompt_start_tool_result_t *ompt_start_tool(unsigned int omp_version, const char *runtime_version)
{
	static ompt_start_tool_result_t result = {initialize, finalize, {0}};

	(void)omp_version, (void)runtime_version;
	return pem_provider_openmp.registered ? &result : NULL;
}
