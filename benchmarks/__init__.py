"""Speed against other libraries, both arms in one run: `python -m benchmarks` (`make bench`)."""
