/*
 * Parses the name of a managed method and formats it for people: "Shop.Pricing.Burn(int)".
 *
 * The file carries "RETURN [Assembly] Namespace.Type::Method(args)[Tier]" or
 * "Namespace.Type::Method(args)", with types as IL spells them ("class System.String", "int32",
 * "!!0", "Dictionary`2<...>").
 */
#ifndef SPOOR_CODE_METHOD_NAME_H
#define SPOOR_CODE_METHOD_NAME_H

#include <stdbool.h>
#include <stddef.h>

struct bytes;

struct method_name {
	/* all point into the text given; length 0 = absent */
	const char *return_type;
	size_t return_type_len;
	const char *assembly;
	size_t assembly_len;
	const char *type;
	size_t type_len; /* with namespace */
	const char *method;
	size_t method_len;
	const char *arguments;
	size_t arguments_len; /* without the parentheses */
	/* "OptimizedTier1", without the brackets */
	const char *tier;
	size_t tier_len;
};

/* False when the text is not a managed name ("::" and parentheses are its mark). */
bool method_name_parse(const char *text, size_t len, struct method_name *ret_name);

enum method_name_form {
	METHOD_NAME_SHORT, /* "Generic.List<int>.Add(T0)": of the namespace its last part */
	METHOD_NAME_LONG,  /* "System.Collections.Generic.List<int>.Add(T0)" */
	METHOD_NAME_RAW,   /* "System.Collections.Generic.List`1[System.Int32].Add(!0)" */
};

/*
 * Appends the name. Every output names methods by this function. All forms but the raw one undo what
 * the C# compiler made:
 *   async and iterator state machines   "<Get>d__3.MoveNext" -> "Get (async)"
 *   lambdas                             "<>c.<Main>b__0_1" -> "Main.lambda#1", numbered within their method
 *   local functions, generic arity marks, files of file-local types
 * Of code that all reference types share, a list of only shared arguments is left out; beside others
 * such an argument is "_".
 */
void method_name_format(const struct method_name *name, enum method_name_form form,
	struct bytes *out);

#endif
