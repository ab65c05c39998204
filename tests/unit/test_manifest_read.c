/* What a manifest may not say: each mistake has a sentence of its own, and its line. */
#include "unit/test.h"

#include <errno.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "gen/manifest.h"

#define HEAD                                                 \
	"<instrumentationManifest><instrumentation><events>" \
	"<provider name='P' guid='{e13c0d23-ccbc-4e12-931b-d9cc2eee27e4}'>"
#define TAIL "</provider></events></instrumentation></instrumentationManifest>"

/* On line 2 of the file. */
static const struct {
	const char *inside;
	const char *sentence;
} mistakes[] = {
	{ "<keywords><keyword name='A' mask='0x1'/><keyword name='B' mask='0x3'/></keywords>",
		"keyword B has a bit of another keyword (mask 0x3)" },
	{ "<keywords><keyword name='A' mask='0x1'/><keyword name='A' mask='0x2'/></keywords>",
		"keyword A is there twice (line 2)" },
	{ "<keywords><keyword name='A' mask='0'/></keywords>", "keyword A has no bit" },
	{ "<keywords><keyword name='A' mask='x1'/></keywords>",
		"mask=\"x1\" of <keyword> is not a whole number" },
	{ "<keywords><keyword name='A' mask='0x10000000000000000'/></keywords>",
		"mask=\"0x10000000000000000\" of <keyword> is not a whole number" },
	{ "<keywords><keyword name='A'/></keywords>", "<keyword> has no attribute mask" },
	{ "<keywords><keyword nmae='A'/></keywords>",
		"<keyword> has an attribute nmae, which is not known" },
	{ "<keywords><kyword name='A'/></keywords>",
		"an element <kyword> in <keywords> is not known" },
	{ "<keywords><keyword name='A' mask='1' message='$(string.a)'/></keywords>",
		"there is no string a" },
	{ "<tasks><task name='A' value='65536'/></tasks>",
		"value=\"65536\" of <task> is more than 65535" },
	{ "<opcodes><opcode name='A' value='10'/><opcode name='A' value='11'/></opcodes>",
		"opcode A is there twice (line 2)" },
	{ "<opcodes><opcode name='A' value='256'/></opcodes>",
		"value=\"256\" of <opcode> is more than 255" },
	{ "<maps><valueMap name='A'/><bitMap name='A'/></maps>", "map A is there twice (line 2)" },
	{ "<maps><valueMap name='A B'/><bitMap name='A.B'/></maps>",
		"in C, a map A_B is there twice (line 2)" },
	{ "<templates><template tid='A'/><template tid='A'/></templates>",
		"template A is there twice (line 2)" },
	{ "<templates><template/></templates>", "<template> has no attribute tid" },
	{ "<templates><template tid='T'><data name='A' inType='win:UInt31'/></template></templates>",
		"inType=\"win:UInt31\" is not a type" },
	{ "<templates><template tid='T'><data name='A'/></template></templates>",
		"<data> has no attribute inType" },
	{ "<templates><template tid='T'><data name='A' inType='win:UInt8' map='M'/></template></templates>",
		"there is no map M" },
	{ "<maps><valueMap name='M'/></maps><templates><template tid='T'>"
	  "<data name='A' inType='win:Double' map='M'/></template></templates>",
		"A has a map, but is not an integer" },
	{ "<templates><template tid='T'><data name='A' inType='win:UInt8'/>"
	  "<data name='A' inType='win:UInt8'/></template></templates>",
		"template T has two fields A" },
	{ "<templates><template tid='T'><data name='A B' inType='win:UInt8'/>"
	  "<data name='A.B' inType='win:UInt8'/></template></templates>",
		"in C, template T has two fields A_B" },
	{ "<templates><template tid='T'><data name='A' inType='win:UInt8'/>"
	  "<data name='A' inType='win:UInt8'/></template></templates>",
		"template T has two fields A" },
	{ "<templates><template tid='T'><data name='A' inType='win:UInt8' count='A'/></template></templates>",
		"the count of A is the field itself" },
	{ "<templates><template tid='T'><data name='A' inType='win:UInt8' count=''/></template></templates>",
		"count=\"\" is neither a number nor a field" },
	{ "<templates>win:UInt8 <template tid='T'/></templates>",
		"text in <templates>: 'win:UInt8 '" },
	{ "<templates><template tid='T'><data name='A' inType='win:UInt8' count='N'/></template></templates>",
		"the count of A is a field N, which does not exist" },
	{ "<templates><template tid='T'><data name='A' inType='win:UInt8' count='N'/>"
	  "<data name='N' inType='win:UInt8'/></template></templates>",
		"the count of A, field N, comes after it" },
	{ "<templates><template tid='T'><data name='N' inType='win:Float'/>"
	  "<data name='A' inType='win:UInt8' count='N'/></template></templates>",
		"the count of A, field N, is not an integer" },
	{ "<templates><template tid='T'><data name='N' inType='win:UInt8'/><struct name='S'>"
	  "<data name='A' inType='win:Binary' length='N'/></struct></template></templates>",
		"the length of A, field N, is outside its struct" },
	{ "<templates><template tid='T'><data name='A' inType='win:Binary'/></template></templates>",
		"A is win:Binary without a length" },
	{ "<templates><template tid='T'><data name='A' inType='win:UInt8' count='0'/></template></templates>",
		"count=\"0\" is not from 1 to 65535" },
	{ "<templates><template tid='T'><data name='A' inType='win:UInt8' count='2' length='2'/></template></templates>",
		"A has a length, which its type does not take" },
	{ "<templates><template tid='T'><data name='A' inType='win:SID' count='2'/></template></templates>",
		"A is an array of win:SID, which has no element size" },
	{ "<templates><template tid='T'><struct name='S' count='2'/></template></templates>",
		"struct S has no field" },
	{ "<templates><template tid='T'><struct name='S'><struct name='R'/></struct></template></templates>",
		"a struct inside a struct" },
	{ "<events><event value='1' symbol='A' template='T'/></events>", "there is no template T" },
	{ "<events><event value='1' symbol='A' task='T'/></events>", "there is no task T" },
	{ "<events><event value='1' symbol='A' opcode='O'/></events>", "there is no opcode O" },
	{ "<events><event value='1' symbol='A' level='L'/></events>", "there is no level L" },
	{ "<events><event value='1' symbol='A' keywords='win:SQM K'/></events>",
		"there is no keyword K" },
	{ "<events><event value='1' symbol='1A'/></events>",
		"the symbol '1A' of an event is not a name in C" },
	{ "<events><event symbol='A'/></events>", "<event> has no attribute value" },
	{ "<events><event value='1' version='256' symbol='A'/></events>",
		"version=\"256\" of <event> is more than 255" },
	{ "<events><event value='1' symbol='A'/><event value='2' symbol='A'/></events>",
		"two events have the symbol A (line 2)" },
	{ "<events><event value='1' symbol='A'/><event value='1' symbol='B'/></events>",
		"two events have id 1 and version 0: A and B" },
	{ "<events><event value='1' symbol='A'/><event value='2' symbol='A_enabled'/></events>",
		"the symbol A_enabled is a name that event A needs in C" },
	{ "<events></tasks>", "not well-formed XML: mismatched tag (column" },
	{ "<events <", "not well-formed XML: not well-formed (invalid token) (column" },
	{ "<events><event value='1' value='2'/></events>",
		"not well-formed XML: duplicate attribute (column" },
	{ "</provider><provider name='P' guid='{e13c0d23-ccbc-4e12-931b-d9cc2eee27e4}'>",
		"providers P and P have the same name in C: p" },
	{ "</provider><provider name='Q' guid='{e13c0d23-ccbc-4e12-931b-d9cc2eee27e}'>",
		"guid=\"{e13c0d23-ccbc-4e12-931b-d9cc2eee27e}\" is not a GUID" },
	{ "</provider><provider name='Q' guid='{e13c0d23-ccbc-4e12-931b-d9cc2eee27e4}'>",
		"providers P and Q have the same guid" },
	{ "</provider><provider name='Q'>", "<provider> has no attribute guid" },
	{ "</provider><provider name='7' guid='{e13c0d23-ccbc-4e12-931b-d9cc2eee27e4}'>",
		"provider name 7 does not begin with a letter" },
};

