"""Flushes and compactions, from the events that RocksDB writes into its info log."""
import dataclasses
import datetime
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

MARK = "EVENT_LOG_v1 "
TIMESTAMP = re.compile(r"^(\d{4}/\d\d/\d\d-\d\d:\d\d:\d\d\.\d{6}) ")
MB = 1e6


@dataclasses.dataclass
class Job:
    kind: str              # "flush" or "compaction"
    start_us: int
    end_us: int = 0        # 0: not finished
    bytes_read: int = 0
    bytes_written: int = 0

    @property
    def bytes(self) -> int:
        return self.bytes_read + self.bytes_written

    @property
    def seconds(self) -> float:
        return (self.end_us - self.start_us) / 1e6


def events(text: str) -> Iterator[dict[str, Any]]:
    """Lines that are torn, as the last may be, are left out."""
    for line in text.splitlines():
        _, mark, body = line.partition(MARK)
        if mark:
            try:
                yield json.loads(body)
            except ValueError:
                continue


def jobs(text: str) -> list[Job]:
    """Every flush and compaction that was finished, in the order of their ends."""
    running: dict[Any, Job] = {}
    done = []
    for event in events(text):
        kind, _, step = event.get("event", "").partition("_")
        job = running.get(event.get("job"))
        if step == "started" and kind in ("flush", "compaction"):
            running[event["job"]] = Job(kind, event["time_micros"], bytes_read=event.get("input_data_size", 0))
        elif event.get("event") == "table_file_creation" and job is not None:
            job.bytes_written += event.get("file_size", 0)
        elif step == "finished" and job is not None:
            job.end_us = event["time_micros"]
            done.append(running.pop(event["job"]))
    return done


def start_us(text: str) -> int:
    """When the log begins: the database was opened."""
    found = TIMESTAMP.search(text)
    if found is None:
        raise ValueError("the info log does not begin with a time")
    moment = datetime.datetime.strptime(found.group(1), "%Y/%m/%d-%H:%M:%S.%f")  # local time
    return int(moment.timestamp() * 1e6)


def bandwidth(done: list[Job], kind: str) -> float:
    """MB/s of all jobs of a kind while they run; 0 if there were none."""
    chosen = [job for job in done if job.kind == kind and job.end_us > job.start_us]
    seconds = sum(job.seconds for job in chosen)
    return sum(job.bytes for job in chosen) / seconds / MB if seconds else 0.0


def per_second(done: list[Job], origin_us: int, kinds: Sequence[str] = ("flush", "compaction")) -> list[float]:
    """MB/s of each second from `origin_us` on; the bytes of a job are spread evenly over its time."""
    chosen = [job for job in done if job.kind in kinds and job.end_us > job.start_us]
    if not chosen:
        return []
    rates = [0.0] * (max(job.end_us - origin_us for job in chosen) // 1_000_000 + 1)
    for job in chosen:
        start, end = max(0.0, (job.start_us - origin_us) / 1e6), (job.end_us - origin_us) / 1e6
        for second in range(int(start), int(end) + 1):
            overlap = min(end, second + 1) - max(start, second)
            rates[second] += job.bytes / MB * max(0.0, overlap) / job.seconds
    return rates
