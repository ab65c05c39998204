/*
 * See usdt_image.h. An image is a memfd, or a file spoor-usdt-PID-NUMBER.so in the folder that
 * SPOOR_USDT_FOLDER names, for tools that need a path (perf). Its file offsets are also its addresses, so a tool that
 * needs the one and reads the other is right in any case:
 *
 *   0         ELF header, program headers, section headers, names, build id
 *   page      .text: one stub of STUB_BYTES for each probe, mapped executable
 *   then      .probes: one 16-bit semaphore for each probe, mapped private and writable
 *   then      .note.stapsdt: one note for each probe, not mapped; grows with each probe
 *
 * A note is written before the size of its section is changed, so a tool that reads the file
 * meanwhile finds whole notes. The memfd stays open, because tools open it by /proc/PID/fd. A file
 * is removed when the logger is closed; the process still has it mapped.
 */
#include "lib/logger/usdt_image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/platform/platform.h"

#define PROBES_MAX  2048u
#define STUB_BYTES  8u
#define NOTE_OWNER  "stapsdt"
#define NOTE_TYPE   3u
#define HEADER_ROOM 2048u

enum usdt_elf_section {
	SECTION_NONE,
	SECTION_BUILD_ID,
	SECTION_BASE,
	SECTION_TEXT,
	SECTION_PROBES,
	SECTION_NOTES,
	SECTION_NAMES,
	SECTION_COUNT,
};

#define BUILD_ID_BYTES 20u

struct headers {
	Elf64_Ehdr elf;
	Elf64_Phdr programs[3];
	Elf64_Shdr sections[SECTION_COUNT];
	struct {
		Elf64_Nhdr header;
		char owner[4];
		uint8_t id[BUILD_ID_BYTES];
	} build_id;
	uint8_t base
		[8]; /* its address is in each note: tools compare it with that of the section */
	char names[96];
};
_Static_assert(sizeof(struct headers) <= HEADER_ROOM, "in the first page");

struct usdt_elf {
	int fd;
	uint32_t probe_count;
	uint64_t text_at;
	uint64_t probes_at;
	uint64_t notes_at;
	uint64_t notes_size;
	uint8_t *text;
	uint16_t *semaphores;
};

#define IMAGES_MAX 512u /* REGISTRY_EVENTS_MAX events have so many */

static struct usdt_elf image = { .fd = -1 }; /* the newest */
static unsigned file_count;                  /* files that were made */
static int fds[IMAGES_MAX];
static unsigned fd_count;

#if defined(__x86_64__)
#define MACHINE EM_X86_64
/*
 * nop; ret. Five bytes of nop, because the kernel (6.18) replaces such a probe by a call, and then
 * executing it causes no trap.
 */
static const uint8_t stub[STUB_BYTES] = { 0x0f, 0x1f, 0x44, 0x00, 0x00, 0xc3, 0xcc, 0xcc };
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
static const uint8_t stub[STUB_BYTES] = { 0x1f, 0x20, 0x03, 0xd5, 0xc0, 0x03, 0x5f, 0xd6 };
#else
#define MACHINE EM_NONE
static const uint8_t stub[STUB_BYTES];
#endif

static int usdt_images_supported(void)
{
	return MACHINE == EM_NONE || sizeof(void *) != 8 ? -ENOTSUP : 0;
}

int usdt_operand(char *out, size_t room, int size, unsigned index)
{
#if defined(__aarch64__)
	return snprintf(out, room, "%d@[x0, %u]", size, index * 8);
#else
	return snprintf(out, room, "%d@%u(%%rdi)", size, index * 8);
#endif
}

