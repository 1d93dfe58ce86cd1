/* SPDX-License-Identifier: MIT */
/*
 * processes.h - running processes as /proc shows them: what descends from one, threads, names,
 * pipes
 *
 * Processes come and go at any time, so a process may have ended when it is visited.
 */
#ifndef PEM_PROCESSES_H
#define PEM_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct pem_proc_stat {
	pid_t pid, parent;
	uint64_t began_ticks; /* since the machine started */
	char state; /* of proc(5); 'Z': it has ended */
	char name[64];
};

/* Read a process. Returns false if there is no such process. */
bool pem_proc__read(pid_t pid, struct pem_proc_stat *stat);
/* Write the name of a process, ended by 0; "" if it is unknown. bytes: at least 1. */
void pem_proc__name(pid_t pid, char *name, size_t bytes);

/* Called with the number of a process, thread or descriptor. false ends the visits. */
typedef bool pem_proc_visit(int number, void *arg);

/* Visit all processes. */
void pem_proc__all(pem_proc_visit *visit, void *arg);
/* Visit the threads of a process. */
void pem_proc__threads(pid_t pid, pem_proc_visit *visit, void *arg);
/* Visit the descriptors of a process, as far as this process may see them. */
void pem_proc__descriptors(pid_t pid, pem_proc_visit *visit, void *arg);
/* An end of a pipe. */
struct pem_proc_pipe {
	uint64_t inode;
	pid_t pid;
	int descriptor;
	bool writes;
	char name[64]; /* of the process */
};

/* Is this descriptor of a process one of a pipe? */
bool pem_proc__is_pipe(pid_t pid, int descriptor, struct pem_proc_pipe *pipe);
/*
 * Read the size of a pipe in bytes, through a descriptor that is open for a moment, since a writer
 * does not notice the end of the last reader in the meantime. If it is less than wanted, it is set.
 * Returns the size before, or -errno; -ESTALE: the process has another file there by now. *set: the
 * size after that, or -errno if it could not be set.
 */
int pem_proc__pipe_bytes(const struct pem_proc_pipe *pipe, uint32_t wanted, int *set);
/* The greatest size in bytes that an ordinary user may give to a pipe (pipe(7)). */
uint32_t pem_proc__pipe_limit(void);

/* Ends of pipes. All 0: none yet. pipes is the caller's to free. */
struct pem_proc_pipes {
	struct pem_proc_pipe *pipes;
	size_t count, capacity;
	size_t processes; /* that were looked at */
	pid_t pid; /* the last of these */
};

/*
 * Find the pipes of processes and of all that descend from them, but not of this process. Of more
 * than 1,024 processes or 16,384 ends, the first are found. Those that were found before go.
 */
void pem_proc__find_pipes(const pid_t *roots, size_t count, struct pem_proc_pipes *found);
/*
 * Visit the children of a process. by_parents: ask each process for its parent, since the kernel
 * keeps no lists of children (CONFIG_PROC_CHILDREN).
 */
void pem_proc__children(pid_t pid, bool by_parents, pem_proc_visit *visit, void *arg);
/*
 * Visit processes, and those that descend from them over at most depth generations. A process is
 * visited before its children are looked for, so that they inherit what the visit changes. Children
 * come in the order in which their parent started them.
 */
void pem_proc__walk(const pid_t *roots, size_t count, unsigned depth, pem_proc_visit *visit,
		    void *arg);

#endif
