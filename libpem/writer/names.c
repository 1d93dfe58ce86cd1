/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * names.c - the names of processes and threads that were there before the recording: .pem/names
 *
 * A process that starts or replaces its image during the recording gets its name from the kernel's
 * events. A process that raises events gets it from its balance. The file has a line 'PID<tab>NAME'
 * for each process and 'PID/TID<tab>NAME' for each of its threads. The last line for a process or
 * thread counts.
 */
#include "writer/log.h"
#include "writer/trace_writer.h"
#include "writer/trace_writer_internal.h"
#include "util.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_threads(struct pem_trace_writer *w, uint32_t pid)
{
	char path[64], name[PEM_NAME_BYTES];
	struct dirent *entry;
	uint32_t tid;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		tid = (uint32_t)strtoul(entry->d_name, NULL, 10);
		snprintf(path, sizeof(path), "/proc/%u/task/%u/comm", pid, tid);
		if (tid && pem_read_name(path, name))
			fprintf(w->names, "%u/%u\t%s\n", pid, tid, name);
	}
	if (tasks)
		closedir(tasks);
}

static void add(struct pem_trace_writer *w, uint32_t pid)
{
	char name[PEM_NAME_BYTES];

	if (!w->names)
		w->names = open_memstream(&w->names_text, &w->names_bytes);
	if (!w->names || !pem_process_name(pid, name))
		return;
	fprintf(w->names, "%u\t%s\n", pid, name);
	add_threads(w, pid);
}

int pem_trace_writer__write_names(struct pem_trace_writer *w)
{
	if (!w->names)
		return 0;
	if (fflush(w->names))
		return -ENOMEM;
	return pem_replace_file(w->private_fd, "names", w->names_text, w->names_bytes);
}

void pem_trace_writer__copy_names(struct pem_trace_writer *w, struct pem_trace_writer *from)
{
	if (!from->names || fflush(from->names))
		return;
	if (!w->names)
		w->names = open_memstream(&w->names_text, &w->names_bytes);
	if (w->names)
		fwrite(from->names_text, 1, from->names_bytes, w->names);
}

void pem_log__name_process(struct pem_log *log, uint32_t pid)
{
	if (log && log->named)
		add(log->writer, pid);
}

void pem_log__name_processes(struct pem_log *log)
{
	struct dirent *entry;
	uint32_t pid;
	DIR *proc;

	if (!log || log->named || log->finished)
		return;
	log->named = true;
	proc = opendir("/proc");
	while (proc && (entry = readdir(proc))) {
		pid = (uint32_t)strtoul(entry->d_name, NULL, 10);
		if (pid)
			add(log->writer, pid);
	}
	if (proc)
		closedir(proc);
	pem_trace_writer__write_names(log->writer);
}
