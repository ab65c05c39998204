spoor trace -p 1 --event-ids A:1
