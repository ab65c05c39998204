spoor record -F many
