// SPDX-License-Identifier: GPL-2.0-only
/*
 * accessed.c - which pages of a process were used, by the accessed bits of its page tables
 *
 * A pass walks the page tables. It reads each entry's accessed bit (the kernel says young), clears
 * it, and reports the results by regions of a chosen size. The processor sets the bit when it next
 * loads the entry. Where the processor can't (arm64 before 8.1), the kernel sets it in a fault. The
 * first pass only clears bits. The bits do not tell:
 *
 *	- How often a page was used, or whether it was written to.
 *	- Which part of a huge page was used, because it has one bit.
 *	- A use while the translation is still in a TLB, because no TLB is flushed. A page in
 *	  constant use may show as unused until its TLB entry is evicted or the process is switched.
 *	  A flush would make the process pay for the measurement, and the functions for it are not
 *	  exported (flush_tlb_mm_range).
 *	- What a virtual machine does with the page by page tables of its own, and what the kernel
 *	  does by its own mapping.
 *
 * Mappings of devices and HugeTLB mappings are left out. HugeTLB mappings share page tables that
 * only locks protect that are not exported, and the size of their pages is known. Swapped pages,
 * pages under migration, and the page of zeros do not count as present.
 *
 * The kernel ages pages by the same bits. If it was built to share them (CONFIG_PAGE_IDLE_FLAG), a
 * used page is marked young, and reclaim treats that as a set bit. In other kernels, such as
 * Debian's 6.1, reclaim believes that a sampled process uses its pages less than it does. That
 * matters under memory pressure, and more with a shorter interval.
 *
 * The kernel does not export walk_page_range(), ptep_test_and_clear_young() of x86,
 * pte_offset_map_lock(), mm_access() or ptrace_may_access(). So this file walks the tables with the
 * inlines that these functions consist of, and clears the bit by the same atomic instruction. The
 * right to read another process's memory is decided by the rules of ptrace, under the lock of
 * mm_access(), which a module can take. Of the security modules only capabilities are asked: code
 * outside of the kernel can't ask the others.
 *
 * Synchronization: as in mm/pgtable-generic.c. mmap_lock, taken for reading, keeps mappings and
 * upper tables. A table of entries may still be removed when a file's huge page replaces it. It is
 * freed after an RCU grace period. So it is read under rcu_read_lock() and its own lock, after a
 * check that it is still in use. mmap_lock is held for one slice: at most some 64 tables, and only
 * until another thread wants the lock or the CPU. The memory is also held for one slice only, so
 * that it is freed when its process exits.
 */
#include "pem_kmod_tried.h"

#if PEM_KMOD_HAS_accessed
#include "sampling.h"
#include "compat_pages.h"

#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/ptrace.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "pem_kmod_emit.h"

#define PROCESSES_MAX 16u /* of a session */
#define INTERVAL_US_MIN 1000u
#define EXEC_TRIES 1000
#define REGION_BYTES_MAX BIT_ULL(40)
/*
 * Cost of what a slice reads. An entry that leads nowhere, or to a huge page, costs 1; a table of
 * entries costs TABLE_COST.
 */
#define SLICE_COST 4096
#define TABLE_COST 64

struct pem_accessed {
	struct pem_ticker ticker;
	struct list_head list;
	struct pem_kmod_probe_data *data;
	struct pid *pid;
	const struct cred *cred; /* credentials of the process that asked */
	u64 region_bytes;
	unsigned long from, to;
	unsigned int begun_run; /* the session's run in which bits were last cleared */
};

struct pass {
	const struct pem_accessed *of;
	bool is_told; /* the bits were already cleared once in this run, so results are written */
	u32 pid;
	u64 region; /* the region that is being added up */
	u32 pages, accessed, huge;
	u32 regions;
	u64 all_pages, all_accessed, all_huge;
	int budget; /* cost that this slice may still have */
};

/* --- what was found --- */

static void end_region(struct pass *pass)
{
	if (!pass->pages)
		return;
	if (pass->is_told) {
		preempt_disable_notrace();
		if (!pem_ticker__is_over(&pass->of->ticker))
			pem_emit_pages_region(pass->of->data, pass->pid, pass->pages, pass->region,
					      pass->of->region_bytes, pass->accessed, pass->huge);
		preempt_enable_notrace();
	}
	pass->regions++;
	pass->all_pages += pass->pages;
	pass->all_accessed += pass->accessed;
	pass->all_huge += pass->huge;
	pass->pages = pass->accessed = pass->huge = 0;
}

