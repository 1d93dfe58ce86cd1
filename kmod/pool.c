// SPDX-License-Identifier: GPL-2.0-only
/*
 * pool.c - a CPU's pool: its memory, its mapping, CPUs that come online, and polling
 *
 * Not here: the layout of a pool (pem/abi.h), writing to it (record.c), taking and freeing chunks
 * (take.c).
 *
 * SETUP makes a session's pools for the CPUs that are online. The kernel's hotplug machinery makes
 * pools of CPUs that come later. It does so on the CPU itself, so the CPU's probes see the pool in
 * program order. A CPU that goes offline leaves its pool and uses it again when it returns. Pools
 * live until the file is released, and no mapping lives longer than the file.
 */
#include "module.h"

#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/irq_work.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include <pem/layout.h>

static int hotplug_state;

/* --- memory --- */

#define PEM_GFP                                                                                    \
	(GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN | __GFP_RETRY_MAYFAIL | __GFP_ACCOUNT |            \
	 __GFP_HIGHMEM)

static void free_memory(struct pem_kmod_pool *pool)
{
	if (pool->memory)
		vunmap(pool->memory);
	while (pool->page_count) {
		__free_page(pool->pages[--pool->page_count]);
		cond_resched();
	}
	kvfree(pool->pages);
	kvfree(pool->found);
}

