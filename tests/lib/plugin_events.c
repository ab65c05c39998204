/* A shared object with events, which the test loads and unloads. */
#include <spoor/spoor.h>

SPOOR_PROVIDER(plugin, "Plugin")
SPOOR_EVENT(plugin, work, 1, SPOOR_INFO, 0x1, (u32, number), (text, text))
SPOOR_PROVIDER_OF_OBJECT(plugin)

__attribute__((visibility("default"))) void plugin_run(uint32_t number);

void plugin_run(uint32_t number)
{
	plugin_work(number, "from the plugin");
}
