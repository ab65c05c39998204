/* The forwarders: 16 bytes of code for each slot, consecutive. */
#include "gc/proxy/proxy_forward.h"

#include <assert.h>
#include <stdint.h>

static_assert(offsetof(struct gc_forward, table) == 0, "an object begins with its table");
static_assert(offsetof(struct gc_forward, behind) == 8, "the forwarders below read it there");

/* The number is in the assembler text, where the macro cannot be used. */
static_assert(GC_FORWARD_SLOTS == 128, "the .rept below says 128");

#if defined(__x86_64__)
/* rdi is the object; r11 is free between a call and its function. */
#define FORWARD                \
	"	mov 8(%rdi), %rdi\n" \
	"	mov (%rdi), %r11\n"  \
	"	jmp *8 * .Lslot(%r11)\n"
#elif defined(__aarch64__)
/* x0 is the object; x16 is the linker's scratch register between a call and its function. */
#define FORWARD                            \
	"	ldr x0, [x0, #8]\n"              \
	"	ldr x16, [x0]\n"                 \
	"	ldr x16, [x16, #(8 * .Lslot)]\n" \
	"	br x16\n"
#else
#error "no forwarder for this processor: three instructions are to be written"
#endif

__asm__("	.text\n"
	"	.balign 16\n"
	"	.type gc_forwarders, %function\n"
	"gc_forwarders:\n"
	"	.cfi_startproc\n"
	"	.set .Lslot, 0\n"
	"	.rept 128\n"
	"	.balign 16\n" FORWARD "	.set .Lslot, .Lslot + 1\n"
	"	.endr\n"
	"	.balign 16\n"
	"	.cfi_endproc\n"
	"	.size gc_forwarders, . - gc_forwarders\n");

extern const uint8_t gc_forwarders[] __attribute__((visibility("hidden")));

void gc_forward_fill(void *table[GC_FORWARD_SLOTS])
{
	for (size_t i = 0; i < GC_FORWARD_SLOTS; i++)
		table[i] = (void *)(uintptr_t)(gc_forwarders + 16 * i);
}
