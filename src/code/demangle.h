/*
 * Demangles names of C++, Rust, D and Swift.
 *
 *   "_ZN4llvm5Value7getTypeEv" -> "llvm::Value::getType()"    "_RNvC5crate4main" -> "crate::main", without the hash
 *   "_Z3foov.cold" -> "foo() [clone .cold]"                   "foo.isra.0" is not changed
 *   "$s4main3fooyyF" -> "main.foo": of Swift only the path
 */
#ifndef SPOOR_CODE_DEMANGLE_H
#define SPOOR_CODE_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

struct bytes;

#define DEMANGLE_INPUT_MAX  4096u /* longer names are not demangled */
#define DEMANGLE_OUTPUT_MAX 8192u /* longer results are truncated, with "..." */

/* Appends the demangled name; false, and nothing appended, if `name` is not mangled. */
bool demangle(const char *name, size_t len, struct bytes *out);

#endif
