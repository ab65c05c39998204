/*
 * The profiles of `record` (record_profiles.def): the user names a question, the profile the events
 * that answer it, and which of them have stacks.
 */
#ifndef SPOOR_DOTNET_RECORD_PROFILES_H
#define SPOOR_DOTNET_RECORD_PROFILES_H

#include <stdbool.h>

#include "dotnet/stack_events.h"
#include "trace/provider_kind.h"

struct diag;
struct provider_list;

/* What the bridge sends of each activity (span); "-": nothing else. */
#define ACTIVITY_FIELDS                                                                   \
	"-Id;ParentId;DisplayName;Kind;Status;StatusDescription;Duration=Duration.Ticks;" \
	"Tags=TagObjects.*Enumerate"
/*
 * Commands of Entity Framework: what they are and where they go. At their end nothing but the time
 * matters.
 */
#define DATABASE_COMMANDS                                                                    \
	"Microsoft.EntityFrameworkCore/"                                                     \
	"Microsoft.EntityFrameworkCore.Database.Command.CommandExecuting@Activity2Start:"    \
	"-Command.CommandText;Command.Connection.Database;Command.Connection.DataSource\r\n" \
	"Microsoft.EntityFrameworkCore/"                                                     \
	"Microsoft.EntityFrameworkCore.Database.Command.CommandExecuted@Activity2Stop:-\r\n" \
	"Microsoft.EntityFrameworkCore/"                                                     \
	"Microsoft.EntityFrameworkCore.Database.Command.CommandError@Activity2Stop:-"

/*
 * Adds the providers of "gc,alloc" to the list, and the kinds of events with stacks (enum
 * stacks_of) to *stack_kinds. "all" is every profile but thread-time. -EINVAL and a sentence for another name.
 */
int record_profiles_add(struct provider_list *list, const char *names, unsigned *stack_kinds,
	struct diag *diag);

#endif
