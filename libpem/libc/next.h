/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * next.h - the next definitions of all functions but those of libc.h's struct pem_libc_real
 *
 * Each wrapper begins with one test: if no session wants its events, or the call is silent, it only
 * passes the call on. So a wrapper that is off costs an indirect call, and a load and test for each
 * of its events.
 */
#ifndef PEM_LIBC_NEXT_H
#define PEM_LIBC_NEXT_H

#include "libc/libc.h"

enum pem_libc_next_index {
	PEM_LIBC_NEXT_accept,
	PEM_LIBC_NEXT_accept4,
	PEM_LIBC_NEXT_brk,
	PEM_LIBC_NEXT_clock_nanosleep,
	PEM_LIBC_NEXT_close,
	PEM_LIBC_NEXT_connect,
	PEM_LIBC_NEXT_creat,
	PEM_LIBC_NEXT_dlclose,
	PEM_LIBC_NEXT_dlopen,
	PEM_LIBC_NEXT_dup,
	PEM_LIBC_NEXT_dup2,
	PEM_LIBC_NEXT_dup3,
	PEM_LIBC_NEXT_epoll_pwait,
	PEM_LIBC_NEXT_epoll_wait,
	PEM_LIBC_NEXT_execv,
	PEM_LIBC_NEXT_execve,
	PEM_LIBC_NEXT_execveat,
	PEM_LIBC_NEXT_execvp,
	PEM_LIBC_NEXT_execvpe,
	PEM_LIBC_NEXT_exit,
	PEM_LIBC_NEXT__exit,
	PEM_LIBC_NEXT_fclose,
	PEM_LIBC_NEXT_fdatasync,
	PEM_LIBC_NEXT_fexecve,
	PEM_LIBC_NEXT_fflush,
	PEM_LIBC_NEXT_fflush_unlocked,
	PEM_LIBC_NEXT_fopen,
	PEM_LIBC_NEXT_fork,
	PEM_LIBC_NEXT_fread,
	PEM_LIBC_NEXT_fread_unlocked,
	PEM_LIBC_NEXT_fsync,
	PEM_LIBC_NEXT_fwrite,
	PEM_LIBC_NEXT_fwrite_unlocked,
	PEM_LIBC_NEXT_listen,
	PEM_LIBC_NEXT_lseek,
	PEM_LIBC_NEXT_mremap,
	PEM_LIBC_NEXT_nanosleep,
	PEM_LIBC_NEXT_open,
	PEM_LIBC_NEXT_openat,
	PEM_LIBC_NEXT_poll,
	PEM_LIBC_NEXT_posix_spawn,
	PEM_LIBC_NEXT_posix_spawnp,
	PEM_LIBC_NEXT_ppoll,
	PEM_LIBC_NEXT_pread,
	PEM_LIBC_NEXT_pselect,
	PEM_LIBC_NEXT_pthread_barrier_wait,
	PEM_LIBC_NEXT_pthread_cancel,
	PEM_LIBC_NEXT_pthread_cond_broadcast,
	PEM_LIBC_NEXT_pthread_cond_clockwait,
	PEM_LIBC_NEXT_pthread_cond_signal,
	PEM_LIBC_NEXT_pthread_cond_timedwait,
	PEM_LIBC_NEXT_pthread_cond_wait,
	PEM_LIBC_NEXT_pthread_detach,
	PEM_LIBC_NEXT_pthread_join,
	PEM_LIBC_NEXT_pthread_mutex_clocklock,
	PEM_LIBC_NEXT_pthread_mutex_lock,
	PEM_LIBC_NEXT_pthread_mutex_timedlock,
	PEM_LIBC_NEXT_pthread_mutex_trylock,
	PEM_LIBC_NEXT_pthread_mutex_unlock,
	PEM_LIBC_NEXT_pthread_rwlock_rdlock,
	PEM_LIBC_NEXT_pthread_rwlock_timedrdlock,
	PEM_LIBC_NEXT_pthread_rwlock_timedwrlock,
	PEM_LIBC_NEXT_pthread_rwlock_tryrdlock,
	PEM_LIBC_NEXT_pthread_rwlock_trywrlock,
	PEM_LIBC_NEXT_pthread_rwlock_unlock,
	PEM_LIBC_NEXT_pthread_rwlock_wrlock,
	PEM_LIBC_NEXT_pthread_setname_np,
	PEM_LIBC_NEXT_pwrite,
	PEM_LIBC_NEXT_read,
	PEM_LIBC_NEXT_readv,
	PEM_LIBC_NEXT_recv,
	PEM_LIBC_NEXT_recvfrom,
	PEM_LIBC_NEXT_recvmsg,
	PEM_LIBC_NEXT_rename,
	PEM_LIBC_NEXT_sbrk,
	PEM_LIBC_NEXT_select,
	PEM_LIBC_NEXT_sem_clockwait,
	PEM_LIBC_NEXT_sem_post,
	PEM_LIBC_NEXT_sem_timedwait,
	PEM_LIBC_NEXT_sem_trywait,
	PEM_LIBC_NEXT_sem_wait,
	PEM_LIBC_NEXT_send,
	PEM_LIBC_NEXT_sendmsg,
	PEM_LIBC_NEXT_sendto,
	PEM_LIBC_NEXT_sleep,
	PEM_LIBC_NEXT_socket,
	PEM_LIBC_NEXT_unlink,
	PEM_LIBC_NEXT_usleep,
	PEM_LIBC_NEXT_wait,
	PEM_LIBC_NEXT_waitpid,
	PEM_LIBC_NEXT_write,
	PEM_LIBC_NEXT_writev,
	PEM_LIBC_NEXT_capset,
	PEM_LIBC_NEXT_chroot,
	PEM_LIBC_NEXT_initgroups,
	PEM_LIBC_NEXT_prctl,
	PEM_LIBC_NEXT_setegid,
	PEM_LIBC_NEXT_seteuid,
	PEM_LIBC_NEXT_setfsgid,
	PEM_LIBC_NEXT_setfsuid,
	PEM_LIBC_NEXT_setgid,
	PEM_LIBC_NEXT_setgroups,
	PEM_LIBC_NEXT_setns,
	PEM_LIBC_NEXT_setregid,
	PEM_LIBC_NEXT_setresgid,
	PEM_LIBC_NEXT_setresuid,
	PEM_LIBC_NEXT_setreuid,
	PEM_LIBC_NEXT_setuid,
	PEM_LIBC_NEXT_syscall,
	PEM_LIBC_NEXT_unshare,
#if defined(__x86_64__)
	PEM_LIBC_NEXT_older_posix_spawn,
	PEM_LIBC_NEXT_older_posix_spawnp,
	PEM_LIBC_NEXT_older_pthread_cond_broadcast,
	PEM_LIBC_NEXT_older_pthread_cond_signal,
	PEM_LIBC_NEXT_older_pthread_cond_timedwait,
	PEM_LIBC_NEXT_older_pthread_cond_wait,
#endif
	PEM_LIBC_NEXT_COUNT
};

