/* The layout of method events. */
#include "lib/code/method_payload.h"

const struct spoor_field method_fields[METHOD_FIELDS] = {
	{ "MethodID", SPOOR_TYPE_U64, 0, NULL },
	{ "ModuleID", SPOOR_TYPE_U64, 0, NULL },
	{ "MethodStartAddress", SPOOR_TYPE_U64, 0, NULL },
	{ "MethodSize", SPOOR_TYPE_U32, 0, NULL },
	{ "MethodToken", SPOOR_TYPE_U32, 0, NULL },
	{ "MethodFlags", SPOOR_TYPE_U32, 0, NULL },
	{ "MethodNamespace", SPOOR_TYPE_TEXT, 0, NULL },
	{ "MethodName", SPOOR_TYPE_TEXT, 0, NULL },
	{ "MethodSignature", SPOOR_TYPE_TEXT, 0, NULL },
	{ "ClrInstanceID", SPOOR_TYPE_U16, 0, NULL },
};

void method_payload(struct outbuf *out, uint64_t id, uint64_t module, uint64_t begin, uint64_t size,
	const char *name, const char *signature)
{
	payload_u64(out, id);
	payload_u64(out, module);
	payload_u64(out, begin);
	payload_u32(out, size < UINT32_MAX ? (uint32_t)size : UINT32_MAX);
	payload_u32(out, 0);
	payload_u32(out, METHOD_JITTED);
	payload_text(out, "");
	payload_text(out, name);
	payload_text(out, signature);
	payload_u16(out, 0);
}
