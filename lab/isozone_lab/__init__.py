"""The lab: runs the published experiments on the emulated SSD, draws them, and holds them against what was published.

    experiments/   one module each: what is run, what the papers say, how it is drawn
    runner.py      runs what is missing, in turn, and records every run (results.py)
    durations.py   how long that will take
    report.py      one HTML page of all records
"""
