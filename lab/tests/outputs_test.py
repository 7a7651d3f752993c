"""Reading what isozone's programs write, by its schema."""
import json
import unittest

import harness
from isozone_lab import outputs

FSCK = {**harness.example("fsck"), "clean": True, "findings": [{"severity": "note", "text": "t"}]}


class Outputs(unittest.TestCase):
    def test_what_the_schema_allows_is_read(self) -> None:
        self.assertEqual(FSCK, outputs.read(json.dumps(FSCK), "fsck"))
        info = json.dumps({**harness.example("info"), "file_system": None})
        self.assertIsNone(outputs.read(info, "info")["file_system"])

    def test_a_lost_field_is_named_with_its_schema(self) -> None:
        lost = {key: value for key, value in FSCK.items() if key != "file_bytes"}
        with self.assertRaisesRegex(outputs.Unexpected, r"fsck lacks \.file_bytes, .*fsck.schema.json"):
            outputs.read(json.dumps(lost), "fsck")
        deep = {**FSCK, "findings": [{"severity": "note"}]}
        with self.assertRaisesRegex(outputs.Unexpected, r"fsck lacks \.findings\[\]\.text"):
            outputs.read(json.dumps(deep), "fsck")
        shared = harness.example("info")
        del shared["device"]["geometry"]["zone_count"]
        with self.assertRaisesRegex(outputs.Unexpected, r"info lacks \.device\.geometry\.zone_count"):
            outputs.read(json.dumps(shared), "info")

    def test_a_field_that_no_schema_names_is_named_when_it_is_read(self) -> None:
        with self.assertRaisesRegex(outputs.Unexpected, "fsck has no field 'live'"):
            _ = outputs.read(json.dumps(FSCK), "fsck")["live"]

    def test_what_is_no_json_or_of_another_kind_is_refused(self) -> None:
        for text in ("", "not JSON", "[]", "7"):
            with self.subTest(text=text), self.assertRaises(outputs.Unexpected):
                outputs.read(text, "fsck")


if __name__ == "__main__":
    unittest.main()
