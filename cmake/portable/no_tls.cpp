// SPDX-License-Identifier: Apache-2.0
// Stands in for the part of GnuTLS that libmicrohttpd cannot be linked without (cmake/microhttpd.cmake): two functions that it
// calls when a program starts, and a variable, which cannot be left weak in a program that may be loaded anywhere.
#include <cstddef>

extern "C" {
int gnutls_global_init() { return 0; }
void gnutls_global_deinit() {}
void* (*gnutls_malloc)(std::size_t) = nullptr;
}
