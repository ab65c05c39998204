/*
 * A function that calls another one, as a file to map. ROOM bytes of its frame are all that distinguishes two such
 * files: the return address in it is the same, and the unwind tables say where the caller is.
 */
#ifdef __x86_64__
__asm__(".text\n"
	".globl step\n"
	".type step, @function\n"
	"step:\n"
	"	.cfi_startproc\n"
	"	subq $" ROOM ", %rsp\n"
	"	.cfi_adjust_cfa_offset " ROOM "\n"
	"	call *%rdi\n"
	"	addq $" ROOM ", %rsp\n"
	"	.cfi_adjust_cfa_offset -" ROOM "\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size step, . - step\n");
#endif
int block_step_room;
