spoor ps --container no-such-container
