/*
 * swift_name.c: the paths are those that Swift's own demangler prints before the parameters. Names of
 * other kinds, and damaged ones, are not changed.
 */
#include "unit/test.h"

#include "base/bytes.h"
#include "code/swift_name.h"

static const struct {
	const char *mangled;
	const char *path; /* NULL: not demangled */
} names[] = {
	{ "$s4shop7PricingC4burnyS2iF", "shop.Pricing.burn" },
	{ "_$s4shop7PricingC4burnyS2iF", "shop.Pricing.burn" },
	{ "$s4shop7PricingC5totalSivg", "shop.Pricing.total.getter" },
	{ "$s4shop7PricingC5totalSivgZ", "shop.Pricing.total.getter" },
	{ "$sSS5countSivg", "Swift.String.count.getter" },
	{ "$ss5print_9separator10terminatoryypd_S2StF", "Swift.print" },
	{ "$S3foo3barC3bas3zimyAaEC_tF", "foo.bar.bas" },
	{ "$s4test3StrCACycfC", "test.Str.__allocating_init" },
	{ "$s4test3StrCfD", "test.Str.__deallocating_deinit" },
	{ "$s4Test5ProtoP8IteratorV10collectionAEy_qd__Gqd___tcfc", "Test.Proto.Iterator.init" },
	{ "$S8mangling14varargsVsArray3arr1nySid_SStF", "mangling.varargsVsArray" },
	{ "$S8mangling14varargsVsArray3arr1nySaySiG_SStF", "mangling.varargsVsArray" },
	{ "$S4test6testitySiyt_tF", "test.testit" },
	{ "$s7example1fyyYaKF", "example.f" },
	{ "$s5async1hyyS2iYbXEF", "async.h" },
	{ "$s1t10globalFuncyyAA7MyActorCYiF", "t.globalFunc" },
	{ "$s4test10returnsOptyxycSgxyScMYccSglF", "test.returnsOpt" },
	{ "$s4main20receiveInstantiationyySo34__CxxTemplateInst12MagicWrapperIiEVzF",
		"main.receiveInstantiation" },
	{ "$s4main19returnInstantiationSo34__CxxTemplateInst12MagicWrapperIiEVyF",
		"main.returnInstantiation" },
	{ "$s4main3fooyySiFyyXEfU_", "closure #1 in main.foo" },
	{ "$s4main3fooyySiFyyXEfU0_yycfU_", "closure #1 in closure #2 in main.foo" },
	{ "$s4main3fooyySiFyyXEfU_TA", "partial apply forwarder for closure #1 in main.foo" },
	{ "$s5Actor02MyA0C17testAsyncFunctionyyYaKF", "Actor.MyActor.testAsyncFunction" },
	{ "$s5Actor02MyA0C17testAsyncFunctionyyYaKFTY0_",
		"(1) suspend resume partial function for Actor.MyActor.testAsyncFunction" },
	{ "$s5Actor02MyA0C17testAsyncFunctionyyYaKFTQ1_",
		"(2) await resume partial function for Actor.MyActor.testAsyncFunction" },
	{ "$S3abc6testityySiFTm", "merged abc.testit" },
	{ "$s4main7private33_556644B740B1B333FECB81E55A7CCE98LLC4workyyF", "main.private.work" },
	/* data, metadata, thunks, specializations, extensions, local functions, macros */
	{ "$sSiSHsWP", NULL },
	{ "$s4main1gyySiXCvp", NULL },
	{ "$s4main6testityyYaFTu", NULL },
	{ "$s4Test6testityyxlFAA8MystructV_TB5", NULL },
	{ "_$S4main5inneryys5Int32Vz_yADctF25closure_with_box_argumentxz_Bi32__lXXTf1nc_n", NULL },
	{ "_$Ss10DictionaryV3t17E6Index2V1loiySbAEyxq__G_AGtFZ", NULL },
	{ "$S3nix8MystructV1xACyxGx_tcfc7MyaliasL_ayx__GD", NULL },
	{ "$s4test3FooVAAyyAA1P_pF", NULL },
	{ "$s14swift_ide_test10myFilenamexfm", NULL },
	{ "$s13test_mangling3fooyS2f_S2ftFTJfUSSpSr", NULL },
	{ "$s4main5outeryyF5innerL_yyF", NULL },
	/* damaged */
	{ "$S3BBBBf0602365061_", NULL },
	{ "$S3BBBBv0602365061_", NULL },
	{ "$SSD1BySSSBsg_G", NULL },
	{ "$syQo", NULL },
	{ "$s__TJO", NULL },
	{ "$s0059xxxxxxxxxxxxxxx_ttttttttBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBee", NULL },
	{ "$s4shop7PricingC4burnyS2i", NULL },
	{ "$s4shop7PricingC4burnyS99999iF", NULL },
	{ "$s4shop0ZC4burnyyF", NULL },
	{ "$s99shopF", NULL },
	{ "$s", NULL },
	{ "$", NULL },
	{ "_", NULL },
	{ "$d.12", NULL },
	{ "malloc", NULL },
};

static void test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct bytes out = { 0 };
		bool done = swift_name(names[i].mangled, strlen(names[i].mangled), &out);
		assert_string_equal(bytes_z(&out), names[i].path ? names[i].path : "");
		assert_int_equal(done, names[i].path != NULL);
		bytes_done(&out);
	}
}

/* No part of a valid name, and no name with one other byte, is read past its end. */
static void test_damage(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t len = strlen(names[i].mangled);
		for (size_t at = 0; at < len; at++) {
			struct bytes out = { 0 };
			char *copy = malloc(len);
			assert_non_null(copy);
			memcpy(copy, names[i].mangled, len);
			(void)swift_name(copy + len - at, at, &out); /* its end */
			copy[at] ^= 1;
			(void)swift_name(copy, len, &out);
			free(copy);
			copy = malloc(at + 1);
			assert_non_null(copy);
			memcpy(copy, names[i].mangled, at);
			(void)swift_name(copy, at, &out);
			free(copy);
			bytes_done(&out);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests_name("swift_name", tests, NULL, NULL);
}
