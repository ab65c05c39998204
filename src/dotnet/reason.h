/*
 * Why a runtime cannot be reached, as data (reasons.def): a kind with its code word, and the
 * sentence part for people. Callers compare kinds, and never the words of a sentence. All of it is
 * constant data.
 */
#ifndef SPOOR_DOTNET_REASON_H
#define SPOOR_DOTNET_REASON_H

#include <stdbool.h>

struct diag;

enum reason_kind {
	REASON_KIND_NONE,
#define REASON_KIND(kind, word, remedy) kind,
#define REASON(reason, kind, text)
#include "dotnet/reasons.def"
#undef REASON_KIND
#undef REASON
	REASON_KIND_COUNT
};

enum reason {
	REASON_NONE,
#define REASON_KIND(kind, word, remedy)
#define REASON(reason, kind, text) reason,
#include "dotnet/reasons.def"
#undef REASON_KIND
#undef REASON
	REASON_COUNT
};

/* "no-socket", for files and JSON; "" for REASON_KIND_NONE. */
const char *reason_word(enum reason_kind kind);

/* Of a negative errno, as dotnet/port.h and dotnet/exchange.h return it. */
enum reason_kind reason_kind_of_error(int error);

/* What to do: a sentence part, or "". */
const char *reason_remedy(enum reason_kind kind);

/* The sentence part of a reason; "" for REASON_NONE. */
const char *reason_text(enum reason reason);
enum reason_kind reason_kind(enum reason reason);

/* Why something failed, for programs and for people. All zero: nothing has. */
struct reason_note {
	enum reason_kind kind;
	char text[640]; /* a sentence part, as long as a diagnosis */
};

/* `text` is cut if it is too long. */
void reason_note_set(struct reason_note *note, enum reason_kind kind, const char *text);
void reason_note_set_known(struct reason_note *note, enum reason reason);

/* The peer does not answer: because a signal has stopped it, or it hangs. */
void reason_note_set_silence(struct reason_note *note, bool is_stopped);

/* The peer has answered: a reason that was its silence is dropped. */
void reason_note_end_silence(struct reason_note *note);

/* diag_set() with the sentence part of the reason, and `diag->reason`. Returns `error`. */
int reason_set(struct diag *diag, int error, enum reason reason);

#endif