/* Count this number of pages from addr on. A huge page is divided among its regions. */
static void found(struct pass *pass, unsigned long addr, u32 pages, bool young, bool huge)
{
	u64 region, left;
	u32 n;

	while (pages) {
		region = addr & ~(pass->of->region_bytes - 1);
		if (region != pass->region)
			end_region(pass);
		pass->region = region;
		left = (region + pass->of->region_bytes - addr) >> PAGE_SHIFT;
		n = min_t(u64, pages, left);
		pass->pages += n;
		pass->accessed += young ? n : 0;
		pass->huge += huge ? n : 0;
		addr += (unsigned long)n << PAGE_SHIFT;
		pages -= n;
	}
}

/* --- the walk: mmap_lock is held --- */

#ifdef CONFIG_TRANSPARENT_HUGEPAGE
static void sample_huge(struct pass *pass, struct vm_area_struct *vma, pmd_t *pmd,
			unsigned long addr, unsigned long end)
{
	spinlock_t *lock = pmd_lock(vma->vm_mm, pmd);
	pmd_t entry = READ_ONCE(*pmd);
	bool young;

	/* If not, it was split meanwhile. The next pass finds its pages. */
	if (pmd_present(entry) && pmd_trans_huge(entry)) {
		young = pmd_young(entry) && pem_clear_young_pmd(vma, addr & PMD_MASK, pmd);
		if (young)
			pem_mark_young(pmd_page(entry));
		found(pass, addr, (end - addr) >> PAGE_SHIFT, young, true);
	}
	spin_unlock(lock);
}
#else
static void sample_huge(struct pass *pass, struct vm_area_struct *vma, pmd_t *pmd,
			unsigned long addr, unsigned long end)
{
}
#endif

static void sample_page(struct pass *pass, struct vm_area_struct *vma, pte_t *pte,
			unsigned long addr)
{
	pte_t entry = ptep_get(pte);
	bool young;

	/* Special entries are the page of zeros and pages without a struct page. */
	if (!pte_present(entry) || pte_special(entry) || !pfn_valid(pte_pfn(entry)))
		return;
	young = pte_young(entry) && pem_clear_young_pte(vma, addr, pte);
	if (young)
		pem_mark_young(pte_page(entry));
	found(pass, addr, 1, young, false);
}

/* The caller has held rcu_read_lock() since it read seen. */
static void sample_table(struct pass *pass, struct vm_area_struct *vma, pmd_t *pmd, pmd_t seen,
			 unsigned long addr, unsigned long end)
{
	spinlock_t *lock = pte_lockptr(vma->vm_mm, &seen);
	pte_t *pte;

	spin_lock(lock);
	if (pmd_same(seen, READ_ONCE(*pmd))) {
		for (pte = pte_offset_kernel(&seen, addr); addr < end; pte++, addr += PAGE_SIZE)
			sample_page(pass, vma, pte, addr);
	}
	spin_unlock(lock);
}

static void sample_pmd(struct pass *pass, struct vm_area_struct *vma, pmd_t *pmd,
		       unsigned long addr, unsigned long end)
{
	pmd_t entry;

	pass->budget--;
	rcu_read_lock();
	entry = READ_ONCE(*pmd);
	if (pmd_present(entry) && pmd_trans_huge(entry)) {
		sample_huge(pass, vma, pmd, addr, end);
	} else if (pmd_present(entry) && !pmd_bad(entry)) {
		sample_table(pass, vma, pmd, entry, addr, end);
		pass->budget -= TABLE_COST;
	}
	rcu_read_unlock();
}

static bool is_over(const struct pass *pass, struct mm_struct *mm)
{
	return pass->budget <= 0 || need_resched() || mmap_lock_is_contended(mm);
}

/*
 * Walk the part of a mapping that one table of pmds describes. Returns the address up to which it
 * was walked.
 */
static unsigned long walk_pmds(struct pass *pass, struct vm_area_struct *vma, pud_t *pud,
			       unsigned long addr, unsigned long end)
{
	pmd_t *pmd = pmd_offset(pud, addr);
	unsigned long next;

	do {
		next = pmd_addr_end(addr, end);
		sample_pmd(pass, vma, pmd++, addr, next);
		addr = next;
	} while (addr != end && !is_over(pass, vma->vm_mm));
	return addr;
}

/*
 * Walk a part of a mapping. Returns the address up to which it was walked. Each call does some of
 * it, even if other threads wait, so that a pass ends.
 */
static unsigned long walk(struct pass *pass, struct vm_area_struct *vma, unsigned long addr,
			  unsigned long end)
{
	pgd_t *pgd;
	p4d_t *p4d;
	pud_t *pud;

	do {
		pass->budget--;
		pgd = pgd_offset(vma->vm_mm, addr);
		if (pgd_none(*pgd) || pgd_bad(*pgd)) {
			addr = pgd_addr_end(addr, end);
			continue;
		}
		p4d = p4d_offset(pgd, addr);
		if (p4d_none(*p4d) || p4d_bad(*p4d)) {
			addr = p4d_addr_end(addr, end);
			continue;
		}
		pud = pud_offset(p4d, addr);
		/* A pud may also be one huge page of a device. */
		if (pud_none(*pud) || pud_bad(*pud))
			addr = pud_addr_end(addr, end);
		else
			addr = walk_pmds(pass, vma, pud, addr, pud_addr_end(addr, end));
	} while (addr < end && !is_over(pass, vma->vm_mm));
	return addr;
}

