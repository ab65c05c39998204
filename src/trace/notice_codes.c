/* See notice_codes.h. */
#include "trace/notice_codes.h"

static const char *const words[NOTICE_CODES] = {
#define NOTICE(notice, code) [notice] = (code),
#include "trace/notices.def"
#undef NOTICE
};

const char *notice_code_word(enum notice_code code)
{
	return words[code];
}
