#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
MPI programs under libpem-mpi.so: every message's two ends, and collective operations in all processes.

Not here: several machines.
"""
import collections
import os
import subprocess

from preload import count, record
from tap import BUILD, equal, need, run, run_all, skip, test, tmp

PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#define CHECK(x) do { if (!(x)) { printf("line %d: %s\n", __LINE__, #x); MPI_Abort(MPI_COMM_WORLD, 9); } } while (0)
int main(int argc, char **argv)
{
	int rank, size, value = 1, got = -1, i, sum = 0, other;
	MPI_Comm swapped;
	MPI_Request requests[4];
	MPI_Status status;
	double data[100] = { 0 };

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	other = 1 - rank;
	CHECK(size == 2);
	if (rank == 0) {
		MPI_Send(data, 100, MPI_DOUBLE, 1, 7, MPI_COMM_WORLD);
		MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
		CHECK(got == 43 && status.MPI_SOURCE == 1 && status.MPI_TAG == 8);
	} else {
		MPI_Recv(data, 100, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		value = 43;
		MPI_Ssend(&value, 1, MPI_INT, 0, 8, MPI_COMM_WORLD);
	}
	/* the ranks the other way round */
	MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &swapped);
	for (i = 0; i < 2; i++) {
		MPI_Irecv(data + 10 * i, 10, MPI_DOUBLE, rank, 20 + i, swapped, &requests[i]);
		MPI_Isend(data + 50, 10, MPI_DOUBLE, rank, 20 + i, swapped, &requests[2 + i]);
	}
	MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
	CHECK(requests[0] == MPI_REQUEST_NULL);
	MPI_Sendrecv(&rank, 1, MPI_INT, other, 30, &got, 1, MPI_INT, other, 30, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	CHECK(got == other);
	MPI_Send(NULL, 0, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, swapped);
	MPI_Bcast(data, 25, MPI_DOUBLE, 1, MPI_COMM_WORLD);
	MPI_Comm_free(&swapped);
	MPI_Finalize();
	printf("%d %d\n", rank, sum);
	return 0;
}
"""


def launcher():
    return ["mpirun", "-np", "2", "--oversubscribe"] + (["--allow-run-as-root"] if os.geteuid() == 0 else [])


def program():
    if not os.path.exists(BUILD + "/lib/libpem-mpi.so"):
        skip("libpem-mpi.so is not built: mpicc is missing (libopenmpi-dev)")
    need("mpicc", "mpirun")
    path = tmp() + "/program"
    subprocess.run(["mpicc", "-x", "c", "-", "-o", path], input=PROGRAM.encode(), check=True)
    rc, out, err = run(launcher() + [path])
    if rc:
        skip("mpirun can't start two processes here: " + err[-300:].replace("\n", " "))
    equal(sorted(out.split("\n")), ["", "0 1", "1 1"], "what it prints alone")
    return path


def ends(events, name):
    keys = ("job", "communicator", "sender", "receiver", "tag", "bytes")
    return [tuple(e[k] for k in keys) for e in events if e["event"] == "APP::Mpi::" + name]


@test
def messages_pair():
    "each message of two processes shows once at either end, with the same keys; other calls show in both"
    path = program()
    out, events = record(launcher() + [path], "APP::Mpi::*")
    equal(sorted(out.split("\n")), ["", "0 1", "1 1"], "what it prints recorded")
    sent, received = ends(events, "MessageSend"), ends(events, "MessageReceive")
    equal(collections.Counter(sent), collections.Counter(received), "messages sent and received")
    equal(len({(m[0], m[1], m[4]) for m in sent}), 5, "tags in their communicators: 7, 8, 20, 21, 30")
    equal(sorted((m[2], m[3], m[4], m[5]) for m in sent),
          sorted([("0", "1", "7", "800"), ("1", "0", "8", "4")] +
                 [(a, str(1 - int(a)), tag, "80") for a in "01" for tag in ("20", "21")] +
                 [(a, str(1 - int(a)), "30", "4") for a in "01"]), "ranks in the world, tags and bytes")
    equal(len({m[0] for m in sent}), 1, "runs")
    for e in events:  # who sends is the process that says so
        if e["event"].endswith("InitEnd"):
            rank, pid = e["rank"], e["pid"]
            equal({m["sender"] for m in events if m["event"].endswith("MessageSend") and m["pid"] == pid}, {rank}, "sender")
    kinds = collections.Counter(e["event"].split("::")[2] for e in events)
    for name in "Init Finalize Send Receive Wait Collective".split():
        assert kinds[name + "Begin"] == kinds[name + "End"] > 0, (name, kinds)
    equal(count(events, "APP::Mpi::SendBegin", peer=-1), 2, "sends to nobody, which are no messages")
    equal((kinds["SendStart"], kinds["ReceiveStart"], kinds["CommunicatorCreate"], kinds["CommunicatorFree"]), (4, 4, 2, 2), "others")
    equal(len({e["communicator"] for e in events if e["event"].endswith("CommunicatorCreate")}), 1,
          "numbers of the one communicator that two processes made")
    equal(count(events, "APP::Mpi::CollectiveBegin", bytes=200, root=1), 2, "broadcasts of 25 doubles")


