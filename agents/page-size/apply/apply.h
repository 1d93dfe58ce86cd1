/* SPDX-License-Identifier: MIT */
/*
 * apply.h - what is agreed between the agent and the library that it preloads into a program
 *
 * PEM_PAGE_SIZE names a file of directives, which the agent writes for one run; the library reads
 * it once, when it is loaded, and does nothing without it:
 *
 *	pem-page-size 1
 *	budget 67108864
 *	report /tmp/pem-agent-x/report
 *	agent 4711
 *	site	2097152	4096	heap 1b4ae9f0c2d35578+1a2b
 *	site	4096	4096	data 1b4ae9f0c2d35578
 *	part	2097152	0	8388608	heap 1b4ae9f0c2d35578+30
 *
 * budget: bytes of large pages that all processes of the run have together at most. They are added
 * up in a file beside that of the directives, with .account behind its name, which the library
 * makes. report: a file that exists, to which each process appends lines as it gets more large
 * pages, and when it ends or execs; missing: no report. site: page size (4096, 2097152 or
 * 1073741824, which is served with pages of 2 MiB), least bytes of a request that counts (0: any;
 * of a stack: how deep it grows) and key (../sites/site.h), between tabs. part: the same with the
 * most bytes of large pages that a process has for this site, before its key. A page size of 4096
 * gives the site an arena of its own of small pages.
 *
 * Words and lines that are unknown, a file that is neither the user's own nor root's or that others
 * may write, and a file of more than 1 MiB make the library do nothing. It says so in the report,
 * or where the file's own words can't be trusted, in a file that exists with .report behind the
 * name of the directives.
 *
 * A forked child keeps the large pages that it shares with its parent until one of them writes, and
 * has new ones only for what it asks for itself. Of a process that a signal kills, the lines are
 * those that it wrote while it lived.
 *
 * The library has to be the first that is preloaded: it tells sites by who calls it.
 *
 * A line of the report is one JSON object:
 *
 *	{"pid": 1, "error": "..."}
 *	{"pid": 1, "site": "heap ...", "page_size": 2097152, "requests": 3, "bytes": 4194304,
 *	 "granted_bytes": 4194304, "large_bytes": 4194304, "refused_bytes": 0, "reason": "",
 *	 "ended": true}
 *	{"pid": 1, "command": true, "maps": true}
 *	{"pid": 1, "extent": 0, "start": 105553116266496, "end": 105553118363648}
 *	{"pid": 1, "complete": true}
 *
 * Of several lines of a process and a site the last counts. requests, bytes: what the site asked
 * for in all, and had at one time at most. granted_bytes, large_bytes: large pages now, and the
 * most at one time. ended: false in a line that is written before the process ends. refused_bytes:
 * of large pages that could have been made besides large_bytes and were not, for the last reason:
 * "budget", "supply", "limit of the control group", "kernel"; "turn": another process of a control
 * group that is almost full was being given large pages, or held the lock for it; "account": the
 * file beside that of the directives can't be used; "seccomp": the program has given up rights, and
 * opening a file might end it; "signal": a handler interrupted the thread that held a lock;
 * "mappings": the program has more mappings than are followed.
 *
 * The process whose parent is the agent, and whatever it executes, says where its sites' data lie.
 * A line with command comes first, and maps says whether sites that map are among them. extent: the
 * number of a directive, from 0, whose data are between start and end, if there are any; those of
 * blocks, objects and the stack follow at once, those of mappings, also of some that are gone, as
 * the process ends. A line with complete follows them: without it, not all mappings are known.
 */
#ifndef PAGE_APPLY_H
#define PAGE_APPLY_H

#define PAGE_APPLY_VARIABLE "PEM_PAGE_SIZE"
#define PAGE_APPLY_MAGIC "pem-page-size 1"
#define PAGE_APPLY_FILE_MAX (1u << 20)
#define PAGE_APPLY_SITES_MAX 256u

#endif
