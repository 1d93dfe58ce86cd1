// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * next.c - the names of the functions of next.h, and their definitions
 *
 * Not here: the wrappers, and how a name is found (elf_names.c).
 */
#include "libc/next.h"

#include "libc/elf_names.h"

#include "early.h"

#include <errno.h>
#include <string.h>

void *pem_libc_next[PEM_LIBC_NEXT_COUNT] PEM_EARLY;

const char *const pem_libc_next_names[PEM_LIBC_NEXT_COUNT] = {
	[PEM_LIBC_NEXT_accept] = "accept",
	[PEM_LIBC_NEXT_accept4] = "accept4",
	[PEM_LIBC_NEXT_brk] = "brk",
	[PEM_LIBC_NEXT_clock_nanosleep] = "clock_nanosleep",
	[PEM_LIBC_NEXT_close] = "close",
	[PEM_LIBC_NEXT_connect] = "connect",
	[PEM_LIBC_NEXT_creat] = "creat",
	[PEM_LIBC_NEXT_dlclose] = "dlclose",
	[PEM_LIBC_NEXT_dlopen] = "dlopen",
	[PEM_LIBC_NEXT_dup] = "dup",
	[PEM_LIBC_NEXT_dup2] = "dup2",
	[PEM_LIBC_NEXT_dup3] = "dup3",
	[PEM_LIBC_NEXT_epoll_pwait] = "epoll_pwait",
	[PEM_LIBC_NEXT_epoll_wait] = "epoll_wait",
	[PEM_LIBC_NEXT_execv] = "execv",
	[PEM_LIBC_NEXT_execve] = "execve",
	[PEM_LIBC_NEXT_execveat] = "execveat",
	[PEM_LIBC_NEXT_execvp] = "execvp",
	[PEM_LIBC_NEXT_execvpe] = "execvpe",
	[PEM_LIBC_NEXT_exit] = "exit",
	[PEM_LIBC_NEXT__exit] = "_exit",
	[PEM_LIBC_NEXT_fclose] = "fclose",
	[PEM_LIBC_NEXT_fdatasync] = "fdatasync",
	[PEM_LIBC_NEXT_fexecve] = "fexecve",
	[PEM_LIBC_NEXT_fflush] = "fflush",
	[PEM_LIBC_NEXT_fflush_unlocked] = "fflush_unlocked",
	[PEM_LIBC_NEXT_fopen] = "fopen",
	[PEM_LIBC_NEXT_fork] = "fork",
	[PEM_LIBC_NEXT_fread] = "fread",
	[PEM_LIBC_NEXT_fread_unlocked] = "fread_unlocked",
	[PEM_LIBC_NEXT_fsync] = "fsync",
	[PEM_LIBC_NEXT_fwrite] = "fwrite",
	[PEM_LIBC_NEXT_fwrite_unlocked] = "fwrite_unlocked",
	[PEM_LIBC_NEXT_listen] = "listen",
	[PEM_LIBC_NEXT_lseek] = "lseek",
	[PEM_LIBC_NEXT_mremap] = "mremap",
	[PEM_LIBC_NEXT_nanosleep] = "nanosleep",
	[PEM_LIBC_NEXT_open] = "open",
	[PEM_LIBC_NEXT_openat] = "openat",
	[PEM_LIBC_NEXT_poll] = "poll",
	[PEM_LIBC_NEXT_posix_spawn] = "posix_spawn",
	[PEM_LIBC_NEXT_posix_spawnp] = "posix_spawnp",
	[PEM_LIBC_NEXT_ppoll] = "ppoll",
	[PEM_LIBC_NEXT_pread] = "pread",
	[PEM_LIBC_NEXT_pselect] = "pselect",
	[PEM_LIBC_NEXT_pthread_barrier_wait] = "pthread_barrier_wait",
	[PEM_LIBC_NEXT_pthread_cancel] = "pthread_cancel",
	[PEM_LIBC_NEXT_pthread_cond_broadcast] = "pthread_cond_broadcast",
	[PEM_LIBC_NEXT_pthread_cond_clockwait] = "pthread_cond_clockwait",
	[PEM_LIBC_NEXT_pthread_cond_signal] = "pthread_cond_signal",
	[PEM_LIBC_NEXT_pthread_cond_timedwait] = "pthread_cond_timedwait",
	[PEM_LIBC_NEXT_pthread_cond_wait] = "pthread_cond_wait",
	[PEM_LIBC_NEXT_pthread_detach] = "pthread_detach",
	[PEM_LIBC_NEXT_pthread_join] = "pthread_join",
	[PEM_LIBC_NEXT_pthread_mutex_clocklock] = "pthread_mutex_clocklock",
	[PEM_LIBC_NEXT_pthread_mutex_lock] = "pthread_mutex_lock",
	[PEM_LIBC_NEXT_pthread_mutex_timedlock] = "pthread_mutex_timedlock",
	[PEM_LIBC_NEXT_pthread_mutex_trylock] = "pthread_mutex_trylock",
	[PEM_LIBC_NEXT_pthread_mutex_unlock] = "pthread_mutex_unlock",
	[PEM_LIBC_NEXT_pthread_rwlock_rdlock] = "pthread_rwlock_rdlock",
	[PEM_LIBC_NEXT_pthread_rwlock_timedrdlock] = "pthread_rwlock_timedrdlock",
	[PEM_LIBC_NEXT_pthread_rwlock_timedwrlock] = "pthread_rwlock_timedwrlock",
	[PEM_LIBC_NEXT_pthread_rwlock_tryrdlock] = "pthread_rwlock_tryrdlock",
	[PEM_LIBC_NEXT_pthread_rwlock_trywrlock] = "pthread_rwlock_trywrlock",
	[PEM_LIBC_NEXT_pthread_rwlock_unlock] = "pthread_rwlock_unlock",
	[PEM_LIBC_NEXT_pthread_rwlock_wrlock] = "pthread_rwlock_wrlock",
	[PEM_LIBC_NEXT_pthread_setname_np] = "pthread_setname_np",
	[PEM_LIBC_NEXT_pwrite] = "pwrite",
	[PEM_LIBC_NEXT_read] = "read",
	[PEM_LIBC_NEXT_readv] = "readv",
	[PEM_LIBC_NEXT_recv] = "recv",
	[PEM_LIBC_NEXT_recvfrom] = "recvfrom",
	[PEM_LIBC_NEXT_recvmsg] = "recvmsg",
	[PEM_LIBC_NEXT_rename] = "rename",
	[PEM_LIBC_NEXT_sbrk] = "sbrk",
	[PEM_LIBC_NEXT_select] = "select",
	[PEM_LIBC_NEXT_sem_clockwait] = "sem_clockwait",
	[PEM_LIBC_NEXT_sem_post] = "sem_post",
	[PEM_LIBC_NEXT_sem_timedwait] = "sem_timedwait",
	[PEM_LIBC_NEXT_sem_trywait] = "sem_trywait",
	[PEM_LIBC_NEXT_sem_wait] = "sem_wait",
	[PEM_LIBC_NEXT_send] = "send",
	[PEM_LIBC_NEXT_sendmsg] = "sendmsg",
	[PEM_LIBC_NEXT_sendto] = "sendto",
	[PEM_LIBC_NEXT_sleep] = "sleep",
	[PEM_LIBC_NEXT_socket] = "socket",
	[PEM_LIBC_NEXT_unlink] = "unlink",
	[PEM_LIBC_NEXT_usleep] = "usleep",
	[PEM_LIBC_NEXT_wait] = "wait",
	[PEM_LIBC_NEXT_waitpid] = "waitpid",
	[PEM_LIBC_NEXT_write] = "write",
	[PEM_LIBC_NEXT_writev] = "writev",
	[PEM_LIBC_NEXT_capset] = "capset",
	[PEM_LIBC_NEXT_chroot] = "chroot",
	[PEM_LIBC_NEXT_initgroups] = "initgroups",
	[PEM_LIBC_NEXT_prctl] = "prctl",
	[PEM_LIBC_NEXT_setegid] = "setegid",
	[PEM_LIBC_NEXT_seteuid] = "seteuid",
	[PEM_LIBC_NEXT_setfsgid] = "setfsgid",
	[PEM_LIBC_NEXT_setfsuid] = "setfsuid",
	[PEM_LIBC_NEXT_setgid] = "setgid",
	[PEM_LIBC_NEXT_setgroups] = "setgroups",
	[PEM_LIBC_NEXT_setns] = "setns",
	[PEM_LIBC_NEXT_setregid] = "setregid",
	[PEM_LIBC_NEXT_setresgid] = "setresgid",
	[PEM_LIBC_NEXT_setresuid] = "setresuid",
	[PEM_LIBC_NEXT_setreuid] = "setreuid",
	[PEM_LIBC_NEXT_setuid] = "setuid",
	[PEM_LIBC_NEXT_syscall] = "syscall",
	[PEM_LIBC_NEXT_unshare] = "unshare",
#if defined(__x86_64__)
	[PEM_LIBC_NEXT_older_posix_spawn] = "posix_spawn@GLIBC_2.2.5",
	[PEM_LIBC_NEXT_older_posix_spawnp] = "posix_spawnp@GLIBC_2.2.5",
	[PEM_LIBC_NEXT_older_pthread_cond_broadcast] = "pthread_cond_broadcast@GLIBC_2.2.5",
	[PEM_LIBC_NEXT_older_pthread_cond_signal] = "pthread_cond_signal@GLIBC_2.2.5",
	[PEM_LIBC_NEXT_older_pthread_cond_timedwait] = "pthread_cond_timedwait@GLIBC_2.2.5",
	[PEM_LIBC_NEXT_older_pthread_cond_wait] = "pthread_cond_wait@GLIBC_2.2.5",
#endif
};

/*
 * Takes the part of a function that the C library lacks. No program can have been linked against
 * that function, so the result type does not matter.
 */
static long missing(void)
{
	errno = ENOSYS;
	return -1;
}

void *pem_libc_next__first(unsigned index)
{
	long (*stand_in)(void) = missing;
	void *next;

	/* Without a list of the loader yet no definition can be called. */
	if (!pem_elf__find_next_one(pem_libc_next_names[index], &next)) {
		memcpy(&next, &stand_in, sizeof(next));
		return next;
	}
	if (!next)
		memcpy(&next, &stand_in, sizeof(next));
	__atomic_store_n(&pem_libc_next[index], next, __ATOMIC_RELAXED);
	return next;
}
