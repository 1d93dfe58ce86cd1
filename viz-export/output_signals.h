/* SPDX-License-Identifier: MIT */
/*
 * output_signals.h - removes unfinished files when a signal ends the process
 *
 * Not here: which files these are (output.c).
 */
#ifndef PEM_EXPORT_OUTPUT_SIGNALS_H
#define PEM_EXPORT_OUTPUT_SIGNALS_H

/*
 * Remove the file at path if SIGINT, SIGTERM, SIGHUP or SIGPIPE ends the process from here on. A
 * signal that is ignored or handled by someone else stays so: then it does not end the process, or
 * not here. path stays the caller's and must stay valid until pem_output_signals__remove(). At most
 * four files at a time; a further one is not removed.
 */
void pem_output_signals__add(const char *path);
/* Forget path. After the last one the signals are as they were. */
void pem_output_signals__remove(const char *path);

#endif
