/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * core.c - what every room does with a session: locking it, saying something, joining it in this
 * process
 */
#include "core/core.h"
#include "producer/producer.h"
#include "util.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The function begins with an instruction that does nothing: calibrate.c attaches probes to it. */
__attribute__((patchable_function_entry(1))) const char *pem_version(void)
{
	return PEM_VERSION;
}

void pem_session__lock(struct pem_session *session)
{
	pem_thread_inside++;
	PEM_BARRIER();
	pthread_mutex_lock(&session->mutex);
}

void pem_session__unlock(struct pem_session *session)
{
	pthread_mutex_unlock(&session->mutex);
	PEM_BARRIER();
	pem_thread_inside--;
}

void pem_session__say(struct pem_session *session, enum pem_log_level level, const char *format,
		      ...)
{
	char text[1024];
	va_list arguments;

	if (!session->options.log || (level == PEM_LOG_PROGRESS && !session->options.progress))
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	pem_printable(text);
	session->options.log(level, text, session->options.log_arg);
}

uint64_t pem_session__clock_error_ns(const struct pem_session *s)
{
	return pem_clock_sync__error_ns(&s->clock) +
	       (uint64_t)((double)pem_coarse_clock__error_cycles(&s->coarse) * 1e9 /
			  (double)s->clock.hz);
}

bool pem_context__names_self(const struct pem_context *context)
{
	if (context->pid != PEM_ANY || context->tid == PEM_ANY)
		return context->pid == (uint32_t)getpid();
	return !syscall(SYS_tgkill, getpid(), context->tid, 0);
}

int pem_session__join_self(struct pem_session *s, struct pem_error *error)
{
	if (s->self_index >= 0)
		return 0;
	s->self_index = pem_process__join(s->directory);
	if (s->self_index >= 0)
		return 0;
	return pem_error__set(
		error, s->self_index, "cannot observe this process: %s%s", strerror(-s->self_index),
		s->self_index == -EUSERS ? "; eight sessions do already, close one" : "");
}