/*
 * NULL until found. Stores and loads are relaxed atomics: every value that was ever stored here is
 * right.
 */
extern void *pem_libc_next[PEM_LIBC_NEXT_COUNT];

extern const char *const pem_libc_next_names[PEM_LIBC_NEXT_COUNT];

/*
 * Find a definition at its first call: a program calls few of them, and its start need not wait for
 * all. Never returns NULL: if this C library lacks the function, a function that fails takes its
 * part. Async-signal-safe, and keeps errno.
 */
void *pem_libc_next__first(unsigned index);

static inline void *pem_libc_next__get(unsigned index)
{
	void *next = __atomic_load_n(&pem_libc_next[index], __ATOMIC_RELAXED);

	return __builtin_expect(next != NULL, 1) ? next : pem_libc_next__first(index);
}

/*
 * In a wrapper: true if no session wants its events, or the call is silent. enabled:
 * pem_enabled_X() of its events, joined by |.
 */
#define PEM_LIBC_UNWANTED(enabled)                                                                 \
	(__builtin_expect(!(enabled), 1) || pem_libc_call__is_silent(PEM_LIBC_SITE))

#define PEM_LIBC_NEXT(name) ((__typeof__(&name))pem_libc_next__get(PEM_LIBC_NEXT_##name))

#endif
