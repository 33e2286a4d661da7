#!/bin/bash -eu
# Builds a fuzzer with its seeds for each parser in tests/fuzz/targets.py. OSS-Fuzz runs this script in
# its image, which contains compile_python_fuzzer.
cd "$SRC/venue-agent"
python3 -m pip install --require-hashes -r requirements/package.txt
export PYTHONPATH=$PWD
python3 -m tests.fuzz.ossfuzz.fuzzers build/ossfuzz "$OUT"
for fuzzer in build/ossfuzz/fuzz_*.py; do
  compile_python_fuzzer "$fuzzer" --add-data tests/fixtures:tests/fixtures
done