/* Get zeroed pages on the CPU's node, mapped one after another into the kernel. */
static int get_memory(struct pem_kmod_pool *pool, unsigned long count, unsigned int cpu)
{
	struct page *page;

	/* If much more is asked for than is free, the kernel would first drop all of its caches. */
	if (count > si_mem_available())
		return -ENOMEM;
	pool->pages = kvcalloc(count, sizeof(*pool->pages), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	pool->found = kvmalloc_array(pool->session->setup.chunk_count, sizeof(*pool->found),
				     GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!pool->pages || !pool->found)
		return -ENOMEM;
	while (pool->page_count < count) {
		if (fatal_signal_pending(current))
			return -EINTR;
		page = alloc_pages_node(cpu_to_node(cpu), PEM_GFP, 0);
		if (!page)
			return -ENOMEM;
		pool->pages[pool->page_count++] = page;
		cond_resched();
	}
	pool->memory = vmap(pool->pages, count, VM_MAP, PAGE_KERNEL);
	return pool->memory ? 0 : -ENOMEM;
}

/* --- a pool --- */

static void wake(struct irq_work *work)
{
	wake_up_interruptible_poll(&container_of(work, struct pem_kmod_pool, wake)->session->wait,
				   EPOLLIN | EPOLLRDNORM);
}

/* Called from probes, in any context. */
notrace void pem_kmod_filled(struct pem_kmod_cpu *cpu)
{
	struct pem_kmod_pool *pool = cpu->pool;

	if ((u32)atomic_inc_return(&pool->full) >= pool->session->setup.watermark)
		irq_work_queue(&pool->wake);
}

static void fill_in(struct pem_kmod_pool *pool, const struct pem_pool_header *layout)
{
	struct pem_pool_header *header = pool->memory;
	u32 *ids = (u32 *)((u8 *)pool->memory + layout->event_id_offset), i;

	*header = *layout;
	header->start_clock = pem_clock();
	strscpy(header->comm, "kernel", sizeof(header->comm));
	for (i = 0; i < pem_kmod_probe_count; i++)
		ids[i] = pem_kmod_probes[i].event_id;
	pem_pool__point(pool->memory, layout, &pool->ring);
	for (i = 1; i < PEM_KMOD_LANES; i++) {
		pool->ring.lanes[i].state = PEM_LANE_OWNED;
		pool->ring.lanes[i].distributions = (1u << PEM_DISTRIBUTION_COUNT) - 1;
	}
	/* PA */
	smp_store_release(&header->magic, PEM_POOL_MAGIC);
}

static struct pem_pool_header layout_of(const struct pem_kmod_session *session)
{
	struct pem_pool_header layout = {
		.abi_version = PEM_ABI_VERSION,
		.flags = session->setup.flags & PEM_KMOD_OVERWRITE ? PEM_POOL_OVERWRITE : 0,
		.chunk_bytes = session->setup.chunk_bytes,
		.chunk_count = session->setup.chunk_count,
		.lane_count = PEM_KMOD_LANES,
		.event_capacity = round_up(pem_kmod_probe_count, 64),
	};

	pem_pool__layout(&layout);
	return layout;
}

static void free_pool(struct pem_kmod_pool *pool)
{
	struct pem_kmod_session *session = pool->session;
	struct pem_pool_header layout = layout_of(session);

	irq_work_sync(&pool->wake);
	free_memory(pool);
	kfree(pool);
	pem_kmod_user__uncharge(session->user, layout.total_bytes);
}

/* Make a pool. NULL: no memory, or the user's limit is reached. */
static struct pem_kmod_pool *new_pool(struct pem_kmod_session *session, unsigned int cpu)
{
	struct pem_pool_header layout = layout_of(session);
	struct pem_kmod_pool *pool;

	if (pem_kmod_user__charge(session->user, layout.total_bytes, session->is_exempt))
		return NULL;
	pool = kzalloc_node(sizeof(*pool), GFP_KERNEL_ACCOUNT, cpu_to_node(cpu));
	if (!pool) {
		pem_kmod_user__uncharge(session->user, layout.total_bytes);
		return NULL;
	}
	pool->session = session;
	init_irq_work(&pool->wake, wake);
	if (get_memory(pool, PAGE_ALIGN(layout.total_bytes) >> PAGE_SHIFT, cpu)) {
		free_pool(pool);
		return NULL;
	}
	fill_in(pool, &layout);
	return pool;
}

/*
 * Let the CPU write to its pool. Its probes may run meanwhile. If this runs on the CPU itself, they
 * may even interrupt this function. They read the depth before everything else, and they count
 * through the ring's header.
 */
static void publish(struct pem_kmod_session *session, struct pem_kmod_pool *pool, unsigned int cpu)
{
	struct pem_kmod_cpu *mine = per_cpu_ptr(session->probe_data.cpus, cpu);
	struct pem_ring ring = pool->ring;
	u32 i;

	mine->pool = pool;
	for (i = 0; i < PEM_KMOD_DEPTH; i++) {
		mine->writers[i].lane_index = 1 + i;
		mine->writers[i].cells = &ring.cells[(size_t)(1 + i) * ring.event_capacity];
	}
	ring.header = NULL;
	mine->ring = ring;
	/* none: for probes that interrupt this CPU: they read the depth first */
	smp_store_release(&mine->ring.header, pool->ring.header);
	/* none: another CPU's probes run after START */
	smp_store_release(&mine->depth, 0);
	/* MB */
	smp_store_release(&session->pools[cpu], pool);
}

/*
 * Make the pool of a CPU that comes online. It is charged to the control group of the session's
 * maker, not to that of the kernel's thread.
 */
static int cpu_comes(unsigned int cpu, struct hlist_node *node)
{
	struct pem_kmod_session *session = hlist_entry(node, struct pem_kmod_session, hotplug);
	struct mem_cgroup *old;
	struct pem_kmod_pool *pool;

	if (session->pools[cpu])
		return 0;
	old = set_active_memcg(session->memcg);
	pool = new_pool(session, cpu);
	set_active_memcg(old);
	/* Without memory the CPU still works. Its events are counted in the spare ring. */
	if (pool)
		publish(session, pool, cpu);
	return 0;
}

int pem_kmod_pool__init(void)
{
	hotplug_state = cpuhp_setup_state_multi(CPUHP_AP_ONLINE_DYN, "pem:online", cpu_comes, NULL);
	return hotplug_state < 0 ? hotplug_state : 0;
}

void pem_kmod_pool__exit(void)
{
	cpuhp_remove_multi_state(hotplug_state);
}

/*
 * Make the pools of all online CPUs, in the caller's thread, so that its memory is charged. CPUs
 * may come and go meanwhile. A CPU that comes may have made its pool already, and a CPU that goes
 * leaves its pool.
 */
static int make_online(struct pem_kmod_session *session)
{
	struct pem_kmod_pool *pool;
	unsigned int cpu;

	for_each_online_cpu(cpu) {
		if (pem_kmod_pool__of(session, cpu))
			continue;
		pool = new_pool(session, cpu);
		if (!pool)
			return fatal_signal_pending(current) ? -EINTR : -ENOMEM;
		cpus_read_lock();
		if (!session->pools[cpu]) {
			publish(session, pool, cpu);
			pool = NULL;
		}
		cpus_read_unlock();
		if (pool)
			free_pool(pool);
	}
	for_each_possible_cpu(cpu) {
		pool = pem_kmod_pool__of(session, cpu);
		if (pool && !session->probe_data.spare)
			session->probe_data.spare = &pool->ring;
	}
	return session->probe_data.spare ? 0 : -ENOMEM;
}

/* Make pools for online CPUs and for those that come later. On failure there is no pool. */
int pem_kmod_pool__make_all(struct pem_kmod_session *session)
{
	int rc;

	if (layout_of(session).total_bytes > 1ull << PEM_KMOD_MAP_SHIFT)
		return -EINVAL;
	session->memcg = get_mem_cgroup_from_mm(current->mm);
	rc = cpuhp_state_add_instance_nocalls(hotplug_state, &session->hotplug);
	if (rc)
		goto fail;
	rc = make_online(session);
	if (!rc)
		return 0;
fail:
	pem_kmod_pool__free_all(session);
	return rc;
}

void pem_kmod_pool__make_idle(struct pem_kmod_cpu *mine, unsigned int cpu)
{
	*mine = (struct pem_kmod_cpu){
		.depth = PEM_KMOD_DEPTH, .number = cpu, .logged_thread = PEM_KRING_NO_THREAD};
}

/* Free all pools. No probe may run, and nothing may be mapped. */
void pem_kmod_pool__free_all(struct pem_kmod_session *session)
{
	struct pem_kmod_cpu *mine;
	unsigned int cpu;

	if (!hlist_unhashed(&session->hotplug)) {
		cpuhp_state_remove_instance_nocalls(hotplug_state, &session->hotplug);
		/*
		 * The node is poisoned after removal, and SETUP may be tried again after a failure.
		 */
		INIT_HLIST_NODE(&session->hotplug);
	}
	for_each_possible_cpu(cpu) {
		mine = per_cpu_ptr(session->probe_data.cpus, cpu);
		pem_kmod_pool__make_idle(mine, cpu);
		if (session->pools[cpu])
			free_pool(session->pools[cpu]);
		session->pools[cpu] = NULL;
	}
	session->probe_data.spare = NULL;
	mem_cgroup_put(session->memcg);
	session->memcg = NULL;
}

struct pem_kmod_pool *pem_kmod_pool__of(struct pem_kmod_session *session, u32 cpu)
{
	if (cpu >= nr_cpu_ids)
		return NULL;
	/* mb */
	return smp_load_acquire(&session->pools[array_index_nospec(cpu, nr_cpu_ids)]);
}

void pem_kmod_pool__retire_all(struct pem_kmod_session *session)
{
	struct pem_kmod_cpu *mine;
	unsigned int cpu, i;

	for_each_possible_cpu(cpu) {
		mine = per_cpu_ptr(session->probe_data.cpus, cpu);
		for (i = 0; pem_kmod_pool__of(session, cpu) && i < PEM_KMOD_DEPTH; i++)
			pem_kmod_retire(mine, &mine->writers[i]);
	}
}

/* --- mapping --- */

#define PAGES_PER_CPU (1ul << (PEM_KMOD_MAP_SHIFT - PAGE_SHIFT))
#define MAP_AT_ONCE 4096ul /* pages mapped before cond_resched() */

/* All pages are mapped at first. Advice (MADV_DONTNEED) may have removed this page. */
static vm_fault_t pem_map_fault(struct vm_fault *fault)
{
	struct pem_kmod_session *session = fault->vma->vm_file->private_data;
	struct pem_kmod_pool *pool = pem_kmod_pool__of(session, fault->pgoff / PAGES_PER_CPU);
	unsigned long page = fault->pgoff % PAGES_PER_CPU;

	if (!pool || page >= pool->page_count)
		return VM_FAULT_SIGBUS;
	fault->page = pool->pages[array_index_nospec(page, pool->page_count)];
	get_page(fault->page);
	return 0;
}

static const struct vm_operations_struct pem_mapping = {.fault = pem_map_fault};

int pem_kmod_pool__map(struct pem_kmod_session *session, struct vm_area_struct *vma)
{
	unsigned long first, count = vma_pages(vma), done, n, left;
	struct pem_kmod_pool *pool;
	int rc;

	/* ma */
	if (smp_load_acquire(&session->state) == PEM_KMOD_SESSION_NEW)
		return -EBUSY;
	if (vma->vm_pgoff / PAGES_PER_CPU >= nr_cpu_ids)
		return -EINVAL;
	pool = pem_kmod_pool__of(session, vma->vm_pgoff / PAGES_PER_CPU);
	first = vma->vm_pgoff % PAGES_PER_CPU;
	if (!pool)
		return -ENXIO;
	if (first >= pool->page_count || count > pool->page_count - first)
		return -EINVAL;
	if (vma->vm_flags & (VM_WRITE | VM_EXEC))
		return -EPERM;
	/* In a private mapping, pages that advice removed would be replaced by empty pages. */
	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	pem_vm_flags(vma, VM_DONTEXPAND | VM_DONTDUMP | VM_MIXEDMAP, VM_MAYWRITE | VM_MAYEXEC);
	vma->vm_ops = &pem_mapping;
	for (done = 0; done < count; done += n) {
		left = n = min(count - done, MAP_AT_ONCE);
		rc = vm_insert_pages(vma, vma->vm_start + (done << PAGE_SHIFT),
				     pool->pages + first + done, &left);
		if (rc || left)
			return rc ? rc : -EFAULT;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

/* --- waiting --- */

__poll_t pem_kmod_pool__poll(struct pem_kmod_session *session)
{
	/* ma */
	enum pem_kmod_session_state state = smp_load_acquire(&session->state);
	struct pem_kmod_pool *pool;
	unsigned int cpu;
	u32 enough;

	if (state == PEM_KMOD_SESSION_NEW)
		return 0;
	/* After STOP no more records come, so any full chunk is enough. */
	enough = state == PEM_KMOD_SESSION_STOPPED ? 1 : session->setup.watermark;
	for_each_possible_cpu(cpu) {
		pool = pem_kmod_pool__of(session, cpu);
		if (pool && (u32)atomic_read(&pool->full) >= enough)
			return EPOLLIN | EPOLLRDNORM;
	}
	return 0;
}
