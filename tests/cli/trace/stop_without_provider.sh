spoor trace -p 1 --stopping-event-event-name GC/Start
