"""What calls in Python are given, where the command line has flags."""
