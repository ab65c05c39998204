/* `spoor record` for a verb that observes the recorded processes meanwhile. */
#ifndef SPOOR_CLI_RECORD_OBSERVED_H
#define SPOOR_CLI_RECORD_OBSERVED_H

/*
 * Runs the verb with these arguments, argv[0] included, in a separate process. The observer sends
 * its events on the other end of the socket `observations_fd`, which is above 2 (recording/live_observations.h).
 * The exit code.
 */
int record_observed(int argc, char **argv, int observations_fd);

#endif