static void each_mistake_has_its_sentence(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		struct bytes text = { 0 };
		struct bytes wanted = { 0 };
		struct manifest manifest;
		struct diag diag = { 0 };
		bytes_printf(&text, HEAD "\n%s\n" TAIL, mistakes[i].inside);
		bytes_printf(&wanted, "'folder/x.man' line 2: %s", mistakes[i].sentence);
		int error = manifest_read(text.data, text.len, "folder/x.man", &manifest, &diag);
		if (error != -EBADMSG || strncmp(diag.text, bytes_z(&wanted), wanted.len) != 0)
			fail_msg("%s: %d, '%s'", bytes_z(&wanted), error, diag.text);
		assert_int_equal(manifest.providers.count, 0);
		bytes_done(&text);
		bytes_done(&wanted);
	}
}

static struct manifest read_text(const char *text)
{
	struct manifest manifest;
	struct diag diag = { 0 };

	if (manifest_read(text, strlen(text), "x.man", &manifest, &diag) < 0)
		fail_msg("%s", diag.text);
	return manifest;
}

static void limits(void **state)
{
	struct bytes text = { 0 };
	struct manifest manifest;
	struct diag diag = { 0 };

	(void)state;
	for (unsigned i = 0; i < 30; i++)
		bytes_text(&text, i ? "<UserData>" : HEAD "<channels>");
	assert_int_equal(manifest_read(text.data, text.len, "x", &manifest, &diag), -EBADMSG);
	assert_string_equal(diag.text, "'x' line 1: elements are nested more than 24 deep");

	bytes_reset(&text);
	diag = (struct diag){ 0 };
	bytes_text(&text, HEAD "<templates><template tid='T'>");
	for (unsigned i = 0; i < 129; i++)
		bytes_printf(&text, "<data name='a%u' inType='win:UInt8'/>", i);
	assert_int_equal(manifest_read(text.data, text.len, "x", &manifest, &diag), -EBADMSG);
	assert_string_equal(diag.text, "'x' line 1: template T has more than 128 fields");

	bytes_reset(&text);
	diag = (struct diag){ 0 };
	bytes_text(&text, HEAD "<tasks><task value='1' name='");
	for (unsigned i = 0; i < 256; i++)
		bytes_text(&text, "n");
	bytes_text(&text, "'/></tasks>" TAIL);
	assert_int_equal(manifest_read(text.data, text.len, "x", &manifest, &diag), -EBADMSG);
	assert_string_equal(diag.text, "'x' line 1: name of 256 bytes; the limit is 255");

	bytes_reset(&text);
	diag = (struct diag){ 0 };
	bytes_text(&text, HEAD "<strings/>");
	assert_int_equal(manifest_read(text.data, 0, "x", &manifest, &diag), -EBADMSG);
	assert_string_equal(diag.text, "'x' line 1: the file has no XML element");
	bytes_done(&text);
}