@test
def sent_before_received():
    "no message is received before it is sent, on the one clock of both processes"
    _, events = record(launcher() + [program()], "APP::Mpi::Message*")
    under_way = collections.Counter()
    for e in events:
        key = (e["communicator"], e["sender"], e["receiver"], e["tag"])
        under_way[key] += 1 if e["event"].endswith("Send") else -1
        assert under_way[key] >= 0, "received before it was sent: %s" % (key,)
    equal(sum(under_way.values()), 0, "messages left")


@test
def harmless_without_mpi():
    "a process without MPI that the adapter is preloaded into runs as ever"
    if not os.path.exists(BUILD + "/lib/libpem-mpi.so"):
        skip("libpem-mpi.so is not built: mpicc is missing (libopenmpi-dev)")
    if os.environ.get("SAN"):
        skip("a sanitizer's runtime must come before every preloaded library; run without SAN=1")
    library = {"LD_PRELOAD": BUILD + "/lib/libpem.so.1:" + BUILD + "/lib/libpem-mpi.so"}
    equal(run(["sh", "-c", "echo hello | cat"], env=library), (0, "hello\n", ""), "what it does")


PRELOAD_MPI = {"LD_PRELOAD": BUILD + "/lib/libpem.so.1:" + BUILD + "/lib/libpem-mpi.so"}

