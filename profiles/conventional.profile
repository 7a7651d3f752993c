# A conventional SSD on the flash of small-zone: the same dies, channels, times and controller, behind a page-mapped FTL
# that collects garbage. What the paper compares small zones with in its Fig. 12.
#
# "ZenFS+": the paper "ZenFS+: Nurturing Performance and Isolation to ZenFS", section V.B: an SSD of the same internal
# architecture without zones, with about 15 % of over-provisioning and a full FTL. "small-zone": that profile, where each
# number has its source. "derived": computed from numbers of these.

name = conventional

over_provisioning = 15%       # ZenFS+
capacity = 1783GiB            # derived: 29,172 blocks of 72 MiB, the flash of small-zone, divided by 1.15
erase_block = 72MiB           # small-zone: a zone is what a die erases at once
block_size = 4096             # the usual unit of mapping; the paper gives none

channels = 8                  # small-zone
dies = 32                     # small-zone

page_size = 64KiB             # small-zone
program_unit = 192KiB         # small-zone
page_read = 60us              # small-zone
small_read_size = 4KiB        # small-zone
small_read = 25.5us           # small-zone
program = 1.95ms              # small-zone
erase = 3ms                   # small-zone
channel_bandwidth = 800MB/s   # small-zone

write_buffer_units = 2        # small-zone
link_bandwidth = 3.94GB/s     # small-zone
read_latency = 48.4us         # small-zone
write_latency = 15.1us        # small-zone
management_latency = 10us     # small-zone; a TRIM
flush_latency = 10us          # small-zone