static bool is_sampled(const struct vm_area_struct *vma)
{
	return !(vma->vm_flags & (VM_HUGETLB | VM_IO | VM_PFNMAP | VM_MIXEDMAP));
}

/*
 * Walk from addr on as far as one slice allows. Returns the address up to which it was walked: to
 * if all is done, addr if this thread is killed.
 */
static unsigned long slice(struct pass *pass, struct mm_struct *mm, unsigned long addr,
			   unsigned long to)
{
	struct vm_area_struct *vma;
	unsigned long end;

	pass->budget = SLICE_COST;
	if (mmap_read_lock_killable(mm))
		return addr;
	do {
		vma = find_vma(mm, addr);
		addr = vma ? max(addr, vma->vm_start) : to;
		if (addr >= to)
			break;
		end = min(to, vma->vm_end);
		addr = is_sampled(vma) ? walk(pass, vma, addr, end) : end;
		pass->budget--;
	} while (addr < to && !is_over(pass, mm));
	mmap_read_unlock(mm);
	return min(addr, to);
}

/* --- passes --- */

/*
 * The rules of __ptrace_may_access() and of cap_ptrace_access_check() for
 * PTRACE_MODE_READ_REALCREDS of the current credentials. The caller ensures that the process can't
 * change its credentials by exec meanwhile.
 */
static bool may_read(struct task_struct *task, struct mm_struct *mm)
{
	const struct cred *mine = current_cred(), *its;
	struct user_namespace *user_ns;
	bool may;

	rcu_read_lock();
	its = __task_cred(task);
	may = uid_eq(mine->uid, its->euid) && uid_eq(mine->uid, its->suid) &&
	      uid_eq(mine->uid, its->uid) && gid_eq(mine->gid, its->egid) &&
	      gid_eq(mine->gid, its->sgid) && gid_eq(mine->gid, its->gid);
	may = may && mine->user_ns == its->user_ns &&
	      cap_issubset(its->cap_permitted, mine->cap_permitted);
	may = may || ns_capable(its->user_ns, CAP_SYS_PTRACE);
	may = may && (pem_is_dumpable(task, mm, &user_ns) || ns_capable(user_ns, CAP_SYS_PTRACE));
	rcu_read_unlock();
	return may;
}

/*
 * Get the memory of the process, with a reference. After an exec it is other memory than before,
 * and the asker may have no right to read it. Exec holds exec_update_lock from before it changes
 * the memory until it has changed the credentials. Without this lock the memory of a program with
 * more rights would be found while the process still has its old rights. A process can make exec
 * take as long as it likes, so this function does not wait for the lock.
 *
 * NULL with *error: -ESRCH, there is no memory; -EPERM; -EAGAIN, the process is in the middle of
 * exec.
 */
static struct mm_struct *get_memory(const struct pem_accessed *of, int *error)
{
	struct task_struct *task = get_pid_task(of->pid, PIDTYPE_TGID);
	const struct cred *old;
	struct mm_struct *mm;

	*error = -ESRCH;
	if (!task)
		return NULL;
	if (!down_read_trylock(&task->signal->exec_update_lock)) {
		put_task_struct(task);
		*error = -EAGAIN;
		return NULL;
	}
	mm = get_task_mm(task);
	if (mm) {
		old = override_creds(of->cred);
		*error = may_read(task, mm) ? 0 : -EPERM;
		revert_creds(old);
	}
	up_read(&task->signal->exec_update_lock);
	put_task_struct(task);
	if (!*error)
		return mm;
	if (mm)
		mmput(mm);
	return NULL;
}

/* Do we alone hold the memory? Its process has then ended. */
static bool is_left_alone(struct mm_struct *mm)
{
	return atomic_read(&mm->mm_users) == 1;
}

