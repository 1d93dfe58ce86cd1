# SPDX-License-Identifier: MIT
# libpem-mpi.so: preloaded into the processes of MPI programs. Compiled for the MPI of mpicc.

ifneq ($(HAVE_MPI),)
MPI_SRC := $(sort $(wildcard libpem/mpi/*.c))
$(call objects,$(MPI_SRC)): private ALL_CFLAGS += -fno-plt $(MPI_CFLAGS)
ALL += $(B)/lib/libpem-mpi.so

$(B)/lib/libpem-mpi.so: $(call objects,$(MPI_SRC) $(ELF_SRC)) $(B)/lib/libpem.so.1 \
  libpem/mpi/libpem-mpi.map
	$(call say,LINK,$@)
	$(Q)$(LINK_ADAPTER) $(LINKED) -ldl -lpthread
else
  $(info not built: libpem-mpi.so, which shows MPI programs (mpicc or its mpi.h is missing: libopenmpi-dev))
endif
