/*
 * C++ and Rust names made readable.
 *
 * "_ZN4llvm5Value7getTypeEv" -> "llvm::Value::getType()", "_RNvC5crate4main" -> "crate::main"; Rust's hash is dropped. What the compiler
 * cut off a function is kept: "foo.isra.0" stays, "_Z3foov.cold" -> "foo() [clone .cold]".
 */
#ifndef SPOOR_CODE_DEMANGLE_H
#define SPOOR_CODE_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

struct bytes;

#define DEMANGLE_INPUT_MAX 4096u    /* longer names stay as they are */
#define DEMANGLE_OUTPUT_MAX 8192u   /* longer results are cut, with "..." */

/* Appends the readable name and returns true; false (and nothing appended) when it is not a mangled name. */
bool demangle(const char *name, size_t len, struct bytes *out);

#endif