static bool tick(struct pem_ticker *ticker)
{
	struct pem_accessed *of = container_of(ticker, struct pem_accessed, ticker);
	struct pass pass = {.of = of,
			    .is_told = of->begun_run == ticker->run,
			    .pid = pid_nr(of->pid),
			    .region = ~0ull};
	u64 begun = ktime_get_ns();
	unsigned long addr = of->from;
	struct mm_struct *mm;
	int error;

	mm = get_memory(of, &error);
	if (!mm)
		return error == -EAGAIN;
	while (addr < of->to && !pem_ticker__is_over(ticker) && !is_left_alone(mm)) {
		addr = slice(&pass, mm, addr, of->to);
		cond_resched();
	}
	mmput(mm);
	if (addr < of->to) /* a partial region is not reported */
		return true;
	end_region(&pass);
	if (pass.is_told) {
		preempt_disable_notrace();
		if (!pem_ticker__is_over(ticker))
			pem_emit_pages_pass(of->data, pass.pid, pass.regions, pass.all_pages,
					    pass.all_accessed, pass.all_huge,
					    ktime_get_ns() - begun);
		preempt_enable_notrace();
	}
	of->begun_run = ticker->run;
	return true;
}

/* --- which processes are sampled --- */

static void free_accessed(struct pem_ticker *ticker)
{
	struct pem_accessed *of = container_of(ticker, struct pem_accessed, ticker);

	put_cred(of->cred);
	put_pid(of->pid);
	kfree(of);
}

static void forget(struct pem_kmod_sampling *sampling, struct pem_accessed *of)
{
	list_del(&of->list);
	sampling->accessed_count--;
	pem_tickers__remove(&of->ticker);
}

static bool is_valid(const struct pem_kmod_accessed *asked)
{
	if (asked->reserved || !asked->pid)
		return false;
	if (!asked->interval_us)
		return !asked->region_bytes && !asked->from && !asked->to;
	return asked->interval_us >= INTERVAL_US_MIN && is_power_of_2(asked->region_bytes) &&
	       asked->region_bytes >= PAGE_SIZE && asked->region_bytes <= REGION_BYTES_MAX &&
	       asked->from <= asked->to && asked->to <= ULONG_MAX &&
	       !((asked->from | asked->to) & (PAGE_SIZE - 1));
}

static struct pem_accessed *find(struct pem_kmod_sampling *sampling, const struct pid *pid)
{
	struct pem_accessed *of;

	list_for_each_entry(of, &sampling->accessed, list) {
		if (of->pid == pid)
			return of;
	}
	return NULL;
}

/*
 * As get_memory(), but wait up to EXEC_TRIES ms for the end of an exec. NULL with -EINTR: a signal
 * came.
 */
static struct mm_struct *await_memory(const struct pem_accessed *of, int *error)
{
	struct mm_struct *mm;
	int tries;

	for (tries = 0; tries < EXEC_TRIES; tries++) {
		mm = get_memory(of, error);
		if (*error != -EAGAIN)
			return mm;
		if (msleep_interruptible(1)) {
			*error = -EINTR;
			return NULL;
		}
	}
	return NULL;
}

/* Sample a process that may be read. The reference to its pid moves to the new entry. */
static int add(struct pem_kmod_sampling *sampling, struct pid *pid,
	       const struct pem_kmod_accessed *asked)
{
	struct pem_accessed *of;
	struct mm_struct *mm;
	int rc;

	if (sampling->accessed_count == PROCESSES_MAX)
		return -ENOSPC;
	of = kzalloc(sizeof(*of), GFP_KERNEL_ACCOUNT);
	if (!of)
		return -ENOMEM;
	of->pid = pid;
	of->cred = get_current_cred();
	mm = await_memory(of, &rc);
	if (!mm) {
		put_cred(of->cred);
		kfree(of);
		return rc;
	}
	of->to = min_t(u64, asked->to ? asked->to : ULONG_MAX, mm->task_size);
	mmput(mm);
	of->data = sampling->data;
	of->ticker.tick = tick;
	of->ticker.free = free_accessed;
	of->ticker.interval_ns = (u64)asked->interval_us * NSEC_PER_USEC;
	of->region_bytes = asked->region_bytes;
	of->from = asked->from;
	list_add(&of->list, &sampling->accessed);
	sampling->accessed_count++;
	pem_tickers__add(&sampling->tickers, &of->ticker);
	return 0;
}

int pem_accessed__set(struct pem_kmod_sampling *sampling, const struct pem_kmod_accessed *asked)
{
	struct pem_accessed *of;
	struct pid *pid;
	int rc = 0;

	if (!is_valid(asked))
		return -EINVAL;
	pid = find_get_pid(asked->pid);
	if (!pid)
		return -ESRCH;
	of = find(sampling, pid);
	if (of) {
		forget(sampling, of);
		synchronize_rcu(); /* wait for its last record */
	} else if (!asked->interval_us) {
		rc = -ESRCH;
	}
	if (!rc && asked->interval_us)
		rc = add(sampling, pid, asked);
	if (rc || !asked->interval_us)
		put_pid(pid);
	return rc;
}

void pem_accessed__free(struct pem_kmod_sampling *sampling)
{
	struct pem_accessed *of, *next;

	list_for_each_entry_safe(of, next, &sampling->accessed, list)
		forget(sampling, of);
}
#endif
