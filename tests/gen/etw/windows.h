/* What the events of ETW that spoor gen writes need of Windows, to run them on Linux: the types have the sizes of Windows' own. */
#ifndef TESTS_GEN_ETW_WINDOWS_H
#define TESTS_GEN_ETW_WINDOWS_H

#include <stdint.h>

#define NTAPI

typedef uint8_t UCHAR;
typedef uint16_t USHORT;
typedef uint32_t ULONG;
typedef uint64_t ULONGLONG;
typedef void *PVOID;
typedef struct {
	uint32_t Data1;
	uint16_t Data2, Data3;
	uint8_t Data4[8];
} GUID;
typedef const GUID *LPCGUID;

#endif
