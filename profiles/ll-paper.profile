# The device of "Lifetime-leveling LSM-tree compaction for ZNS SSD" (the LL paper), section 4: a ZNS system on the
# Cosmos+ OpenSSD board.
#
# The paper gives zones and space. Board: 8 channels, 8 ways, PCIe Gen2 x8. Its flash times are not published: those of
# small-zone stand in.

name = ll-paper

zone_count = 1248             # 78 GB for YCSB, the largest of an experiment; fillrandom has 29 GB, 464 zones
zone_size = 64MiB             # section 4
zone_capacity = 64MiB         # section 4
block_size = 4096             # section 4 gives none
max_open_zones = 0            # section 4 gives none
max_active_zones = 0          # section 4 gives none
finish_padding = 64MiB        # small-zone: the whole zone; the paper finishes none
reset_padding = 0             # small-zone

channels = 8                  # board
dies = 64                     # board: 8 ways a channel
mapping = interleaved         # section 2: zones are large, of many erase blocks; the board stripes over its channels

page_size = 64KiB             # small-zone
program_unit = 192KiB         # small-zone
page_read = 60us              # small-zone
small_read_size = 4KiB        # small-zone
small_read = 25.5us           # small-zone
program = 1.95ms              # small-zone
erase = 3ms                   # small-zone
channel_bandwidth = 800MB/s   # small-zone

write_buffer_units = 2        # small-zone
link_bandwidth = 3.2GB/s      # board: PCIe Gen2 x8 (4 GB/s raw, 20 % for 8b/10b already off), less packet overhead
read_latency = 48.4us         # small-zone
write_latency = 15.1us        # small-zone
management_latency = 10us     # small-zone
flush_latency = 10us          # small-zone