static int write_all(int fd, const void *data, size_t size, uint64_t offset)
{
	const uint8_t *at = data;

	while (size) {
		ssize_t n = pwrite(fd, at, size, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		at += n;
		size -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

static void section_set(struct headers *headers, enum usdt_elf_section which, const char *name,
	uint32_t type, uint64_t flags, uint64_t at, uint64_t size, uint64_t align)
{
	size_t used = 1;

	/* Names follow one another; the first byte is the empty name. */
	while (headers->names[used])
		used += strlen(headers->names + used) + 1;
	memcpy(headers->names + used, name, strlen(name) + 1);
	headers->sections[which] = (Elf64_Shdr){
		.sh_name = (uint32_t)used,
		.sh_type = type,
		.sh_flags = flags,
		.sh_addr = flags & SHF_ALLOC ? at : 0,
		.sh_offset = at,
		.sh_size = size,
		.sh_addralign = align,
	};
}

static void headers_make(struct headers *headers, const struct usdt_elf *made)
{
	uint64_t text_size = PROBES_MAX * STUB_BYTES;
	uint64_t probes_size = PROBES_MAX * sizeof(uint16_t);

	memset(headers, 0, sizeof(*headers));
	memcpy(headers->elf.e_ident, ELFMAG, SELFMAG);
	headers->elf.e_ident[EI_CLASS] = ELFCLASS64;
	headers->elf.e_ident[EI_DATA] = ELFDATA2LSB;
	headers->elf.e_ident[EI_VERSION] = EV_CURRENT;
	headers->elf.e_type = ET_DYN;
	headers->elf.e_machine = MACHINE;
	headers->elf.e_version = EV_CURRENT;
	headers->elf.e_phoff = offsetof(struct headers, programs);
	headers->elf.e_shoff = offsetof(struct headers, sections);
	headers->elf.e_ehsize = sizeof(Elf64_Ehdr);
	headers->elf.e_phentsize = sizeof(Elf64_Phdr);
	headers->elf.e_phnum = 3;
	headers->elf.e_shentsize = sizeof(Elf64_Shdr);
	headers->elf.e_shnum = SECTION_COUNT;
	headers->elf.e_shstrndx = SECTION_NAMES;
	headers->programs[0] = (Elf64_Phdr){ .p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_filesz = made->text_at + text_size,
		.p_memsz = made->text_at + text_size,
		.p_align = platform_page_size() };
	headers->programs[1] = (Elf64_Phdr){ .p_type = PT_LOAD,
		.p_flags = PF_R | PF_W,
		.p_offset = made->probes_at,
		.p_vaddr = made->probes_at,
		.p_paddr = made->probes_at,
		.p_filesz = probes_size,
		.p_memsz = probes_size,
		.p_align = platform_page_size() };
	headers->programs[2] = (Elf64_Phdr){ .p_type = PT_NOTE,
		.p_flags = PF_R,
		.p_offset = offsetof(struct headers, build_id),
		.p_vaddr = offsetof(struct headers, build_id),
		.p_paddr = offsetof(struct headers, build_id),
		.p_filesz = sizeof(headers->build_id),
		.p_memsz = sizeof(headers->build_id),
		.p_align = 4 };
	headers->build_id.header = (Elf64_Nhdr){ 4, BUILD_ID_BYTES, NT_GNU_BUILD_ID };
	memcpy(headers->build_id.owner, "GNU", 4);
	platform_random(headers->build_id.id, BUILD_ID_BYTES);
	section_set(headers, SECTION_BUILD_ID, ".note.gnu.build-id", SHT_NOTE, SHF_ALLOC,
		offsetof(struct headers, build_id), sizeof(headers->build_id), 4);
	section_set(headers, SECTION_BASE, ".stapsdt.base", SHT_PROGBITS, SHF_ALLOC,
		offsetof(struct headers, base), 1, 1);
	section_set(headers, SECTION_TEXT, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
		made->text_at, text_size, 16);
	section_set(headers, SECTION_PROBES, ".probes", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE,
		made->probes_at, probes_size, 2);
	section_set(headers, SECTION_NOTES, ".note.stapsdt", SHT_NOTE, 0, made->notes_at, 0, 4);
	section_set(headers, SECTION_NAMES, ".shstrtab", SHT_STRTAB, 0,
		offsetof(struct headers, names), sizeof(headers->names), 1);
}

static uint64_t pages(uint64_t size)
{
	uint64_t page = platform_page_size();

	return (size + page - 1) / page * page;
}

static int image_fill(struct usdt_elf *made)
{
	struct headers headers;
	uint8_t stubs[PROBES_MAX * STUB_BYTES];
	int r;

	for (size_t i = 0; i < PROBES_MAX; i++)
		memcpy(stubs + i * STUB_BYTES, stub, STUB_BYTES);
	headers_make(&headers, made);
	r = write_all(made->fd, &headers, sizeof(headers), 0);
	if (r == 0)
		r = write_all(made->fd, stubs, sizeof(stubs), made->text_at);
	if (r == 0 && ftruncate(made->fd, (off_t)made->notes_at) < 0)
		r = -errno;
	return r;
}

/* The path of a file; false: images have none. */
static bool file_path(char *out, size_t room, unsigned number)
{
	const char *folder = platform_is_secure() ? NULL : getenv("SPOOR_USDT_FOLDER");
	int n = folder && *folder ? snprintf(out, room, "%s/spoor-usdt-%llu-%u.so", folder,
					    (unsigned long long)platform_process_id(), number)
				  : -1;

	return n > 0 && (size_t)n < room;
}

static int file_make(void)
{
	char path[4096];

	if (!file_path(path, sizeof(path), file_count + 1))
		return platform_memory_file("spoor-usdt");
	/* One of an earlier process with this id. */
	(void)unlink(path);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	file_count++;
	return fd;
}

static int image_make(void)
{
	struct usdt_elf made = { .fd = file_make() };

	if (made.fd < 0)
		return made.fd;
	if (fd_count == IMAGES_MAX) {
		(void)close(made.fd);
		return -ENOSPC;
	}
	made.text_at = pages(HEADER_ROOM);
	made.probes_at = pages(made.text_at + PROBES_MAX * STUB_BYTES);
	made.notes_at = pages(made.probes_at + PROBES_MAX * sizeof(uint16_t));
	int r = image_fill(&made);
	if (r == 0) {
		void *text = mmap(NULL, made.probes_at - made.text_at, PROT_READ | PROT_EXEC,
			MAP_PRIVATE, made.fd, (off_t)made.text_at);
		void *semaphores = text == MAP_FAILED ? MAP_FAILED
						      : mmap(NULL, made.notes_at - made.probes_at,
								PROT_READ | PROT_WRITE, MAP_PRIVATE,
								made.fd, (off_t)made.probes_at);
		if (semaphores == MAP_FAILED) {
			r = -errno;
			if (text != MAP_FAILED)
				(void)munmap(text, made.probes_at - made.text_at);
		}
		made.text = text;
		made.semaphores = semaphores;
	}
	if (r) {
		(void)close(made.fd);
		return r;
	}
	image = made;
	fds[fd_count++] = made.fd;
	return 0;
}

static uint8_t *text_put(uint8_t *at, const char *text)
{
	size_t size = strlen(text) + 1;

	memcpy(at, text, size);
	return at + size;
}

int usdt_probe_make(const char *provider, const char *name, const char *arguments,
	struct usdt_image_probe *ret_probe)
{
	uint8_t note[sizeof(Elf64_Nhdr) + 8 + 24 + 2 * (USDT_NAME_MAX + 1) + USDT_ARGUMENTS_MAX +
		     8];
	int r = usdt_images_supported();

	if (r)
		return r;
	if (strlen(provider) > USDT_NAME_MAX || strlen(name) > USDT_NAME_MAX ||
		strlen(arguments) > USDT_ARGUMENTS_MAX)
		return -EINVAL;
	if (image.fd < 0 || image.probe_count == PROBES_MAX) {
		r = image_make();
		if (r)
			return r;
	}
	uint64_t addresses[3] = { image.text_at + image.probe_count * STUB_BYTES,
		offsetof(struct headers, base),
		image.probes_at + image.probe_count * sizeof(uint16_t) };
	uint8_t *start = note + sizeof(Elf64_Nhdr);
	uint8_t *at = text_put(start, NOTE_OWNER);
	memcpy(at, addresses, sizeof(addresses));
	at = text_put(at + sizeof(addresses), provider);
	at = text_put(at, name);
	at = text_put(at, arguments);
	Elf64_Nhdr header = { sizeof(NOTE_OWNER),
		(uint32_t)((size_t)(at - start) - sizeof(NOTE_OWNER)), NOTE_TYPE };
	memcpy(note, &header, sizeof(header));
	while ((at - note) % 4)
		*at++ = 0;
	size_t size = (size_t)(at - note);
	uint64_t notes_size = image.notes_size + size;
	r = write_all(image.fd, note, size, image.notes_at + image.notes_size);
	if (r == 0)
		r = write_all(image.fd, &notes_size, sizeof(notes_size),
			offsetof(struct headers, sections) + SECTION_NOTES * sizeof(Elf64_Shdr) +
				offsetof(Elf64_Shdr, sh_size));
	if (r)
		return r;
	uint8_t *code = image.text + image.probe_count * STUB_BYTES;
	memcpy(&ret_probe->hit, &code, sizeof(code));
	ret_probe->semaphore = &image.semaphores[image.probe_count];
	image.notes_size = notes_size;
	image.probe_count++;
	return 0;
}

int usdt_images_open(void)
{
	int r = usdt_images_supported();

	return r || image.fd >= 0 ? r : image_make();
}

void usdt_images_close(void)
{
	char path[4096];

	for (; file_count > 0; file_count--)
		if (file_path(path, sizeof(path), file_count))
			(void)unlink(path);
	usdt_images_child();
}

void usdt_images_child(void)
{
	/* The mappings stay: a thread may be executing a probe. Files are the parent's. */
	for (; fd_count > 0; fd_count--)
		(void)close(fds[fd_count - 1]);
	image.fd = -1;
	file_count = 0;
}
