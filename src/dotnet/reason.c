/* See reason.h. */
#include "dotnet/reason.h"

#include <errno.h>

#include "base/diag.h"
#include "base/text.h"

static const struct {
	const char *word;
	const char *remedy;
} kinds[REASON_KIND_COUNT] = {
	[REASON_KIND_NONE] = { "", "" },
#define REASON_KIND(kind, word, remedy) [kind] = { word, remedy },
#define REASON(reason, kind, text)
#include "dotnet/reasons.def"
#undef REASON_KIND
#undef REASON
};

static const struct {
	enum reason_kind kind;
	const char *text;
} reasons[REASON_COUNT] = {
	[REASON_NONE] = { REASON_KIND_NONE, "" },
#define REASON_KIND(kind, word, remedy)
#define REASON(reason, kind, text) [reason] = { kind, text },
#include "dotnet/reasons.def"
#undef REASON_KIND
#undef REASON
};

const char *reason_word(enum reason_kind kind)
{
	return kinds[kind].word;
}

enum reason_kind reason_kind_of_error(int error)
{
	switch (-error) {
	case ENOENT:
		return REASON_KIND_NO_SOCKET;
	case ECONNREFUSED:
		return REASON_KIND_REFUSED;
	case EACCES:
		return REASON_KIND_PERMISSION;
	case EPERM:
		return REASON_KIND_SPOOFED;
	case ENAMETOOLONG:
		return REASON_KIND_CUT_NAME;
	case ESRCH:
		return REASON_KIND_ENDED;
	case EPROTO:
		return REASON_KIND_LIED;
	case ECANCELED:
		return REASON_KIND_GUARDED;
	default:
		return REASON_KIND_ERROR;
	}
}

const char *reason_remedy(enum reason_kind kind)
{
	return kinds[kind].remedy;
}

const char *reason_text(enum reason reason)
{
	return reasons[reason].text;
}

enum reason_kind reason_kind(enum reason reason)
{
	return reasons[reason].kind;
}

void reason_note_set(struct reason_note *note, enum reason_kind kind, const char *text)
{
	note->kind = kind;
	text_set(note->text, "%s", text);
}

void reason_note_set_known(struct reason_note *note, enum reason reason)
{
	reason_note_set(note, reason_kind(reason), reason_text(reason));
}

void reason_note_set_silence(struct reason_note *note, bool is_stopped)
{
	reason_note_set_known(note, is_stopped ? REASON_STOPPED : REASON_HUNG);
}

void reason_note_end_silence(struct reason_note *note)
{
	if (note->kind == REASON_KIND_HUNG || note->kind == REASON_KIND_STOPPED)
		reason_note_set(note, REASON_KIND_NONE, "");
}

int reason_set(struct diag *diag, int error, enum reason reason)
{
	if (!diag || diag->error)
		return error;
	diag_set(diag, error, "%s", reason_text(reason));
	diag->reason = reason;
	return error;
}
