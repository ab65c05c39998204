/* The codes of Spoor's Notice event (notices.def). Constant data. */
#ifndef SPOOR_TRACE_NOTICE_CODES_H
#define SPOOR_TRACE_NOTICE_CODES_H

enum notice_code {
#define NOTICE(notice, code) notice,
#include "trace/notices.def"
#undef NOTICE
	NOTICE_CODES
};

/* "paused" */
const char *notice_code_word(enum notice_code code);

#endif