/* Names are resolved where they are looked for: a task's own opcode first. */
static void resolves(void **state)
{
	struct manifest manifest = read_text(HEAD
		"<keywords><keyword name='A' mask='0x2'/><keyword name='B' mask='0x8000000000000000'/></keywords>"
		"<tasks><task name='T' value='3'><opcodes><opcode name='O' value='20'/></opcodes></task>"
		"<task name='U' value='4'/></tasks>"
		"<opcodes><opcode name='O' value='21'/></opcodes>"
		"<levels><level name='L' value='17'/></levels>"
		"<templates><template tid='E'/><template tid='F'><data name='N' inType='win:UInt16'/>"
		"<struct name='S' count='N'><data name='N' inType='win:UInt32'/>"
		"<data name='V' inType='UInt8' count='N'/></struct></template></templates>"
		"<events><event value='2' symbol='Two' task='T' opcode='O' keywords=' A  B '/>"
		"<event value='1' version='1' symbol='One_V1' task='U' opcode='O' level='L' template='F'/>"
		"<event value='1' template='E' level='win:Verbose' opcode='win:Receive'/></events>" TAIL);
	const struct man_provider *p = &manifest.providers.items[0];
	const struct man_event *e = p->events.items;

	(void)state;
	assert_int_equal(p->guid[0], 0x23);
	assert_int_equal(p->events.count, 3);
	assert_string_equal(e[0].symbol, "Event1");
	assert_int_equal(e[0].opcode, 240);
	assert_int_equal(e[0].level, 5);
	assert_int_equal(e[0].tmpl, MANIFEST_NONE);
	assert_string_equal(e[1].symbol, "One_V1");
	assert_int_equal(e[1].opcode, 21);
	assert_int_equal(e[1].level, 17);
	assert_string_equal(e[2].symbol, "Two");
	assert_int_equal(e[2].opcode, 20);
	assert_true(e[2].keywords == UINT64_C(0x8000000000000002));
	const struct man_template *tmpl = manifest_template(p, &e[1]);
	assert_int_equal(tmpl->fields.items[1].member_count, 2);
	/* N of the struct counts there, and not the N outside. */
	assert_int_equal(tmpl->fields.items[3].count.value, 2);
	assert_int_equal(tmpl->fields.items[1].count.value, 0);
	manifest_done(&manifest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_mistake_has_its_sentence),
		cmocka_unit_test(limits),
		cmocka_unit_test(resolves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
