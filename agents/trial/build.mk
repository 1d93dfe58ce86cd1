# SPDX-License-Identifier: MIT
# Trials: runs of a program with given settings. Objects that agents are linked with.

TRIAL_OBJ := $(call objects,$(wildcard agents/trial/*.c))
$(TRIAL_OBJ): private INC_agents = $(SMALL_FRAMES) $(INC_PUBLIC) $(INC_SHARED) -Iagents -Icli -I$(B)/gen \
  $(JSON_CFLAGS)
# The schema travels inside the program. Recipe: a text as a literal of C, without its licence.
define text_literal
	@mkdir -p $(@D)
	$(Q)sed -e '/SPDX-License-Identifier/d' -e 's/[\\"]/\\&/g' -e 's/.*/"&\\n"/' $< > $@
endef
$(B)/gen/exploration_xsd.h: agents/trial/exploration.xsd
	$(text_literal)
$(B)/obj/agents/trial/document.o: $(B)/gen/exploration_xsd.h

# Documents of experiments, without trials.
TRIAL_DOCUMENT_OBJ := $(call objects,$(addprefix agents/trial/,space.c document.c parameters.c words.c) \
  $(addprefix agents/settings/,xml.c condition.c) $(addprefix cli/,options.c text.c json.c progress.c))
$(B)/fuzz/explore_document: private TEST_LIBS += $(JSON_LIBS)
$(B)/fuzz/explore_document: $(TRIAL_DOCUMENT_OBJ)
$(B)/obj/tests/fuzz/explore_document.o: private CPPFLAGS += -Iagents
