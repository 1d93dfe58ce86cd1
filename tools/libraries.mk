# SPDX-License-Identifier: MIT
# What this machine has of compilers and libraries, each asked for once:
#   HAVE_X          1, or nothing
#   X_CFLAGS X_LIBS what to compile and link with; nothing where it is missing
# The build.mk of the folder that needs one says what is left out without it.
#
# A package can be there in part: mpicc without mpi.h, a library without its headers. So tools/works
# compiles and links a program for each part, all of them at once.

PKG_CONFIG ?= pkg-config
has = $(shell $(PKG_CONFIG) --exists '$(1)' 2>/dev/null && echo 1)
cflags = $(shell $(PKG_CONFIG) --cflags $(1) 2>/dev/null)
libs = $(shell $(PKG_CONFIG) --libs $(1) 2>/dev/null)
# $(call command,NAME): its path, or nothing
command = $(shell command -v $(1) 2>/dev/null)
# $(call ask,NAME,HEADER,FUNCTION or -,FLAGS): a line for tools/works
ask = $(eval QUESTIONS += '$(1) $(2) $(3) $(4)')
# $(call works,NAME): 1 if that program compiled
works = $(if $(filter $(1),$(ANSWERS)),1)
QUESTIONS :=

# codegen, which reads XML with it
XML2_CFLAGS := $(call cflags,libxml-2.0)
XML2_LIBS := $(call libs,libxml-2.0)
$(call ask,XML2,libxml/xmlschemas.h,xmlSchemaParse,$(XML2_CFLAGS) $(XML2_LIBS))

# cli, and its screen
JSON_CFLAGS := $(call cflags,json-c)
JSON_LIBS := $(call libs,json-c)
$(call ask,JSON,json-c/json.h,json_object_new_array,$(JSON_CFLAGS) $(JSON_LIBS))
$(foreach name,ncursesw ncurses,$(call ask,$(name),curses.h,initscr,$(call cflags,$(name)) $(call libs,$(name))))

# The kernel source and pem spec import
LIBBPF_VERSION := $(shell $(PKG_CONFIG) --modversion libbpf 2>/dev/null)
LIBBPF_LIBS := $(call libs,libbpf)
$(call ask,LIBBPF,bpf/libbpf.h,bpf_object__open_mem,$(call cflags,libbpf) $(LIBBPF_LIBS))
$(call ask,LIBELF,gelf.h,gelf_getehdr,$(call cflags,libelf) $(call libs,libelf))
CLANG ?= clang
HAVE_CLANG_BPF := $(shell echo 'int x;' | \
  $(CLANG) -target bpf -mcpu=v3 -x c -c -o /dev/null - 2>/dev/null && echo 1)
LLVM_STRIP := $(call command,llvm-strip)

# Names of counters. No pkg-config knows it.
$(call ask,PFM,perfmon/pfmlib_perf_event.h,pfm_initialize,-lpfm)

# Names of code
LIBDW_LIBS := $(call libs,libdw)
$(call ask,LIBDW,elfutils/libdwfl.h,dwfl_begin,$(call cflags,libdw) $(LIBDW_LIBS))

# Operands of instructions that timer samples find
CAPSTONE_LIBS := $(call libs,capstone)
$(call ask,CAPSTONE,capstone/capstone.h,cs_open,$(call cflags,capstone) $(CAPSTONE_LIBS))

# The database of agents, on servers too
PQ_CFLAGS := $(call cflags,libpq)
PQ_LIBS := $(call libs,libpq)
$(call ask,PQ,libpq-fe.h,PQconnectStart,$(PQ_CFLAGS) $(PQ_LIBS))

# Settings in JSON and YAML files
YAML_CFLAGS := $(call cflags,yaml-0.1)
YAML_LIBS := $(call libs,yaml-0.1)
$(call ask,YAML,yaml.h,yaml_parser_parse,$(YAML_CFLAGS) $(YAML_LIBS))

# The models of pem explore. XGBoost has no pkg-config file.
BLAS_CFLAGS := $(call cflags,openblas)
BLAS_LIBS := $(call libs,openblas)
NLOPT_LIBS := $(call libs,nlopt)
$(call ask,BLAS,cblas.h,openblas_set_num_threads,$(BLAS_CFLAGS) $(BLAS_LIBS))
$(call ask,LAPACKE,lapacke.h,LAPACKE_dpotrf,$(BLAS_CFLAGS) -llapacke $(BLAS_LIBS))
$(call ask,NLOPT,nlopt.h,nlopt_create,$(call cflags,nlopt) $(NLOPT_LIBS))
$(call ask,XGBOOST,xgboost/c_api.h,XGBoosterCreate,-lxgboost)

