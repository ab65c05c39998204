/*
 * A managed method's name, taken apart and made readable.
 *
 * The file carries "RETURN [Assembly] Namespace.Type::Method(args)[Tier]" or "Namespace.Type::Method(args)", with types as IL spells them
 * ("class System.String", "int32", "!!0", "Dictionary`2<...>"). People read "Shop.Pricing.Burn(int)".
 */
#ifndef SPOOR_MODEL_METHOD_NAME_H
#define SPOOR_MODEL_METHOD_NAME_H

#include <stdbool.h>
#include <stddef.h>

struct bytes;

struct method_name {
	const char *return_type; size_t return_type_len;  /* all point into the text given; length 0 = absent */
	const char *assembly;    size_t assembly_len;
	const char *type;        size_t type_len;         /* with namespace */
	const char *method;      size_t method_len;
	const char *arguments;   size_t arguments_len;    /* without the parentheses */
	const char *tier;        size_t tier_len;         /* "OptimizedTier1", without the brackets */
};

/* False when the text is not a managed name ("::" and parentheses are its mark). */
bool method_name_parse(const char *text, size_t len, struct method_name *ret_name);

/*
 * Appends the readable form: "Namespace.Type.Method(int, string)". Unless `raw`, what the C# compiler made is undone: async and iterator state
 * machines ("<Get>d__3.MoveNext" -> "Get (async)"), lambdas ("<>c.<Main>b__0_1" -> "Main.lambda"), local functions, generic arity marks.
 */
void method_name_format(const struct method_name *name, bool raw, struct bytes *out);

#endif
