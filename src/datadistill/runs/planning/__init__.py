"""What a run will cost, and how it is divided among threads and processes."""
