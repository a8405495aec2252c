"""The search for settings: many short runs, each chosen by what those before it reached."""
