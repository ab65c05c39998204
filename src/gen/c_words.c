/* See c_words.h. */
#include "gen/c_words.h"

#include <string.h>

/* Keywords of C and C++, and macros of their headers. */
static const char reserved[] =
	" alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t "
	"char32_t class compl concept const consteval constexpr constinit const_cast continue co_await "
	"co_return co_yield decltype default delete do double dynamic_cast else enum explicit export "
	"extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq "
	"nullptr operator or or_eq private protected public register reinterpret_cast requires restrict "
	"return short signed sizeof static static_assert static_cast struct switch template this "
	"thread_local throw true try typedef typeid typename typeof union unsigned using virtual void "
	"volatile wchar_t while xor xor_eq _Bool _Complex _Imaginary NULL EOF errno stdin stdout stderr "
	"linux unix i386 assert offsetof memcpy memset strlen malloc free close writev open ioctl "
	"int8_t uint8_t int16_t uint16_t int32_t uint32_t int64_t uint64_t uintptr_t size_t "
	"GUID ULONG EventWrite EventDataDescCreate EVENT_DATA_DESCRIPTOR ";

/* Only those that a provider's name can be: lower-case letters and digits. */
static const char headers[] =
	" aio alloca argp argz byteswap complex cpio cpuid crypt ctype dirent dlfcn elf endian envz err "
	"error evntprov execinfo fcntl features fenv fmtmsg fnmatch fstab fts ftw getopt glob grp iconv "
	"ifaddrs immintrin inttypes iso646 langinfo lastlog libgen libintl limits link locale main math "
	"mcheck memory mntent monetary mqueue ndbm netdb nltypes nss obstack paths poll pthread pty pwd "
	"regex regexp resolv sched sdt search semaphore setjmp sgtty shadow signal spawn spoor "
	"stdalign stdarg stdatomic stdbool stdc stdckdint stddef stdint stdio stdlib stdnoreturn string "
	"strings stropts sysexits syscall syslog tar termio termios tgmath threads time trace uchar "
	"ucontext ulimit unistd unwind utime utmp utmpx values wait wchar wctype windows wordexp x86intrin "
	"xlocale zconf zlib zstd ";

/* An object of one of these names would take the function's place in the whole program. */
static const char functions[] =
	" abort abs accept access acos alarm asin atan atexit atof atoi atol bind brk bsearch cabs calloc "
	"ceil chdir chmod chown clearenv clock clone connect cos creat daemon div dup dup2 environ erf "
	"execve execvp exit exp exp2 fabs fchmod fclose fdopen feof ferror fflush fgetc fgets fileno flock "
	"floor fmod fopen fork fprintf fputc fputs fread fscanf fseek fstat fsync ftell ftruncate fwrite "
	"gamma getc getchar getcwd getenv getpid gets gettid getuid gmtime hypot index isatty j0 j1 jn kill "
	"labs ldexp listen localtime log log10 log2 logb longjmp lseek lstat madvise memchr memcmp memmove "
	"mkdir mktime mlock mmap modf mount mprotect munmap nan nanosleep nice openat pause perror pipe "
	"pipe2 popen pow prctl pread printf psignal putc putchar putenv puts pwrite qsort raise rand random "
	"read readdir readlink readv realloc recv remainder remove rename rewind rindex rint rmdir round "
	"sbrk scanf select send sendto setenv setsid shutdown sigaction sin sinh sleep snprintf socket "
	"sprintf sqrt srand sscanf stat strcat strchr strcmp strcpy strdup strncmp strstr strtol symlink "
	"sync sysconf sysinfo system tan tanh times tolower toupper trunc truncate ttyname umask umount "
	"uname ungetc unlink usleep vfork wait4 waitpid write y0 y1 yn ";

static bool has(const char *words, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = words; (at = strstr(at, name)); at++)
		if (at[-1] == ' ' && at[len] == ' ')
			return true;
	return false;
}

bool c_word_is_reserved(const char *name)
{
	return name[0] && has(reserved, name);
}

bool c_word_is_system(const char *name)
{
	return name[0] && (has(reserved, name) || has(headers, name) || has(functions, name));
}
