# SPDX-License-Identifier: MIT
# pem-exercise: a program that libpem runs to measure what observing costs programs. Needs the C
# library and nothing else.

EXERCISE_OBJ := $(call objects,$(wildcard libpem/exercise/*.c) libpem/cost/steps.c)
ALL += $(B)/lib/pem/pem-exercise

$(B)/lib/pem/pem-exercise: $(EXERCISE_OBJ)
	$(call say,LINK,$@)
	$(Q)$(LINK) $^
