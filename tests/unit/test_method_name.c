/* method_name.c: converts names that .NET 10 writes into perf maps and events to readable ones. */
#include "unit/test.h"

#include "base/bytes.h"
#include "code/method_name.h"

static const struct {
	const char *text;
	const char *readable;
} names[] = {
	{ "int32 [Shop] Shop.Pricing::Burn(int32)[OptimizedTier1]", "Shop.Pricing.Burn(int)" },
	{ "Shop.Pricing::Burn(int32,class System.String)", "Shop.Pricing.Burn(int, string)" },
	{ "void [symapp] Program::<Main>$(string[])[QuickJitted]", "Program.Main(string[])" },
	{ "instance void [A] N.T::.ctor()[QuickJitted]", "N.T.ctor()" },
	{ "void [A] dynamicClass::lambda_method1(pMT: 0x7fb93ab836a8,class System.Object)[Optimized]",
		"dynamicClass.lambda_method1(?, object)" },
	{ "void [A] N.T::.cctor()[QuickJitted]", "N.T.cctor()" },
	/* Generics: arity marks, instances of types and methods, parameters of either. */
	{ "instance bool [System.Private.CoreLib] System.Collections.Generic.Dictionary`2[System.__Canon,"
	  "System.Linq.Expressions.Compiler.VariableStorageKind]::TryInsert(!0,!1,valuetype "
	  "System.Collections.Generic.InsertionBehavior)[QuickJitted]",
		"System.Collections.Generic.Dictionary<_, VariableStorageKind>.TryInsert(T0, T1, "
		"InsertionBehavior)" },
	{ "instance !0 [symapp] Box`1[System.Int32]::Get(!!0,int32&,int32[],!0[0...,0...])[InstrumentedTier]",
		"Box<int>.Get(M0, ref int, int[], T0[,])" },
	{ "class [System.Runtime]System.Collections.Generic.IEnumerable`1<!!1> [System.Linq] "
	  "System.Linq.Enumerable::Select(class [System.Runtime]System.Collections.Generic.IEnumerable`1<!!0>,"
	  "class [System.Runtime]System.Func`2<!!0,!!1>)[QuickJitted]",
		"System.Linq.Enumerable.Select(IEnumerable<M0>, Func<M0, M1>)" },
	{ "List`1::Add(class List`1<int32>)", "List.Add(List<int>)" },
	{ "System.Number::TryParse[uint8,uint16](System.ReadOnlySpan`1<!!0>,!!1&)",
		"System.Number.TryParse<byte, ushort>(ReadOnlySpan<M0>, ref M1)" },
	{ "System.Collections.Generic.List`1<System.ValueTuple`2<int32,System.__Canon>>::Add(!0)",
		"System.Collections.Generic.List<ValueTuple<int, _>>.Add(T0)" },
	{ "System.Collections.Generic.HashSet`1+AlternateLookup`1<System.__Canon,System.__Canon>::Add(!1)",
		"System.Collections.Generic.HashSet.AlternateLookup.Add(T1)" },
	{ "T::M(class System.Collections.Concurrent.ConcurrentDictionary`2/Tables<!0,!1>)",
		"T.M(ConcurrentDictionary.Tables<T0, T1>)" },
	/* Syntax of IL that does not exist in C#. */
	{ "instance !0& modreq(System.Runtime.InteropServices.InAttribute) [System.Private.CoreLib] "
	  "System.ReadOnlySpan`1[System.Char]::GetPinnableReference()[OptimizedTier1]",
		"System.ReadOnlySpan<char>.GetPinnableReference()" },
	{ "T::M(int32 modreq([System.Runtime]System.Runtime.InteropServices.InAttribute)&)",
		"T.M(ref int)" },
	/* as the events of .NET spell them: an overload for each has a separate row */
	{ "S::F(int32,int,unsigned int32,unsigned int,int*)",
		"S.F(int, nint, uint, nuint, nint*)" },
	{ "T::M(unsigned int8*,native int,float32,float64,value class System.Guid)",
		"T.M(byte*, nint, float, double, Guid)" },
	{ "T::M(System.Object[][],int64[,]&)", "T.M(object[][], ref long[,])" },
	{ "T::M(method void *(int32,int32),bool)", "T.M(delegate*, bool)" },
	/*
	 * State machines: the type that MoveNext returns distinguishes an iterator from an async
	 * method.
	 */
	{ "instance bool [symapp] P2+<Iter>d__3::MoveNext()[QuickJitted]", "P2.Iter (iterator)" },
	{ "instance void [symapp] P2+<GetAsync>d__2::MoveNext()[OptimizedTier1]",
		"P2.GetAsync (async)" },
	{ "P2/<GetAsync>d__2::MoveNext()", "P2.GetAsync (async)" },
	{ "P2/<Get>d__2::MoveNext()", "P2.Get (state machine)" },
	{ "instance void [A] N.C`1+<Run>d__4[System.__Canon]::MoveNext()[QuickJitted]",
		"N.C.Run (async)" },
	{ "instance int32 [symapp] P2+<AIter>d__4::System.Collections.Generic.IAsyncEnumerator<System.Int32>."
	  "get_Current()[QuickJitted]",
		"P2.AIter.System.Collections.Generic.IAsyncEnumerator<int>.get_Current()" },
	{ "instance void [A] Program+<>c__DisplayClass0_1+<<Main>b__1>d::MoveNext()[OptimizedTier1]",
		"Program.Main.lambda#1 (async)" },
	/* Lambdas, local functions, files. */
	{ "instance bool [symapp] Program+<>c::<Main>b__0_4(int32)[QuickJitted]",
		"Program.Main.lambda#4(int)" },
	{ "instance void [A] System.Threading.ThreadPool+<>c::<.cctor>b__48_0(object)[OptimizedTier1]",
		"System.Threading.ThreadPool.cctor.lambda#0(object)" },
	{ "void [A] Program::<Main>g__Helper|0_1(int32)[QuickJitted]", "Program.Main.Helper(int)" },
	{ "void [A] Program::<<Main>$>g__Gen|0_1[System.__Canon](!!0)[QuickJitted]",
		"Program.Main.Gen(M0)" },
	{ "instance int32 [A] Program+<>c__DisplayClass0_0::<<Main>$>b__2(int32)[QuickJitted]",
		"Program.Main.lambda#2(int)" },
	{ "bool [A] System.Text.RegularExpressions.Generated.<RegexGenerator_g>FBD7C2__Word_0+Runner::Scan()"
	  "[OptimizedTier1]",
		"System.Text.RegularExpressions.Generated.Word_0.Runner.Scan()" },
	{ "bool [A] <Gen_g>FBD7C2__Word_0+Runner::Scan()[OptimizedTier1]", "Word_0.Runner.Scan()" },
	{ "instance class System.Threading.ExecutionContext& [System.Private.CoreLib] "
	  "System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncStateMachineBox`1["
	  "System.Threading.Tasks.VoidTaskResult,Program+<>c__DisplayClass0_1+<<Main>b__1>d]::get_Context()"
	  "[InstrumentedTier]",
		"System.Runtime.CompilerServices.AsyncTaskMethodBuilder.AsyncStateMachineBox<VoidTaskResult, "
		"Program.Main.lambda#1>.get_Context()" },
	{ "instance void [A] <>f__AnonymousType0`2[System.Int32,System.__Canon]::.ctor(!0,!1)[QuickJitted]",
		"<>f__AnonymousType0<int, _>.ctor(T0, T1)" },
	{ "int32 [anonymously hosted] dynamicClass::dynAdd(int32)[Optimized]",
		"dynamicClass.dynAdd(int)" },
	{ "void [A] <Module>::Init()[Optimized]", "Init()" },
};

