# SPDX-License-Identifier: MIT
# Plans, and the profiles and the model that they are made of.
$(B)/tests/page_size_plan: $(call objects,$(wildcard $(addprefix agents/page-size/,plan/*.c \
  sites/*.c profile/*.c model/*.c)))
