/*
 * Large tables grow by doubling. By default glibc raises its mmap threshold when a large block is
 * freed and takes later large blocks from the heap, where they leave holes: recording a process
 * storm with compression took twice the memory in use. With a fixed threshold each large table is a
 * separate mapping, which is returned to the system when it is freed.
 */
#ifndef SPOOR_MACHINE_LARGE_BLOCKS_H
#define SPOOR_MACHINE_LARGE_BLOCKS_H

/* Before the first large table is made. */
void large_blocks_keep_apart(void);

#endif
