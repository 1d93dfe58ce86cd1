# SPDX-License-Identifier: MIT
# Sources are plugins: each folder here builds one $(B)/lib/pem/source-NAME.so.

# What each exports.
SOURCE_MAP := libpem/sources/source.map

include $(sort $(wildcard libpem/sources/*/build.mk))
