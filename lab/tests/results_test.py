"""Records on disk, and what is done again."""
import json
import os
import tempfile
import unittest

import harness
from isozone_lab.results import Damaged, Measurement, Outcome, Results, Variant, fingerprint

ZENFS = Variant("zenfs", 8)


class Records(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="isozone-lab-test-")
        self.addCleanup(scratch.cleanup)
        self.path = os.path.join(scratch.name, "small.json")

    def test_a_file_that_is_not_there(self) -> None:
        self.assertIsNone(Results.load(self.path))
        made, aside = Results.resume(self.path, harness.header())
        self.assertEqual(([], None), (made.runs, aside))

    def test_runs_survive_a_restart(self) -> None:
        harness.records({("zenfs", 8): [1.0, 2.0]}).save(self.path)
        resumed, _ = Results.resume(self.path, harness.header())
        self.assertTrue(resumed.is_done(ZENFS, 2))
        self.assertFalse(resumed.is_done(ZENFS, 3))
        self.assertFalse(resumed.is_done(Variant("zenfs", 16), 1))

    def test_a_damaged_file_is_named(self) -> None:
        harness.records({("zenfs", 8): [1.0]}).save(self.path)
        with open(self.path, encoding="utf-8") as file:
            whole = file.read()
        for text in (whole[:len(whole) // 2], "", "{}", "[]", '{"runs": []}', "\udcff"):
            with open(self.path, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text)
            with self.subTest(text=text[:20]), self.assertRaisesRegex(Damaged, "small.json is cut off or no record"):
                Results.load(self.path)

    def test_a_failed_run_is_done_again_and_replaced(self) -> None:
        made = Results(harness.header())
        made.failed(ZENFS, 1, "no space", **harness.FACTS)
        self.assertFalse(made.is_done(ZENFS, 1))
        self.assertEqual("no space", made.failures()[0]["error"])
        made.succeeded(ZENFS, 1, Outcome([Measurement("rate", 5, "ops/s")]), **harness.FACTS)
        self.assertEqual(([], 1), (made.failures(), len(made.runs)))

    def test_other_versions_begin_anew_and_the_old_file_is_kept(self) -> None:
        harness.records({("zenfs", 8): [1.0]}).save(self.path)
        resumed, aside = Results.resume(self.path, harness.header(fingerprint="other"))
        self.assertEqual([], resumed.runs)
        self.assertEqual(1, len(harness.load(aside).runs))
        self.assertFalse(os.path.exists(self.path))

    def test_records_of_every_fingerprint_are_found_again(self) -> None:
        for fingerprint_, rate in (("default", 1.0), ("speed-1", 2.0), ("seed-2", 3.0)):
            Results.resume(self.path, harness.header(fingerprint=fingerprint_))
            harness.records({("zenfs", 8): [rate]}, fingerprint=fingerprint_).save(self.path)
        for fingerprint_, rate in (("default", 1.0), ("speed-1", 2.0), ("seed-2", 3.0), ("default", 1.0)):
            resumed, _ = Results.resume(self.path, harness.header(fingerprint=fingerprint_))
            self.assertEqual(rate, resumed.median("zenfs", "rate"))
            self.assertEqual(fingerprint_, harness.load(self.path).header["fingerprint"])
        self.assertEqual(3, len(os.listdir(os.path.dirname(self.path))))

    def test_records_are_found_again_when_the_next_were_interrupted_at_once(self) -> None:
        harness.records({("zenfs", 8): [1.0]}).save(self.path)
        Results.resume(self.path, harness.header(fingerprint="other"))
        resumed, aside = Results.resume(self.path, harness.header())
        self.assertEqual((1.0, None), (resumed.median("zenfs", "rate"), aside))

    def test_fingerprint(self) -> None:
        def of(mode: str = "quick", seed: int = 1, driver: str = "ycsb", num: int = 1, expected_s: int = 1,
               version: tuple[str, str] = ("ycsb", "y")) -> str:
            name, text = version
            return fingerprint(mode, {"num": num, "expected_s": expected_s}, seed, {"ycsb": "y", name: text}, driver)

        self.assertEqual(of(num=1), of(num=1, version=("python", "4"), expected_s=9))
        self.assertEqual(of(driver="db_bench"), of(driver="db_bench", version=("ycsb", "z")))
        others = {of(num=2), of(mode="full"), of(seed=2), of(version=("ycsb", "z")),
                  *(of(version=(name, "b")) for name in ("library", "tool", "profile", "lab", "cpu", "kernel"))}
        self.assertEqual(10, len(others - {of()}))

    def test_rows_have_the_median_and_every_repeat(self) -> None:
        harness.records({("zenfs", 8): [3.0, 1.0, 2.0]}).save(self.path)
        with open(self.path, encoding="utf-8") as file:
            row, = json.load(file)["results"]
        self.assertEqual({"experiment": "small", "series": "zenfs", "x": 8, "metric": "rate", "value": 2.0,
                          "unit": "ops/s", "or_more": False, "repeats": 3, "values": [3.0, 1.0, 2.0], "seed": 1,
                          "versions": {"isozone": "0"}, "command": ["db_bench --num=1"]}, row)

    def test_a_measurement_may_have_an_x_of_its_own(self) -> None:
        made = Results(harness.header())
        made.succeeded(Variant("zenfs"), 1, Outcome([Measurement("rate", 5, "ops/s", "A")]), **harness.FACTS)
        self.assertEqual(5, made.median("zenfs", "rate", "A"))
        self.assertIsNone(made.median("zenfs", "rate", "B"))
        self.assertTrue(made.is_done(Variant("zenfs"), 1))

    def test_a_median_may_be_more_where_its_values_may(self) -> None:
        for values, expected in (([6, 6, 8], False), ([6, 8, 8], True), ([6, 8], True), ([6], False), ([], False)):
            made = Results(harness.header())
            for repeat, value in enumerate(values):
                made.succeeded(ZENFS, repeat, Outcome([Measurement("range", value, "M", or_more=value == 8)]),
                               **harness.FACTS)
            self.assertIs(expected, made.is_or_more("zenfs", "range"), values)

    def test_details_of_the_first_repeat(self) -> None:
        made = Results(harness.header())
        for repeat in (2, 1):
            made.succeeded(ZENFS, repeat, Outcome([], {"put": [repeat]}), **harness.FACTS)
        self.assertEqual({"put": [1]}, made.details("zenfs"))
        self.assertEqual({}, made.details("isozone"))


if __name__ == "__main__":
    unittest.main()
