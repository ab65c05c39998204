/*
 * The probes of libspoor's logger for DTrace, one for each level: the provider and the event by name, the event's id and keywords, and its fields as JSON.
 * dtrace -h makes spoor_dtrace.h of it (scripts/libspoor-direct).
 */
provider libspoor {
	probe always(char *provider, char *event, uint32_t id, uint64_t keywords, char *fields);
	probe critical(char *provider, char *event, uint32_t id, uint64_t keywords, char *fields);
	probe error(char *provider, char *event, uint32_t id, uint64_t keywords, char *fields);
	probe warning(char *provider, char *event, uint32_t id, uint64_t keywords, char *fields);
	probe info(char *provider, char *event, uint32_t id, uint64_t keywords, char *fields);
	probe verbose(char *provider, char *event, uint32_t id, uint64_t keywords, char *fields);
};