# An interpreter: knows nothing of MPI, and loads a module for itself alone.
INTERPRETER = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	void *module = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	int (*use)(void) = module ? (int (*)(void))dlsym(module, "use") : 0;

	if (!use)
		puts(dlerror());
	return use ? use() : 1;
}
"""
USE = r"""
#include <mpi.h>
#include <stdio.h>
int use(void)
{
	int value = 42, got = 0, size = -1;
	MPI_Request request;

	if (MPI_Init(NULL, NULL))
		return 1;
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Irecv(&got, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, &request);
	MPI_Send(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	printf("%d %d\n", size, got);
	return 0;
}
"""
# Stands in for MPI in programs of one process, and has no names for tools.
ALONE = r"""
int MPI_Init(int *count, char ***arguments) { return 0; }
int MPI_Barrier(void *communicator) { return 0; }
int MPI_Send(void *from, int count, void *type, int to, int tag, void *communicator) { return count; }
"""
USE_ALONE = r"""
#include <stdio.h>
int main(void)
{
	printf("%d %d %d\n", MPI_Init(NULL, NULL), MPI_Send(NULL, 3, NULL, 0, 1, NULL), MPI_Barrier(NULL));
	return 0;
}
"""


def build(compiler, source, *flags):
    path = tmp() + "/out"
    subprocess.run([compiler, "-w", "-x", "c", "-", "-x", "none", "-o", path] + list(flags), input=source.encode(), check=True)
    return path


def same_under_adapter(command):
    """The same alone, preloaded, and recorded."""
    if not os.path.exists(BUILD + "/lib/libpem-mpi.so"):
        skip("libpem-mpi.so is not built: mpicc is missing (libopenmpi-dev)")
    if os.environ.get("SAN"):
        skip("a sanitizer's runtime must come before every preloaded library; run without SAN=1")
    rc, out, err = run(command)
    if rc:
        skip("this program of one process can't run here: " + err[-300:].replace("\n", " "))
    equal(run(command, env=PRELOAD_MPI)[:2], (0, out), "what it says with the adapter")
    equal(record(command, "APP::Mpi::*")[0], out, "what it says recorded")
    return out


@test
def loaded_by_an_interpreter():
    "MPI that a module brings, loaded for itself alone after the program's start, works the same"
    need("mpicc", "cc")
    module = build("mpicc", USE, "-shared", "-fPIC")
    equal(same_under_adapter([build("cc", INTERPRETER, "-ldl"), module]), "1 42\n", "what it says")


@test
def without_names_for_tools():
    "a library that stands in for MPI and has no PMPI_ functions gets its calls"
    need("cc")
    library = build("cc", ALONE, "-shared", "-fPIC")
    equal(same_under_adapter([build("cc", USE_ALONE, library)]), "0 3 0\n", "what it says")
    module = build("cc", ALONE + USE_ALONE.replace("main", "use"), "-shared", "-fPIC")
    equal(same_under_adapter([build("cc", INTERPRETER, "-ldl"), module]), "0 3 0\n", "what it says as a module")


# Between the adapter and MPI: frees the communicator at once, as another thread may that has taken part.
FREES = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
static MPI_Comm freed[2];
static void give(MPI_Comm communicator)
{
	freed[freed[0] != NULL] = communicator;
	PMPI_Comm_free(&communicator);
}
int PMPI_Comm_get_attr(MPI_Comm communicator, int key, void *value, int *is_there)
{
	if (communicator == freed[0] || communicator == freed[1])
		abort();
	return ((__typeof__(&PMPI_Comm_get_attr))dlsym(RTLD_NEXT, "PMPI_Comm_get_attr"))(communicator, key, value, is_there);
}
int PMPI_Ibarrier(MPI_Comm communicator, MPI_Request *request)
{
	int rc = ((int (*)(MPI_Comm, MPI_Request *))dlsym(RTLD_NEXT, "PMPI_Ibarrier"))(communicator, request);

	give(communicator);
	return rc;
}
int PMPI_Irecv(void *to, int count, MPI_Datatype type, int peer, int tag, MPI_Comm communicator, MPI_Request *request)
{
	int rc = ((__typeof__(&PMPI_Irecv))dlsym(RTLD_NEXT, "PMPI_Irecv"))(to, count, type, peer, tag, communicator, request);

	give(communicator);
	return rc;
}
"""
GIVES = r"""
#include <mpi.h>
#include <stdio.h>
int main(void)
{
	int value = 42, got = 0;
	MPI_Request requests[2];
	MPI_Comm one, other;

	if (MPI_Init(NULL, NULL))
		return 1;
	MPI_Comm_dup(MPI_COMM_WORLD, &one);
	MPI_Comm_dup(MPI_COMM_WORLD, &other);
	MPI_Isend(&value, 1, MPI_INT, 0, 5, other, &requests[0]);
	MPI_Irecv(&got, 1, MPI_INT, 0, 5, other, &requests[1]);
	MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	MPI_Ibarrier(one, &requests[0]);
	MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
	MPI_Finalize();
	printf("%d\n", got);
	return 0;
}
"""


@test
def communicator_freed_meanwhile():
    "a communicator that another thread frees while an operation starts is not asked for anything afterwards"
    need("mpicc")
    library = build("mpicc", FREES, "-shared", "-fPIC", "-ldl")
    equal(same_under_adapter([build("mpicc", GIVES, "-Wl,--no-as-needed", library)]), "42\n", "output")


NO_TYPE = r"""
#include <mpi.h>
#include <stdio.h>
int main(void)
{
	MPI_Request request;
	MPI_Comm own;
	int got = 0;

	if (MPI_Init(NULL, NULL))
		return 1;
	MPI_Comm_dup(MPI_COMM_WORLD, &own);
	MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
	printf("%d\n", MPI_Irecv(&got, 1, MPI_DATATYPE_NULL, 0, 5, own, &request) != MPI_SUCCESS);
	MPI_Comm_free(&own);
	MPI_Finalize();
	return 0;
}
"""


@test
def error_without_a_type():
    "a receive without a type returns its error, if its communicator returns errors"
    need("mpicc")
    equal(same_under_adapter([build("mpicc", NO_TYPE)]), "1\n", "output")


run_all()
