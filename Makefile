# Wherry in two commands: `make bench` and `make test`. `tools/setup` makes .venv and the native build first, and
# does nothing when they are up to date.
WHERRY = .venv/bin/wherry

.PHONY: help bench test verify-full peers fuzz soak extras clean

help:
	@echo 'make bench        set up, verify the routines, measure them, print the tables, save a report   (2 to 6 minutes)'
	@echo 'make test         set up and run the tests                                      (8 to 18 minutes)'
	@echo 'make verify-full  set up and verify everything there is, routines too               (about 20 minutes)'
	@echo 'make fuzz         call everything at random on all CPUs until something is wrong  (10 minutes; SECONDS=3600)'
	@echo 'make peers        build other memory routines that are installed here, to measure against  (seconds)'
	@echo 'make soak         run real programs with the drop-in and without, and compare what they leave  (about 4 minutes)'
	@echo 'make extras       install the Debian packages that some tests use when present  (as root)'
	@echo 'make clean        remove .venv and build/; run files stay'
	@echo 'After any of them:  .venv/bin/wherry --help'

bench:
	@tools/setup run
	@$(WHERRY) bench --verify sizes zero small alignment --quick --report

# Three at a time, since a quarter of the time a test waits; a file's tests one after the other; PYTEST_ARGS= runs all in
# turn. In the order of tests/conftest.py: left alone, xdist keeps the file with the fewest tests, which boots a computer, to
# the end, and the others have nothing to do.
PYTEST_ARGS = -n 3 --dist loadfile --no-loadscope-reorder
test:
	@tools/setup test
	@.venv/bin/python -m pytest $(PYTEST_ARGS)

verify-full:
	@tools/setup run
	@$(WHERRY) verify --full

peers:
	@tools/setup run
	@.venv/bin/python tools/peers $(PEERS_ARGS)

# Longer: make fuzz SECONDS=3600. More options: make fuzz FUZZ_ARGS='--seed 5'.
SECONDS = 600
fuzz:
	@tools/setup run
	@mkdir -p build/fuzz
	@.venv/bin/wherry-run fuzz --seconds $(SECONDS) --artifacts build/fuzz $(FUZZ_ARGS)

# One trial, or with a plan: make soak SOAK_ARGS='git --plan mine.toml'.
soak:
	@tools/setup run
	@.venv/bin/python tools/soak $(SOAK_ARGS)

# Also the programs of make soak: make extras EXTRAS_ARGS=soak.
extras:
	@tools/extras $(EXTRAS_ARGS)

clean:
	rm -rf .venv build
