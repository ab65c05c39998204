/*
 * The metadata of a kind of event in the layout of nettrace version 4. Made once, when the event is
 * registered, and copied into each stream that contains the event.
 */
#ifndef SPOOR_LIB_EVENT_EVENT_METADATA_H
#define SPOOR_LIB_EVENT_EVENT_METADATA_H

#include <stdint.h>

#include <spoor/spoor.h>

/*
 * Makes the record that follows the metadata id, with this version in place of the one in `info`. With `well_known` it has no event name and no
 * fields: readers know these events by provider and id. 0 or -ENOMEM. The caller frees *ret_record.
 */
int event_metadata_make(const struct spoor_event_info *info, uint8_t version, bool well_known,
	uint8_t **ret_record, uint32_t *ret_size);

#endif
