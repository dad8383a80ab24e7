"""The scoreboard in three rooms: `regions` says what is measured, `score` judges samples, `show` prints."""
