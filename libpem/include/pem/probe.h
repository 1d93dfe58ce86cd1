/* SPDX-License-Identifier: MIT */
/*
 * probe.h - enclosing probes: what the code between two statements of a program takes
 *
 *	PEM_LAT_PROBE_BEGIN(7, 1);
 *	serve(customer);
 *	PEM_LAT_PROBE_END(7);
 *
 * records APP::Probe::Lat with id 7 and the cycles that serve() took, if somebody records that
 * event (pem record -e APP::Probe::Lat). Nothing else is needed: no call at the program's start,
 * and no library, without which probes do nothing. The program is linked with -ldl.
 *
 *	statements			measure						event
 *	PEM_CNT_PROBE_BEGIN, _END	how often the code was executed			Cnt
 *	PEM_LAT_PROBE_BEGIN, _END	cycles						Lat
 *	PEM_TPT_PROBE_BEGIN, _END	how often, and cycles in all			Tpt
 *	PEM_FLT_PROBE_BEGIN, _END	page faults of the thread			Flt
 *	PEM_CTXSW_PROBE_BEGIN, _END	context switches of the thread			Ctxsw
 *	PEM_LLC_PROBE_BEGIN, _END	misses and references of the last-level cache	Llc
 *	PEM_PERFCNTR_PROBE_BEGIN, _END	a counter named by PEM_SET_PERFCNTR		Perfcntr
 *	PEM_SNAPSHOT_PROBE		up to six values of the program			Snapshot
 *
 * BEGIN(id, sc) declares variables, so it stands where a declaration may. END(id) stands in the
 * same block or in one inside of it. Both write id in the same way: 7, or QUERY, whose value may be
 * given by an enum or a macro; it is the record's id. Code that leaves the block without END
 * (return, break, longjmp, an exception) has no record. Pairs may nest and recur.
 *
 * sc, the subsampling counter, is how often a thread executes BEGIN until one execution is
 * measured: 1 (or 0) measures each. Cnt and Tpt add up instead: each record tells of sc executions
 * of one statement by one thread; those that are left as a thread ends are in none, and those that
 * are left as a recording ends are in the next one's first.
 *
 * If nobody wants the event, BEGIN is a load, a test and a branch, and END a test of a variable.
 * What is enabled in between is measured from the next BEGIN on. No probe allocates, locks, prints,
 * calls the kernel or writes errno, with these exceptions: the first event of a thread maps memory,
 * and so does its first Flt, Ctxsw, Llc or Perfcntr probe, which opens a counter of the kernel; and
 * where the kernel maps no page for faults and switches, each of their statements calls
 * getrusage(2), which the record's field reading says. What can't be read at all, as where the
 * processor has no counters, is recorded as APP::Probe::Missing. Any thread and signal handler may
 * execute probes.
 *
 * While a thread has executed a Flt or Ctxsw probe, the kernel writes 8 bytes at each of its faults
 * or switches until the thread ends: share/doc/pem/probes.md says what that costs.
 */
#ifndef PEM_PROBE_H
#define PEM_PROBE_H

#include "stubs/probes.h"

#include <pem/enclosed.h>
#include <pem/stub.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- the statements --- */