static void test_readable(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct method_name name;
		struct bytes out = { 0 };
		assert_true(method_name_parse(names[i].text, strlen(names[i].text), &name));
		method_name_format(&name, METHOD_NAME_LONG, &out);
		assert_string_equal(bytes_z(&out), names[i].readable);
		bytes_done(&out);
	}
}

static void test_short(void **state)
{
	static const struct {
		const char *text;
		const char *readable;
	} shorts[] = {
		{ "int32 [Shop] Shop.Pricing::Burn(int32)[OptimizedTier1]",
			"Shop.Pricing.Burn(int)" },
		{ "void [A] Program::<Main>$(string[])[QuickJitted]", "Program.Main(string[])" },
		{ "instance void [A] System.Collections.Generic.List`1[System.__Canon]::Add(!0)[OptimizedTier1]",
			"Generic.List.Add(T0)" },
		{ "System.Collections.Generic.List`1<System.ValueTuple`2<int32,System.__Canon>>::Add(class System.Text.StringBuilder)",
			"Generic.List<ValueTuple<int, _>>.Add(StringBuilder)" },
		{ "instance bool [A] Shop.Web.Orders+Lines`1[System.Int32]::Next()[QuickJitted]",
			"Web.Orders.Lines<int>.Next()" },
		{ "instance void [A] A.B.C+<>c__DisplayClass7_1::<System.IDisposable.Dispose>b__12(int32)[QuickJitted]",
			"B.C.System.IDisposable.Dispose.lambda#12(int)" },
		{ "instance void [A] A.B.C::System.IDisposable.Dispose()[QuickJitted]",
			"B.C.IDisposable.Dispose()" },
		{ "instance int32 [symapp] P2+<AIter>d__4::System.Collections.Generic.IAsyncEnumerator<System.Int32>."
		  "get_Current()[QuickJitted]",
			"P2.AIter.IAsyncEnumerator<int>.get_Current()" },
		{ "bool [A] System.Text.RegularExpressions.Generated.<RegexGenerator_g>FBD7C2__Word_0+Runner::Scan()"
		  "[OptimizedTier1]",
			"Generated.Word_0.Runner.Scan()" },
		{ "void [A] A.B.C::.cctor()[QuickJitted]", "B.C.cctor()" },
		{ "void [A] <Module>::Init()[Optimized]", "Init()" },
		/* Names that no compiler generates. */
		{ ".::.()", "...()" },
		{ "..A::B()", ".A.B()" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(shorts) / sizeof(shorts[0]); i++) {
		struct method_name name;
		struct bytes out = { 0 };
		assert_true(method_name_parse(shorts[i].text, strlen(shorts[i].text), &name));
		method_name_format(&name, METHOD_NAME_SHORT, &out);
		assert_string_equal(bytes_z(&out), shorts[i].readable);
		bytes_done(&out);
	}
}

static void assert_span(const char *text, size_t len, const char *expected)
{
	assert_int_equal(len, strlen(expected));
	assert_memory_equal(text, expected, len);
}

static void test_pieces(void **state)
{
	static const char text[] =
		"class Tuple`2<A, B> [My App] N.T+U::M<X>(int32,method void *(bool))[OptimizedTier1OSR]";
	struct method_name name;
	struct bytes out = { 0 };

	(void)state;
	assert_true(method_name_parse(text, strlen(text), &name));
	assert_span(name.return_type, name.return_type_len, "class Tuple`2<A, B>");
	assert_span(name.assembly, name.assembly_len, "My App");
	assert_span(name.type, name.type_len, "N.T+U");
	assert_span(name.method, name.method_len, "M<X>");
	assert_span(name.arguments, name.arguments_len, "int32,method void *(bool)");
	assert_span(name.tier, name.tier_len, "OptimizedTier1OSR");
	method_name_format(&name, METHOD_NAME_RAW, &out);
	assert_string_equal(bytes_z(&out), "N.T+U.M<X>(int32,method void *(bool))");
	bytes_done(&out);
}

static void test_not_managed(void **state)
{
	static const char *const others[] = { "", "malloc",
		"std::vector<int>::push_back(int const&)", "llvm::Value::getType()", "foo()",
		"::()", "T::()", "::M()", "T::M", "T::M(", "T::M)",
		"LazyCompile:~main /srv/app.js:1", "core::ptr::drop_in_place<T>",
		"T::M(int32) const" };
	struct method_name name;

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(method_name_parse(others[i], strlen(others[i]), &name));
}

/* Text that is nested without end is copied unchanged. */
static void test_deep(void **state)
{
	struct bytes text = { 0 };
	struct bytes out = { 0 };
	struct method_name name;

	(void)state;
	bytes_text(&text, "T::M(");
	for (unsigned i = 0; i < 2000; i++)
		bytes_text(&text, "L`1<");
	for (unsigned i = 0; i < 2000; i++)
		bytes_text(&text, ">");
	bytes_text(&text, ")");
	assert_true(method_name_parse((const char *)text.data, text.len, &name));
	method_name_format(&name, METHOD_NAME_LONG, &out);
	assert_true(out.len > 1000 && out.len < 2 * text.len);
	bytes_done(&text);
	bytes_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_readable),
		cmocka_unit_test(test_short),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_not_managed),
		cmocka_unit_test(test_deep),
	};

	return cmocka_run_group_tests_name("method_name", tests, NULL, NULL);
}
