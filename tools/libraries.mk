# SPDX-License-Identifier: MIT
# What this machine has of compilers and libraries, each asked for once:
#   HAVE_X          1, or nothing
#   X_CFLAGS X_LIBS what to compile and link with; nothing where it is missing
# The build.mk of the folder that needs one says what is left out without it.

has = $(shell pkg-config --exists '$(1)' 2>/dev/null && echo 1)
cflags = $(shell pkg-config --cflags $(1) 2>/dev/null)
libs = $(shell pkg-config --libs $(1) 2>/dev/null)
# $(call command,NAME): its path, or nothing
command = $(shell command -v $(1) 2>/dev/null)

# codegen, which reads XML with it
HAVE_XML2 := $(call has,libxml-2.0)
XML2_CFLAGS := $(call cflags,libxml-2.0)
XML2_LIBS := $(call libs,libxml-2.0)

# cli, and its screen
HAVE_JSON := $(call has,json-c)
JSON_CFLAGS := $(call cflags,json-c)
JSON_LIBS := $(call libs,json-c)
SCREEN_NAME := $(firstword $(foreach name,ncursesw ncurses,$(if $(call has,$(name)),$(name))))
SCREEN_CFLAGS := $(if $(SCREEN_NAME),$(call cflags,$(SCREEN_NAME)))
SCREEN_LIBS := $(if $(SCREEN_NAME),$(call libs,$(SCREEN_NAME)))

# The kernel source and pem spec import
HAVE_LIBBPF := $(call has,libbpf >= 1.0)
LIBBPF_VERSION := $(shell pkg-config --modversion libbpf 2>/dev/null)
LIBBPF_LIBS := $(call libs,libbpf)
HAVE_LIBELF := $(call has,libelf)
CLANG ?= clang
HAVE_CLANG_BPF := $(shell echo 'int x;' | \
  $(CLANG) -target bpf -mcpu=v3 -x c -c -o /dev/null - 2>/dev/null && echo 1)
HAVE_KERNEL_SOURCE := $(if $(HAVE_CLANG_BPF),$(HAVE_LIBBPF))
LLVM_STRIP := $(call command,llvm-strip)

# Names of counters. No pkg-config knows it.
HAVE_PFM := $(shell echo 'int main(void) { return pfm_initialize(); }' | \
  $(CC) -include perfmon/pfmlib_perf_event.h -x c - -o /dev/null -lpfm 2>/dev/null && echo 1)
PFM_LIBS := $(if $(HAVE_PFM),-lpfm)

# Names of code
HAVE_LIBDW := $(and $(HAVE_LIBELF),$(call has,libdw))
LIBDW_LIBS := $(call libs,libdw)

# Operands of instructions that timer samples find
HAVE_CAPSTONE := $(call has,capstone)
CAPSTONE_LIBS := $(call libs,capstone)
CAPSTONE_CFLAGS := $(if $(HAVE_CAPSTONE),-DPEM_HAS_CAPSTONE $(call cflags,capstone))

# The database of agents, on servers too
HAVE_PQ := $(call has,libpq)
PQ_CFLAGS := $(call cflags,libpq)
PQ_LIBS := $(call libs,libpq)

# Adapters; SQLite also for agents
HAVE_SQLITE := $(call has,sqlite3)
SQLITE_CFLAGS := $(call cflags,sqlite3)
SQLITE_LIBS := $(call libs,sqlite3)
MPI_CFLAGS := $(patsubst -I%,-isystem %,$(shell mpicc --showme:compile 2>/dev/null || \
  mpicc -compile_info 2>/dev/null | tr ' ' '\n' | grep '^-I'))
OMPT_HEADER := $(firstword $(wildcard \
  $(addsuffix /include/omp-tools.h,$(shell clang -print-resource-dir 2>/dev/null)) \
  /usr/lib/llvm-*/lib/clang/*/include/omp-tools.h))

# Exporters
PROTOC_C := $(call command,protoc-c)
HAVE_PROTOBUF := $(if $(PROTOC_C),$(call has,libprotobuf-c))
PROTOBUF_CFLAGS := $(call cflags,libprotobuf-c)
PROTOBUF_LIBS := $(call libs,libprotobuf-c)

# The tool for Valgrind: its headers and libraries, and the folder of its own tools. They are of this
# machine, so a compiler for another one can't use them.
VALGRIND_INCLUDE := $(shell pkg-config --variable=includedir valgrind 2>/dev/null)
VALGRIND_ARCHIVES := $(shell pkg-config --variable=libdir valgrind 2>/dev/null)/valgrind
VALGRIND_ADDRESS := $(shell pkg-config --variable=valt_load_address valgrind 2>/dev/null)
VALGRIND_FOLDER := $(patsubst %/default.supp,%,$(firstword $(wildcard $(addsuffix /default.supp, \
  /usr/libexec/valgrind /usr/lib/valgrind $(VALGRIND_ARCHIVES)))))
HAVE_VALGRIND := $(and $(filter x86_64-%,$(shell $(CC) -dumpmachine)),$(VALGRIND_ADDRESS), \
  $(VALGRIND_FOLDER),$(wildcard $(addprefix $(VALGRIND_ARCHIVES)/, \
  libreplacemalloc_toolpreload-amd64-linux.a)))

# Tests and benchmarks
HAVE_CMOCKA := $(call has,cmocka)
HAVE_LTTNG := $(call has,lttng-ust)
LTTNG_VERSION := $(or $(shell pkg-config --modversion lttng-ust 2>/dev/null),none)
LTTNG_LIBS := $(call libs,lttng-ust)

# Other languages, for examples and tests of what is made for them
MACHINE := $(shell $(CC) -dumpmachine)
CXXFLAGS ?= -O2 -g
HAVE_CXX := $(call command,$(CXX))
ifeq ($(origin FC),default)
FC := gfortran
endif
FFLAGS ?= -O2 -g
HAVE_FORTRAN := $(call command,$(FC))
RUSTC ?= rustc
RUSTFLAGS ?= -O
HAVE_RUST := $(call command,$(RUSTC))
JDK := $(patsubst %/bin/javac,%,$(realpath $(call command,javac)))
HAVE_JAVA := $(and $(JDK),$(wildcard $(JDK)/include/jni.h))

# What was found. Objects depend on it: what was compiled without a library is compiled again with it.
FOUND := $(B)/found
found_now := $(foreach name,$(sort $(filter HAVE_% %_LIBS LIBBPF_VERSION,$(.VARIABLES))),$(name)=$(strip $($(name))))
# The rules, too: an object that was compiled with other flags is old.
BUILD_FILES := $(sort Makefile $(wildcard $(foreach depth,* */* */*/* */*/*/*,$(depth)/build.mk) tools/*.mk))
found_now += RULES=$(firstword $(shell cat $(BUILD_FILES) | cksum)) CFLAGS=$(CFLAGS)
ifneq ($(strip $(file <$(FOUND))),$(strip $(found_now)))
$(shell mkdir -p $(B))
$(file >$(FOUND),$(strip $(found_now)))
endif
# Make reads a folder once, and may have read $(B) before the file was there: a rule makes it known anyhow.
$(FOUND): ;
