spoor ps here
