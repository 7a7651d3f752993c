"""How busy the processors are, and with whose work."""
import unittest

import harness  # noqa: F401 - finds the lab
from isozone_lab import processors
from isozone_lab.processes import RunFailed
from isozone_lab.processors import Moment, Ticks


class Processors(unittest.TestCase):
    BEFORE = "cpu  100 0 50 800 50 0 0 0 70 70\ncpu0 100 0 50 800 50 0 0 0 70 70\n"
    AFTER = "cpu  300 0 150 1050 100 0 0 0 90 90\n"

    def test_busy_is_what_is_neither_idle_nor_waiting(self) -> None:
        self.assertEqual(50, processors.busy_percent(self.BEFORE, self.AFTER))

    def test_time_of_guests_is_counted_once(self) -> None:
        self.assertEqual(Ticks(150, 850), Ticks.of(self.BEFORE))

    def test_another_text_is_refused(self) -> None:
        with self.assertRaisesRegex(RunFailed, "not the first line of /proc/stat: nothing$"):
            Ticks.of("nothing\nelse")

    def test_others_are_all_but_this_process_and_its_children(self) -> None:
        begin = Moment(Ticks.of(self.BEFORE), own_s=1)
        end = Moment(Ticks.of(self.AFTER), own_s=3)
        self.assertAlmostEqual(100 * (300 - 200) / 600, begin.others_percent(end, ticks_per_second=100))

    def test_what_was_counted_later_is_not_less_than_nothing(self) -> None:
        begin = Moment(Ticks(100, 100), own_s=0)
        self.assertEqual(0, begin.others_percent(Moment(Ticks(150, 150), own_s=1), ticks_per_second=100))
        self.assertEqual(0, begin.others_percent(begin))

    def test_time_of_this_machine_passes(self) -> None:
        begin = Moment.now()
        while Moment.now().own_s == begin.own_s:
            pass
        self.assertGreater(Moment.now().own_s, begin.own_s)


if __name__ == "__main__":
    unittest.main()
