/*
 * Writes JSON into a buffer: commas, quotes and escapes. The caller keeps begin and end paired.
 *
 *   struct json j = { .out = &bytes };
 *   json_object(&j, NULL); json_u64(&j, "samples", 12); json_end(&j);
 *
 * `name` is NULL inside an array and at the top. Foreign text becomes valid UTF-8 with control
 * characters escaped.
 */
#ifndef SPOOR_BASE_JSON_H
#define SPOOR_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes;

#define JSON_DEPTH_MAX 32

struct json {
	struct bytes *out;
	unsigned depth;
	char closer[JSON_DEPTH_MAX];
	bool not_first[JSON_DEPTH_MAX];
};

void json_object(struct json *j, const char *name);
void json_array(struct json *j, const char *name);
void json_end(struct json *j);
void json_text(struct json *j, const char *name, const char *text, size_t len);
void json_z(struct json *j, const char *name, const char *text);
void json_u64(struct json *j, const char *name, uint64_t value);
void json_i64(struct json *j, const char *name, int64_t value);
/* text_add_f64(); null when it is not finite */
void json_f64(struct json *j, const char *name, double value);
/* text_add_f32(); null when it is not finite */
void json_f32(struct json *j, const char *name, float value);
void json_bool(struct json *j, const char *name, bool value);
void json_null(struct json *j, const char *name);

#endif
