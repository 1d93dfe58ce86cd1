/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* internal.c - what the programs need to tell pem's own system calls from those of a program, and
 * how many they found */
#include "kernel.h"

#include <pem/internal.h>

#include <string.h>
#include <sys/syscall.h>

void pem_source__name_libraries(struct pem_kconfig *config, const char *path)
{
	/* With an older C library stat and fstat are other calls. */
	static const uint16_t loads[] = {
		SYS_openat,     SYS_read,     SYS_pread64, SYS_fstat,
		SYS_mmap,       SYS_mprotect, SYS_munmap,  SYS_lseek,
#ifdef SYS_newfstatat
		SYS_newfstatat,
#endif
#ifdef SYS_stat
		SYS_stat,
#endif
	};
	struct pem_start_calls *calls = &config->start_calls;
	size_t i;

	*calls = (struct pem_start_calls){
		.openat = SYS_openat,
		.mmap = SYS_mmap,
		.mprotect = SYS_mprotect,
		.munmap = SYS_munmap,
		.close = SYS_close,
		.execve = SYS_execve,
	};
	for (i = 0; i < PEM_ARRAY_SIZE(loads); i++)
		calls->loads[loads[i] / 64] |= 1ull << loads[i] % 64;
	config->library_path_bytes = strlen(path);
	memcpy(config->library_path, path, config->library_path_bytes);
}

uint64_t pem_source__internal_calls(struct pem_source *source)
{
	uint64_t calls = 0;
	uint32_t cpu;

	for (cpu = 0; cpu < source->common.cpu_count; cpu++)
		calls += __atomic_load_n(&pem_source__ring(source, cpu)->internal_calls,
					 __ATOMIC_RELAXED);
	return calls;
}
