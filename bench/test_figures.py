"""Run with `python3 -m unittest discover bench`."""

import unittest

from figures import bootstrap_interval, present, ratios
from measure import parse_h2load, parse_latency, parse_wrk


class Figures(unittest.TestCase):
    def test_interval_holds_the_median_and_narrows(self):
        few = [1.0, 1.2, 0.9, 1.1, 1.05, 0.95, 1.3]
        low, high = bootstrap_interval(few)
        self.assertLessEqual(low, 1.05)
        self.assertGreaterEqual(high, 1.05)
        low_many, high_many = bootstrap_interval(few * 20)
        self.assertLess(high_many - low_many, high - low)

    def test_ratios_leave_out_missing_rounds(self):
        self.assertEqual(ratios([2.0, None, 3.0], [1.0, 1.0, 2.0]), [2.0, 1.5])
        self.assertEqual(present([1, None, 2]), [1, 2])


class Wrk(unittest.TestCase):
    OUTPUT = """Running 2s test @ http://127.0.0.1:1/
  1 threads and 32 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   602.19us  190.84us   4.53ms   86.10%
  Latency Distribution
     50%  570.00us
     99%    1.31ms
  104422 requests in 2.00s, 122.48MB read
  Socket errors: connect 0, read 3, write 0, timeout 1
  Non-2xx or 3xx responses: 12
Requests/sec:  52193.66
"""

    def test_counts(self):
        load = parse_wrk(self.OUTPUT)
        self.assertEqual((load.requests, load.refused, load.errors), (104422, 12, 4))
        self.assertAlmostEqual(load.p99_ms, 1.31)

    def test_units(self):
        self.assertAlmostEqual(parse_latency("570.00us"), 0.57)
        self.assertAlmostEqual(parse_latency("2.00s"), 2000)


class H2load(unittest.TestCase):
    OUTPUT = """finished in 1.00s, 12345.00 req/s, 13.28MB/s
requests: 12345 total, 12377 started, 12345 done, 12340 succeeded, 5 failed, 5 errored, 0 timeout
status codes: 12340 2xx, 0 3xx, 0 4xx, 3 5xx
"""

    def test_counts(self):
        load = parse_h2load(self.OUTPUT)
        self.assertEqual((load.requests, load.refused), (12343, 3))


if __name__ == "__main__":
    unittest.main()