#define PEM_CNT_PROBE_BEGIN(id, sc)                                                                \
	PEM_PROBE_SITE(pem_cnt_site_##id);                                                         \
	const struct pem_tally pem_cnt_probe_##id =                                                \
		pem_tally_begin(pem_enabled_probe_cnt(), &pem_cnt_site_##id, sc, 0)
#define PEM_CNT_PROBE_END(id) pem_cnt_probe_end(&pem_cnt_probe_##id, id)

#define PEM_LAT_PROBE_BEGIN(id, sc)                                                                \
	PEM_PROBE_SITE(pem_lat_site_##id);                                                         \
	const uint64_t pem_lat_probe_##id = pem_lat_probe_begin(&pem_lat_site_##id, sc)
#define PEM_LAT_PROBE_END(id) pem_lat_probe_end(pem_lat_probe_##id, id)

#define PEM_TPT_PROBE_BEGIN(id, sc)                                                                \
	PEM_PROBE_SITE(pem_tpt_site_##id);                                                         \
	const struct pem_tally pem_tpt_probe_##id =                                                \
		pem_tally_begin(pem_enabled_probe_tpt(), &pem_tpt_site_##id, sc, 1)
#define PEM_TPT_PROBE_END(id) pem_tpt_probe_end(&pem_tpt_probe_##id, id)

#define PEM_FLT_PROBE_BEGIN(id, sc) PEM_MEASURED_BEGIN(flt, _##id, sc, PEM_ENCLOSED_FAULTS)
#define PEM_FLT_PROBE_END(id) pem_flt_probe_end(pem_flt_probe_##id, pem_flt_values_##id, id)

#define PEM_CTXSW_PROBE_BEGIN(id, sc) PEM_MEASURED_BEGIN(ctxsw, _##id, sc, PEM_ENCLOSED_SWITCHES)
#define PEM_CTXSW_PROBE_END(id) pem_ctxsw_probe_end(pem_ctxsw_probe_##id, pem_ctxsw_values_##id, id)

#define PEM_LLC_PROBE_BEGIN(id, sc) PEM_MEASURED_BEGIN(llc, _##id, sc, PEM_ENCLOSED_LLC)
#define PEM_LLC_PROBE_END(id) pem_llc_probe_end(pem_llc_probe_##id, pem_llc_values_##id, id)

/* counter: the number that PEM_SET_PERFCNTR gave it, below PEM_ENCLOSED_COUNTER_MAX. */
#define PEM_PERFCNTR_PROBE_BEGIN(id, sc, counter)                                                  \
	const uint32_t pem_perfcntr_kind_##id = PEM_ENCLOSED_COUNTER + (uint32_t)(counter);        \
	PEM_MEASURED_BEGIN(perfcntr, _##id, sc, pem_perfcntr_kind_##id)
#define PEM_PERFCNTR_PROBE_END(id)                                                                 \
	pem_perfcntr_probe_end(pem_perfcntr_probe_##id, pem_perfcntr_values_##id,                  \
			       pem_perfcntr_kind_##id, id)

/*
 * Say what a counter counts: event and mask as in the processor's manual (on Intel, 0x2e and 0x41
 * are misses of the last-level cache; arm64 has no mask). For probes that begin later, in all
 * threads.
 */
#define PEM_SET_PERFCNTR(counter, event, mask) pem_set_perfcntr(counter, event, mask)

/* PEM_SNAPSHOT_PROBE(id, sc, v0, ..., v5): one to six integers, which are recorded as uint64_t. */
#define PEM_SNAPSHOT_PROBE(id, sc, ...)                                                            \
	PEM_SNAPSHOT(id, sc, PEM_VALUES(__VA_ARGS__, 6, 5, 4, 3, 2, 1, 0), __VA_ARGS__, 0, 0, 0,   \
		     0, 0, 0)

/* --- what they are made of --- */

/*
 * What a statement and a thread have of their own. In a library that is loaded late it takes a part
 * of the 512 bytes or more that glibc keeps for such (glibc.rtld.optional_static_tls).
 */
struct pem_probe_site {
	uint64_t cycles;
	uint64_t count;
};
#define PEM_PROBE_SITE(name)                                                                       \
	static __thread struct pem_probe_site name                                                 \
		__attribute__((tls_model("initial-exec"), unused))

/* An execution that is added to others. site: NULL: it is not. */
struct pem_tally {
	struct pem_probe_site *site;
	uint64_t begin; /* clock */
	uint64_t sc;
};

/* Is this execution one to be measured? */
PEM_INLINE int pem_probe_is_due(struct pem_probe_site *site, uint64_t sc)
{
	if (sc <= 1)
		return 1;
	if (++site->count < sc)
		return 0;
	site->count = 0;
	return 1;
}

/* libpem's functions of enclosed.h, found as a program or library starts; NULL: it has none. */
struct pem_probe_functions {
	uint64_t (*begin)(uint32_t kind, uint64_t *values);
	uint32_t (*end)(uint32_t kind, uint64_t source, uint64_t *values);
	int (*set_counter)(uint32_t counter, uint32_t event, uint32_t mask);
};
extern __attribute__((weak, visibility("hidden"))) struct pem_probe_functions pem_probe_functions;
struct pem_probe_functions pem_probe_functions = {0, 0, 0};

#ifndef PEM_REGISTERS_ITSELF
__attribute__((weak, visibility("hidden"), constructor)) void pem_find_probe_functions(void);
void pem_find_probe_functions(void)
{
	void *symbols[3];

	symbols[0] = dlsym((void *)0, "pem_probe__begin");
	symbols[1] = dlsym((void *)0, "pem_probe__end");
	symbols[2] = dlsym((void *)0, "pem_probe__set_counter");
	memcpy(&pem_probe_functions, symbols, sizeof(symbols));
}
#endif

/* A thread that may not read the clock (PR_SET_TSC), or is not known yet. Returns the clock; 0: it
 * may not. */
static __attribute__((noinline, nothrow, unused)) uint64_t pem_probe_ask_clock(void)
{
	uint64_t values[2] = {0, 0};

	if (pem_probe_functions.begin)
		pem_probe_functions.begin(PEM_ENCLOSED_CLOCK, values);
	return values[0];
}

/*
 * The clock; 0: this thread may not read it. libpem lets a thread that may not look as if it were
 * in more events than can nest.
 */
PEM_INLINE uint64_t pem_probe_clock(void)
{
	uint32_t depth = pem_thread_self(&pem_provider_probes)->depth;

	if (__builtin_expect(depth - PEM_DEPTH_IDLE < 3, 1))
		return pem_clock();
	return pem_probe_ask_clock();
}

PEM_INLINE struct pem_tally pem_tally_begin(int is_enabled, struct pem_probe_site *site,
					    uint64_t sc, int is_timed)
{
	struct pem_tally tally = {(struct pem_probe_site *)0, 0, 0};

	if (__builtin_expect(is_enabled, 0)) {
		tally.site = site;
		tally.sc = sc;
		if (is_timed)
			tally.begin = pem_probe_clock();
	}
	return tally;
}

PEM_INLINE void pem_cnt_probe_end(const struct pem_tally *tally, uint32_t id)
{
	uint64_t count;

	if (__builtin_expect(!tally->site, 1))
		return;
	count = ++tally->site->count;
	if (count < tally->sc)
		return;
	tally->site->count = 0;
	pem_notify_probe_cnt(count, id);
}

PEM_INLINE void pem_tpt_probe_end(const struct pem_tally *tally, uint32_t id)
{
	struct pem_probe_site *site = tally->site;
	uint64_t count, cycles, now;

	if (__builtin_expect(!site, 1))
		return;
	now = pem_probe_clock();
	if (!tally->begin || !now)
		return;
	count = ++site->count;
	cycles = site->cycles += now - tally->begin;
	if (count < tally->sc)
		return;
	site->count = site->cycles = 0;
	pem_notify_probe_tpt(count, cycles, id);
}

/* Returns the clock; 0: this execution is not measured. */
PEM_INLINE uint64_t pem_lat_probe_begin(struct pem_probe_site *site, uint64_t sc)
{
	if (__builtin_expect(!pem_enabled_probe_lat(), 1) || !pem_probe_is_due(site, sc))
		return 0;
	return pem_probe_clock();
}

#define PEM_PROBE_LAT_INDEX 1u /* of the event in its provider */
#define PEM_PROBE_LAT_BYTES 20u

static __attribute__((noinline, nothrow, unused)) void pem_lat_probe_else(uint64_t begin,
									  uint32_t id)
{
	uint64_t now = pem_probe_clock();

	/* Without a clock the event is counted as lost, as all others of the thread. */
	pem_notify_probe_lat(now ? now - begin : 0, id);
}

/* Where the record is only logged, the clock that stamps it also ends the time: it is read once. */
static __attribute__((noinline, nothrow, unused)) void pem_on_lat_probe_end(uint64_t begin,
									    uint32_t id)
{
	struct pem_cursor c;
	uint64_t now;

	if (__builtin_expect(pem_quick_begin(&c, &pem_provider_probes,
					     &pem_page_probes.enable[PEM_PROBE_LAT_INDEX],
					     pem_page_probes.action[PEM_PROBE_LAT_INDEX]) &&
				     pem_quick_logs(&c) &&
				     pem_quick_reserve(&c, PEM_PROBE_LAT_BYTES, 0),
			     1)) {
		/* It has the same upper half as the last one, or nothing was reserved. */
		now = (c.writer->last_clock & ~(uint64_t)UINT32_MAX) | c.now;
		pem_put_probe_lat(c.record, now - begin, id);
		pem_quick_commit(&c, &pem_provider_probes, PEM_PROBE_LAT_INDEX,
				 PEM_EVENT_PROBE_LAT_ID, PEM_PROBE_LAT_BYTES);
		return;
	}
	pem_lat_probe_else(begin, id);
}

PEM_INLINE void pem_lat_probe_end(uint64_t begin, uint32_t id)
{
	if (__builtin_expect(begin != 0, 0))
		pem_on_lat_probe_end(begin, id);
}

/*
 * The variables of a pair that libpem measures for. tag: _##id, pasted before a macro's name could
 * become its value. The values have no meaning while nothing is measured.
 */
#define PEM_MEASURED_BEGIN(name, tag, sc, kind)                                                    \
	PEM_PROBE_SITE(pem_##name##_site##tag);                                                    \
	uint64_t pem_##name##_values##tag[2];                                                      \
	const uint64_t pem_##name##_probe##tag =                                                   \
		__builtin_expect(pem_enabled_probe_##name(), 0) &&                                 \
				pem_probe_is_due(&pem_##name##_site##tag, sc)                      \
			? pem_probe_begin(kind, pem_##name##_values##tag)                          \
			: 0

/* Returns the source: see pem_probe__begin. */
static __attribute__((noinline, nothrow, unused)) uint64_t pem_probe_begin(uint32_t kind,
									   uint64_t *values)
{
	const uint64_t *position = (const uint64_t *)0;

	if (kind < PEM_ENCLOSED_MAPPED)
		position = pem_thread_self(&pem_provider_probes)->position[kind];
	if (__builtin_expect(position != (const uint64_t *)0, 1)) {
		values[0] = __atomic_load_n(position, __ATOMIC_RELAXED);
		return (uintptr_t)position;
	}
	return pem_probe_functions.begin ? pem_probe_functions.begin(kind, values)
					 : PEM_ENCLOSED_SOURCE_NONE;
}

/* The label of a kind in Missing: that of all counters is the same. */
PEM_INLINE uint8_t pem_probe_name(uint32_t kind)
{
	return kind < PEM_ENCLOSED_COUNTER ? (uint8_t)kind : (uint8_t)PEM_ENCLOSED_COUNTER;
}

/* Returns enum pem_enclosed_reading; if nothing was read, Missing is raised. */
static __attribute__((noinline, nothrow, unused)) uint32_t
pem_probe_ask(uint32_t kind, uint64_t source, uint64_t *values, uint32_t id)
{
	uint32_t reading = PEM_ENCLOSED_NOT_READ;

	if (pem_probe_functions.end)
		reading = pem_probe_functions.end(kind, source, values);
	if (!reading)
		pem_notify_probe_missing(id, pem_probe_name(kind));
	return reading;
}

/* As pem_probe_ask, of faults and switches. */
PEM_INLINE uint32_t pem_probe_end(uint32_t kind, uint64_t source, uint64_t *values, uint32_t id)
{
	const struct pem_thread *self = pem_thread_self(&pem_provider_probes);
	const uint64_t *position = self->position[kind];

	if (__builtin_expect((uintptr_t)position != source, 0))
		return pem_probe_ask(kind, source, values, id);
	values[0] = (__atomic_load_n(position, __ATOMIC_RELAXED) - values[0]) >>
		    self->position_shift[kind];
	return self->position_reading[kind];
}

static __attribute__((noinline, nothrow, unused)) void
pem_on_flt_probe_end(uint64_t source, uint64_t *values, uint32_t id)
{
	uint32_t reading = pem_probe_end(PEM_ENCLOSED_FAULTS, source, values, id);

	if (reading)
		pem_notify_probe_flt(values[0], id, (uint8_t)reading);
}

PEM_INLINE void pem_flt_probe_end(uint64_t source, uint64_t *values, uint32_t id)
{
	if (__builtin_expect(source != 0, 0))
		pem_on_flt_probe_end(source, values, id);
}

static __attribute__((noinline, nothrow, unused)) void
pem_on_ctxsw_probe_end(uint64_t source, uint64_t *values, uint32_t id)
{
	uint32_t reading = pem_probe_end(PEM_ENCLOSED_SWITCHES, source, values, id);

	if (reading)
		pem_notify_probe_ctxsw(values[0], id, (uint8_t)reading);
}

PEM_INLINE void pem_ctxsw_probe_end(uint64_t source, uint64_t *values, uint32_t id)
{
	if (__builtin_expect(source != 0, 0))
		pem_on_ctxsw_probe_end(source, values, id);
}

PEM_INLINE void pem_llc_probe_end(uint64_t source, uint64_t *values, uint32_t id)
{
	uint32_t reading;

	if (__builtin_expect(!source, 1))
		return;
	reading = pem_probe_ask(PEM_ENCLOSED_LLC, source, values, id);
	if (reading)
		pem_notify_probe_llc(values[0], values[1], id, (uint8_t)reading);
}

PEM_INLINE void pem_perfcntr_probe_end(uint64_t source, uint64_t *values, uint32_t kind,
				       uint32_t id)
{
	uint32_t reading;

	if (__builtin_expect(!source, 1))
		return;
	reading = pem_probe_ask(kind, source, values, id);
	if (reading)
		pem_notify_probe_perfcntr(values[0], id, kind - PEM_ENCLOSED_COUNTER,
					  (uint8_t)reading);
}

static inline int pem_set_perfcntr(uint32_t counter, uint32_t event, uint32_t mask)
{
	return pem_probe_functions.set_counter
		       ? pem_probe_functions.set_counter(counter, event, mask)
		       : 0;
}

enum { PEM_VALUES_1 = 1, PEM_VALUES_2, PEM_VALUES_3, PEM_VALUES_4, PEM_VALUES_5, PEM_VALUES_6 };
/* The 7th argument, which is the number of values if there are at most six; else it is no such
 * name. */
#define PEM_VALUES(a, b, c, d, e, f, count, ...) PEM_VALUES_##count
#define PEM_SNAPSHOT(id, sc, count, a, b, c, d, e, f, ...)                                         \
	do {                                                                                       \
		PEM_PROBE_SITE(pem_site);                                                          \
		if (__builtin_expect(pem_enabled_probe_snapshot(), 0) &&                           \
		    pem_probe_is_due(&pem_site, sc))                                               \
			pem_notify_probe_snapshot((uint64_t)(a), (uint64_t)(b), (uint64_t)(c),     \
						  (uint64_t)(d), (uint64_t)(e), (uint64_t)(f), id, \
						  (uint8_t)(count));                               \
	} while (0)

#ifdef __cplusplus
}
#endif
#endif
