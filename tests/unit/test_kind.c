#include "unit/test.h"

#include "dotnet/kind.h"
#include "dotnet/port.h"

static void test_kinds(void **state)
{
	(void)state;
	assert_int_equal(
		dotnet_kind_of(DOTNET_SIGN_CORECLR | DOTNET_SIGN_JIT_MEMORY, "/usr/bin/dotnet",
			"/usr/lib/dotnet/shared/Microsoft.NETCore.App/10.0.1/libcoreclr.so"),
		DOTNET_FRAMEWORK);
	assert_int_equal(
		dotnet_kind_of(DOTNET_SIGN_CORECLR, "/app/Shop",
			"/usr/lib/dotnet/shared/Microsoft.NETCore.App/10.0.1/libcoreclr.so"),
		DOTNET_APPHOST);
	assert_int_equal(dotnet_kind_of(DOTNET_SIGN_CORECLR, "/app/Shop", "/app/libcoreclr.so"),
		DOTNET_SELF_CONTAINED);
	assert_int_equal(dotnet_kind_of(DOTNET_SIGN_CORECLR, "/app/Shop", "/app/lib/libcoreclr.so"),
		DOTNET_APPHOST);
	assert_int_equal(dotnet_kind_of(DOTNET_SIGN_CORECLR, "", "/app/libcoreclr.so"),
		DOTNET_APPHOST);
	assert_int_equal(dotnet_kind_of(DOTNET_SIGN_JIT_MEMORY, "/app/one", ""),
		DOTNET_SINGLE_FILE);
	assert_int_equal(dotnet_kind_of(DOTNET_SIGN_MONO, "/usr/bin/mono", ""), DOTNET_MONO);
	assert_int_equal(dotnet_kind_of(0, "/usr/bin/dotnet", ""), DOTNET_NOT);
}

static void test_exports(void **state)
{
	(void)state;
	assert_int_equal(dotnet_kind_of_export("DotNetRuntimeInfo"), DOTNET_SINGLE_FILE);
	assert_int_equal(dotnet_kind_of_export("DotNetRuntimeDebugHeader"), DOTNET_NATIVEAOT);
	assert_int_equal(dotnet_kind_of_export("DotNetRuntimeInfo2"), DOTNET_NOT);
	assert_int_equal(dotnet_kind_of_export(""), DOTNET_NOT);
}

static void expect_version(const char *path, const char *version)
{
	size_t len = 0;
	const char *at = dotnet_version_of_path(path, &len);

	if (!version) {
		assert_null(at);
		return;
	}
	assert_non_null(at);
	assert_int_equal(len, strlen(version));
	assert_memory_equal(at, version, len);
}

static void test_versions(void **state)
{
	(void)state;
	expect_version("/usr/share/dotnet/shared/Microsoft.NETCore.App/10.0.12/libcoreclr.so",
		"10.0.12");
	expect_version("/x/Microsoft.NETCore.App/9.0.0-rc.1.2/libcoreclr.so", "9.0.0-rc.1.2");
	expect_version("/app/libcoreclr.so", NULL);
	expect_version("/x/Microsoft.NETCore.App/libcoreclr.so", NULL);
	expect_version("/x/Microsoft.NETCore.App/10.0.12", NULL);
	expect_version("", NULL);
}

static void test_names(void **state)
{
	(void)state;
	for (int kind = DOTNET_NOT; kind <= DOTNET_UNKNOWN; kind++)
		assert_true(dotnet_kind_name((enum dotnet_kind)kind)[0] != '\0');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_exports),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
