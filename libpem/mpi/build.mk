# SPDX-License-Identifier: MIT
# libpem-mpi.so: preloaded into the processes of MPI programs. Compiled for the MPI that mpicc stands for.

MPI_CFLAGS := $(shell mpicc --showme:compile 2>/dev/null || mpicc -compile_info 2>/dev/null | tr ' ' '\n' | grep '^-I')

ifneq ($(MPI_CFLAGS),)
MPI_SRC := $(sort $(wildcard libpem/mpi/*.c))
$(foreach s,$(MPI_SRC),$(eval CFLAGS_$(subst /,_,$(s:.c=)) := $(patsubst -I%,-isystem %,$(MPI_CFLAGS))))
ALL += $(B)/lib/libpem-mpi.so

$(B)/lib/libpem-mpi.so: $(call objects,$(MPI_SRC) $(ELF_SRC)) $(B)/lib/libpem.so.1 libpem/mpi/libpem-mpi.map
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN_FLAGS) -shared -Wl,-soname,libpem-mpi.so -Wl,-z,now -Wl,-rpath,'$$ORIGIN' \
	  -Wl,--version-script=libpem/mpi/libpem-mpi.map -o $@ $(filter-out %.map,$^) -ldl -lpthread
else
  $(info not built: libpem-mpi.so, which shows MPI programs (mpicc is missing: libopenmpi-dev))
endif