# Adapters; SQLite also for agents
SQLITE_CFLAGS := $(call cflags,sqlite3)
SQLITE_LIBS := $(call libs,sqlite3)
$(call ask,SQLITE,sqlite3.h,sqlite3_open_v2,$(SQLITE_CFLAGS) $(SQLITE_LIBS))
# The adapter finds the functions of MPI in the program, and needs the header alone.
MPI_CFLAGS := $(patsubst -I%,-isystem %,$(shell mpicc --showme:compile 2>/dev/null || \
  mpicc -compile_info 2>/dev/null | tr ' ' '\n' | grep '^-I'))
$(if $(MPI_CFLAGS),$(call ask,MPI,mpi.h,-,$(MPI_CFLAGS)))
OMPT_HEADER := $(firstword $(wildcard \
  $(addsuffix /include/omp-tools.h,$(shell clang -print-resource-dir 2>/dev/null)) \
  /usr/lib/llvm-*/lib/clang/*/include/omp-tools.h))
$(if $(OMPT_HEADER),$(call ask,OMPT,omp-tools.h,-,-idirafter $(dir $(OMPT_HEADER))))

# The tracer of GStreamer, by hooks of 1.22
GSTREAMER_CFLAGS := $(patsubst -I%,-isystem %,$(call cflags,gstreamer-1.0))
GSTREAMER_LIBS := $(call libs,gstreamer-1.0)
$(call ask,GSTREAMER,gst/gst.h,gst_tracer_register,$(GSTREAMER_CFLAGS) $(GSTREAMER_LIBS))

# Exporters
PROTOC_C := $(shell protoc-c --version >/dev/null 2>&1 && echo 1)
PROTOBUF_CFLAGS := $(call cflags,libprotobuf-c)
PROTOBUF_LIBS := $(call libs,libprotobuf-c)
$(call ask,PROTOBUF,protobuf-c/protobuf-c.h,protobuf_c_message_pack,$(PROTOBUF_CFLAGS) $(PROTOBUF_LIBS))

# The tool for Valgrind: its headers and libraries, and the folder of its own tools. They are of this
# machine, so a compiler for another one can't use them.
VALGRIND_INCLUDE := $(shell $(PKG_CONFIG) --variable=includedir valgrind 2>/dev/null)
VALGRIND_ARCHIVES := $(shell $(PKG_CONFIG) --variable=libdir valgrind 2>/dev/null)/valgrind
VALGRIND_ADDRESS := $(shell $(PKG_CONFIG) --variable=valt_load_address valgrind 2>/dev/null)
VALGRIND_FOLDER := $(patsubst %/default.supp,%,$(firstword $(wildcard $(addsuffix /default.supp, \
  /usr/libexec/valgrind /usr/lib/valgrind $(VALGRIND_ARCHIVES)))))
$(call ask,VALGRIND,valgrind/pub_tool_basics.h,-,-isystem $(VALGRIND_INCLUDE) -DVGA_amd64=1 -DVGO_linux=1 \
  -DVGP_amd64_linux=1 -DVGPV_amd64_linux_vanilla=1)

# Tests and benchmarks
LTTNG_VERSION := $(or $(shell $(PKG_CONFIG) --modversion lttng-ust 2>/dev/null),none)
LTTNG_LIBS := $(call libs,lttng-ust)
$(call ask,CMOCKA,cmocka.h,_cmocka_run_group_tests,$(call cflags,cmocka) $(call libs,cmocka))
$(call ask,LTTNG,lttng/ust-error.h,lttng_ust_strerror,$(call cflags,lttng-ust) $(LTTNG_LIBS))

# Other languages, for examples and tests of what is made for them
MACHINE := $(shell $(CC) -dumpmachine)
# What distributions call the folder of this machine's libraries below lib.
MULTIARCH := $(or $(shell $(CC) -print-multiarch 2>/dev/null),$(MACHINE))
CXXFLAGS ?= -O2 -g
ifeq ($(origin FC),default)
FC := gfortran
endif
FFLAGS ?= -O2 -g
RUSTC ?= rustc
RUSTFLAGS ?= -O
JDK := $(patsubst %/bin/javac,%,$(realpath $(call command,javac)))
JDK_CFLAGS := $(if $(JDK),-isystem $(JDK)/include -isystem $(JDK)/include/linux)
$(if $(JDK),$(call ask,JAVA,jni.h,-,$(JDK_CFLAGS)) $(call ask,JVMTI,jvmti.h,-,$(JDK_CFLAGS)))

ANSWERS := $(shell printf '%s\n' $(QUESTIONS) | \
  CXX='$(CXX)' FC='$(FC)' RUSTC='$(RUSTC)' tools/works $(CC) $(CPPFLAGS) $(LDFLAGS))
HAVE_XML2 := $(call works,XML2)
HAVE_JSON := $(call works,JSON)
SCREEN_NAME := $(firstword $(foreach name,ncursesw ncurses,$(if $(call works,$(name)),$(name))))
SCREEN_CFLAGS := $(if $(SCREEN_NAME),$(call cflags,$(SCREEN_NAME)))
SCREEN_LIBS := $(if $(SCREEN_NAME),$(call libs,$(SCREEN_NAME)))
HAVE_LIBBPF := $(and $(call works,LIBBPF),$(call has,libbpf >= 1.0))
HAVE_KERNEL_SOURCE := $(if $(HAVE_CLANG_BPF),$(HAVE_LIBBPF))
HAVE_LIBELF := $(call works,LIBELF)
HAVE_PFM := $(call works,PFM)
PFM_LIBS := $(if $(HAVE_PFM),-lpfm)
HAVE_LIBDW := $(and $(HAVE_LIBELF),$(call works,LIBDW))
HAVE_CAPSTONE := $(call works,CAPSTONE)
CAPSTONE_CFLAGS := $(if $(HAVE_CAPSTONE),-DPEM_HAS_CAPSTONE $(call cflags,capstone))
HAVE_PQ := $(call works,PQ)
HAVE_YAML := $(call works,YAML)
HAVE_SQLITE := $(call works,SQLITE)
HAVE_EXPLORE := $(and $(call works,BLAS),$(call works,LAPACKE),$(call works,NLOPT),$(call works,XGBOOST))
HAVE_MPI := $(call works,MPI)
HAVE_OMPT := $(call works,OMPT)
HAVE_GSTREAMER := $(and $(call works,GSTREAMER),$(call has,gstreamer-1.0 >= 1.22))
HAVE_PROTOBUF := $(and $(PROTOC_C),$(call works,PROTOBUF))
HAVE_VALGRIND := $(and $(filter x86_64-%,$(MACHINE)),$(VALGRIND_ADDRESS),$(VALGRIND_FOLDER),\
  $(wildcard $(VALGRIND_ARCHIVES)/libreplacemalloc_toolpreload-amd64-linux.a),$(call works,VALGRIND))
HAVE_CMOCKA := $(call works,CMOCKA)
HAVE_LTTNG := $(call works,LTTNG)
HAVE_CXX := $(call works,CXX)
HAVE_FORTRAN := $(call works,FORTRAN)
HAVE_RUST := $(call works,RUST)
HAVE_JAVA := $(call works,JAVA)
HAVE_JVMTI := $(call works,JVMTI)
# A library that does not work is not linked with.
LIBDW_LIBS := $(if $(HAVE_LIBDW),$(LIBDW_LIBS))
CAPSTONE_LIBS := $(if $(HAVE_CAPSTONE),$(CAPSTONE_LIBS))

# What was found. Objects of C depend on it: an object that was compiled without a library, or by
# other rules, is old. Compilers of other languages change none.
FOUND := $(B)/found
FOUND_NAMES := $(filter-out HAVE_CXX HAVE_FORTRAN HAVE_RUST HAVE_JAVA, \
  $(filter HAVE_% %_LIBS LIBBPF_VERSION,$(.VARIABLES)))
BUILD_FILES := $(filter-out tools/build.mk,$(sort Makefile tools/libraries.mk \
  $(wildcard $(foreach depth,* */* */*/* */*/*/*,$(depth)/build.mk))))
found_now := $(strip $(foreach name,$(sort $(FOUND_NAMES)),$(name)=$(strip $($(name)))) \
  RULES=$(firstword $(shell cat $(BUILD_FILES) | cksum)) \
  CPPFLAGS=$(CPPFLAGS) LDFLAGS=$(LDFLAGS) CFLAGS=$(CFLAGS))
# make install takes a complete build as it is, whoever builds and whoever installs: root often has
# other commands in PATH, other libraries, and no CFLAGS. It builds if a source has changed since
# then, or if the command line has flags.
CHANGED_SINCE := $(if $(wildcard $(B)/complete),$(shell find Makefile tools/*.mk agents cli codegen \
  examples kmod/bpf libpem shared spec viz-export $(wildcard $(FOUND)) -type f ! -name '*.pyc' \
  -newer $(B)/complete -print -quit))
AS_BUILT := $(and $(if $(filter-out install install-lab,$(or $(MAKECMDGOALS),all)),,1),\
  $(wildcard $(B)/complete),$(if $(CHANGED_SINCE),,1),\
  $(if $(filter command,$(foreach flags,CPPFLAGS CFLAGS LDFLAGS,$(origin $(flags)))),,1))
found_same := $(if $(subst $(strip $(file <$(FOUND))),,$(found_now)),,1)
ifneq ($(AS_BUILT)$(found_same),)
# Make reads a folder once, and may have read $(B) before the file was there: a rule makes it known.
$(FOUND): ;
else
.PHONY: found-otherwise
$(FOUND): found-otherwise
	@mkdir -p $(@D) && printf '%s\n' '$(subst ','\'',$(found_now))' >$@
endif
